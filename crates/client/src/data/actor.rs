//! The task of a client, which owns its state.

use std::{future::pending, sync::Arc, time::Duration};

use rumqttc::{Publish, QoS};
use serde::Deserialize;
use tokio::{
    sync::{broadcast, mpsc, oneshot},
    time::timeout,
};
use types::{AppId, Kinded};

use super::{
    connect::{connection_error, is_permanent},
    connection::Requests,
    connection_event::ConnectionEvent,
    downlinks::{Downlinks, PendingDownlink},
    link::{Acknowledgement, Link, LinkEvent},
    queue::{Queue, Received},
    subscriptions::Subscriptions,
    topics::{DROPPED, Topics},
};
use crate::{Error, Result};

/// Maximum time to wait for the last packet to be sent.
const DISCONNECT_WAIT: Duration = Duration::from_secs(5);

/// A request of a caller to the task.
#[derive(Debug)]
pub(super) enum Command {
    Listen {
        topics: Topics,
        queue: Queue,
        done: oneshot::Sender<Result<()>>,
    },
    /// A listener has gone.
    Update,
    Send(PendingDownlink),
    Close {
        force: bool,
        done: oneshot::Sender<()>,
    },
}

/// An event about messages that the broker has dropped because a client received too slowly.
#[derive(Debug, Deserialize)]
struct Dropped {
    client_id: String,
    messages: u64,
}

/// The state of a client.
#[derive(Debug)]
pub(super) struct Actor {
    app_id: AppId,
    address: String,
    /// Its name at the broker.
    client_id: String,
    /// Those of the connection, while there is one.
    requests: Option<Requests>,
    events: broadcast::Sender<ConnectionEvent>,
    listeners: Vec<(Topics, Queue)>,
    subscriptions: Subscriptions,
    downlinks: Downlinks,
    /// Answers the caller that closes the client.
    closing: Option<oneshot::Sender<()>>,
}

impl Actor {
    pub(super) fn new(
        app_id: AppId,
        (address, client_id): (String, String),
        requests: Requests,
        events: broadcast::Sender<ConnectionEvent>,
    ) -> Self {
        Self {
            subscriptions: Subscriptions::new(app_id.clone()),
            app_id,
            address,
            client_id,
            requests: Some(requests),
            events,
            listeners: Vec::new(),
            downlinks: Downlinks::default(),
            closing: None,
        }
    }

    /// Runs until the client is closed or refused, or nobody uses it any more.
    pub(super) async fn run(mut self, mut link: Link, mut commands: mpsc::Receiver<Command>) {
        while self.closing.is_none() || !self.downlinks.is_empty() {
            tokio::select! {
                event = link.next() => {
                    let Some(event) = event else { return };
                    if let Err(refusal) = self.handle(event) {
                        return self.refuse(&refusal);
                    }
                }
                command = commands.recv() => match command {
                    Some(Command::Close { force: true, done }) => {
                        self.closing = Some(done);
                        break;
                    }
                    Some(command) => self.obey(command),
                    None => break,
                },
                () = given_up(&mut self.closing) => break,
            }
        }
        self.disconnect(link).await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Listen { topics, queue, done } => {
                self.subscriptions.wait(topics.filters(), done);
                self.listeners.push((topics, queue));
                self.update();
            }
            Command::Update => self.update(),
            Command::Send(downlink) => self.downlinks.push(&self.address, self.requests.as_ref(), downlink),
            Command::Close { done, .. } => self.closing = Some(done),
        }
    }

    /// Takes an event of the connection; an error is final.
    fn handle(&mut self, event: LinkEvent) -> Result<()> {
        match event {
            LinkEvent::Connected(requests) => self.connected(requests),
            LinkEvent::Lost(error) => {
                let event = match self.requests.take() {
                    Some(_) => ConnectionEvent::Disconnect,
                    None => ConnectionEvent::Close,
                };
                self.tell(event(error.to_string()));
                if is_permanent(&error) {
                    return Err(connection_error(&self.address, error));
                }
            }
            LinkEvent::Reconnecting => self.tell(ConnectionEvent::Reconnect),
            LinkEvent::Subscribing(packet) => self.subscriptions.requested(packet),
            LinkEvent::Subscribed { packet, granted } => return self.subscriptions.answered(packet, granted),
            LinkEvent::Sent(packet) => self.downlinks.sent(packet),
            LinkEvent::Acknowledged(packet) => self.downlinks.acknowledged(packet),
            LinkEvent::Received(message) => self.deliver(&message),
        }
        Ok(())
    }

    fn connected(&mut self, requests: Requests) {
        self.subscriptions.reset();
        self.downlinks.publish_again(&requests);
        self.requests = Some(requests);
        self.update();
        self.tell(ConnectionEvent::Connect);
    }

    /// Forgets the listeners that have gone, and their subscriptions.
    fn update(&mut self) {
        self.listeners.retain(|(_, queue)| !queue.is_closed());
        if let Some(requests) = &self.requests {
            let wanted: Vec<_> = self.listeners.iter().flat_map(|(topics, _)| topics.filters()).cloned().collect();
            self.subscriptions.update(&wanted, requests);
        }
    }

    fn deliver(&mut self, message: &Publish) {
        let Some(requests) = &self.requests else { return };
        // Dropped, and thereby sent, at the latest when this returns, unless a listener has it.
        let is_acknowledged = message.qos != QoS::AtMostOnce;
        let acknowledgement = is_acknowledged.then(|| Acknowledgement::new(requests.clone(), message.pkid));
        let topic = message.topic.strip_prefix(self.app_id.as_str()).and_then(|topic| topic.strip_prefix('/'));
        let Some(topic) = topic else { return };
        if topic == DROPPED {
            return self.tell_dropped(&message.payload);
        }
        let Some((dev_id, levels)) = topic.strip_prefix("devices/").and_then(|below| below.split_once('/')) else {
            return;
        };
        let Ok(dev_id) = dev_id.parse() else { return };
        let received = Received {
            _acknowledgement: acknowledgement.map(Arc::new),
            ..Received::new(dev_id, levels, &message.payload)
        };
        let hearing = self.listeners.iter().filter(|(topics, _)| topics.matches(topic));
        hearing.for_each(|(_, queue)| queue.push(received.clone()));
        if self.listeners.iter().any(|(_, queue)| queue.is_closed()) {
            self.update();
        }
    }

    /// Tells the streams that want to know how many messages of this client the broker has dropped.
    fn tell_dropped(&self, event: &[u8]) {
        let Ok(dropped) = serde_json::from_slice::<Dropped>(event) else { return };
        if dropped.client_id == self.client_id {
            let hearing = self.listeners.iter().filter(|(topics, _)| topics.matches(DROPPED));
            hearing.for_each(|(_, queue)| queue.miss(dropped.messages));
        }
    }

    fn refuse(self, refusal: &Error) {
        self.tell(ConnectionEvent::Error(refusal.to_string()));
        for (_, queue) in self.listeners {
            queue.refuse(refusal.kind(), &refusal.to_string());
        }
    }

    async fn disconnect(self, mut link: Link) {
        // Without room for the last packet, the connection just ends.
        if self.requests.is_some_and(|requests| requests.disconnect().is_ok()) {
            let ended = async { while link.next().await.is_some() {} };
            if timeout(DISCONNECT_WAIT, ended).await.is_err() {
                tracing::debug!(address = self.address, "the connection ended without its last packet");
            }
        }
        if let Some(done) = self.closing {
            // A caller who has stopped waiting needs no answer.
            _ = done.send(());
        }
    }

    fn tell(&self, event: ConnectionEvent) {
        // An error means that nobody listens.
        _ = self.events.send(event);
    }
}

/// Waits until the caller does not wait for the end any more.
async fn given_up(closing: &mut Option<oneshot::Sender<()>>) {
    match closing {
        Some(done) => done.closed().await,
        None => pending().await,
    }
}
