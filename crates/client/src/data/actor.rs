//! The task of a client, which owns its state.

use std::{future::pending, sync::Arc};

use link::mqtt::{Event, PACKET_BYTES_MAX, Received as Publication};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc, oneshot};
use types::{AppId, Kinded};

use super::{
    connect::{connection_error, is_permanent},
    connection_event::ConnectionEvent,
    downlinks::{Downlinks, PendingDownlink},
    link::{Link, LinkEvent},
    queue::{Queue, Received},
    subscriptions::Subscriptions,
    topics::{DROPPED, Topics},
};
use crate::{Error, Result};

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
pub(super) struct Actor {
    app_id: AppId,
    address: String,
    link: Link,
    /// True while there is a connection.
    is_connected: bool,
    events: broadcast::Sender<ConnectionEvent>,
    listeners: Vec<(Topics, Queue)>,
    subscriptions: Subscriptions,
    downlinks: Downlinks,
    /// Answers the caller that closes the client.
    closing: Option<oneshot::Sender<()>>,
}

impl Actor {
    pub(super) fn new(app_id: AppId, address: String, link: Link, events: broadcast::Sender<ConnectionEvent>) -> Self {
        Self {
            subscriptions: Subscriptions::new(app_id.clone()),
            app_id,
            address,
            link,
            is_connected: true,
            events,
            listeners: Vec::new(),
            downlinks: Downlinks::default(),
            closing: None,
        }
    }

    /// Runs until the client is closed or refused, or nobody uses it any more.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while self.closing.is_none() || !self.downlinks.is_empty() {
            tokio::select! {
                event = self.link.next() => if let Err(refusal) = self.handle(event) {
                    return self.refuse(&refusal);
                },
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
            if let Some(connection) = self.link.connection() {
                self.downlinks.send(connection);
            }
        }
        self.disconnect().await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Listen { topics, queue, done } => {
                self.subscriptions.wait(topics.filters(), done);
                self.listeners.push((topics, queue));
                self.update();
            }
            Command::Update => self.update(),
            Command::Send(downlink) => self.downlinks.push(&self.address, downlink),
            Command::Close { done, .. } => self.closing = Some(done),
        }
    }

    /// Takes an event of the connection; an error is final.
    fn handle(&mut self, event: LinkEvent) -> Result<()> {
        match event {
            LinkEvent::Connected => self.connected(),
            LinkEvent::Lost(lost) => {
                let was_connected = std::mem::replace(&mut self.is_connected, false);
                let event = if was_connected { ConnectionEvent::Disconnect } else { ConnectionEvent::Close };
                self.tell(event(lost.to_string()));
                if is_permanent(&lost) {
                    return Err(connection_error(&self.address, lost));
                }
            }
            LinkEvent::Reconnecting => self.tell(ConnectionEvent::Reconnect),
            LinkEvent::Came(Event::Subscribed { packet, refusal }) => {
                return self.subscriptions.answered(packet, refusal.is_none());
            }
            LinkEvent::Came(Event::Confirmed { packet, .. }) => self.downlinks.acknowledged(packet),
            LinkEvent::Came(Event::Received(message)) => self.deliver(&message),
            LinkEvent::Came(Event::Connected(_) | Event::Unsubscribed | Event::Pong) => {}
        }
        Ok(())
    }

    fn connected(&mut self) {
        self.is_connected = true;
        self.subscriptions.reset();
        self.downlinks.connection_lost();
        if let Some(connection) = self.link.connection() {
            self.downlinks.send(connection);
        }
        self.update();
        self.tell(ConnectionEvent::Connect);
    }

    /// Forgets the listeners that have gone, and their subscriptions.
    fn update(&mut self) {
        self.listeners.retain(|(_, queue)| !queue.is_closed());
        if let Some(connection) = self.link.connection() {
            let wanted: Vec<_> = self.listeners.iter().flat_map(|(topics, _)| topics.filters()).cloned().collect();
            self.subscriptions.update(&wanted, connection);
        }
    }

    fn deliver(&mut self, message: &Publication) {
        let Some(connection) = self.link.connection() else { return };
        // Dropped, and thereby sent, at the latest when this returns, unless a listener has it.
        let acknowledger = message.packet.map(|packet| connection.arrived(packet).when_dropped());
        let topic = message.topic.strip_prefix(self.app_id.as_str()).and_then(|topic| topic.strip_prefix('/'));
        let Some(topic) = topic else { return };
        if topic == DROPPED {
            return self.tell_dropped(&message.payload);
        }
        let Some((dev_id, levels)) = topic.strip_prefix("devices/").and_then(|below| below.split_once('/')) else {
            return;
        };
        let Ok(dev_id) = dev_id.parse() else { return };
        let hearing = self.listeners.iter().filter(|(topics, _)| topics.matches(topic));
        if message.payload.len() > PACKET_BYTES_MAX as usize {
            return hearing.for_each(|(_, queue)| queue.miss(1));
        }
        let received =
            Received { _acknowledger: acknowledger.map(Arc::new), ..Received::new(dev_id, levels, &message.payload) };
        hearing.for_each(|(_, queue)| queue.push(received.clone()));
        if self.listeners.iter().any(|(_, queue)| queue.is_closed()) {
            self.update();
        }
    }

    /// Tells the streams that want to know how many messages of this client the broker has dropped.
    fn tell_dropped(&self, event: &[u8]) {
        let Ok(dropped) = serde_json::from_slice::<Dropped>(event) else { return };
        if dropped.client_id == self.link.client_id() {
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

    async fn disconnect(self) {
        self.link.disconnect().await;
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
