//! Publishes messages in order; each counts as published once the broker has confirmed it.

use std::time::Duration;

use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connection::BrokerConnection,
    endpoint::Endpoint,
    lost::Lost,
    outbox::{Outbox, Publication, PublishError},
    packet::{Event, Role},
    poison_messages::IN_FLIGHT_MAX,
    subscriber::{ProtocolChoice, report},
};
use crate::backoff::Backoff;

/// The longest pause behind a connection that was accepted, but on which nothing was confirmed.
const FRUITLESS_PAUSE_MAX: Duration = Duration::from_millis(200);

/// A connection for publishing that reconnects by itself. While it is down, messages wait.
pub struct Publisher {
    queue: mpsc::Sender<Publication>,
    connected: watch::Receiver<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Publisher {
    /// Connects in the background. A message at which the broker may close connections waits up to `wait_max` for one
    /// that confirms nothing.
    pub fn start(endpoint: Endpoint, wait_max: Duration) -> Self {
        let (queue, publications) = mpsc::channel(IN_FLIGHT_MAX.into());
        let (sender, connected) = watch::channel(false);
        let task = Task { endpoint, publications, connected: sender, outbox: Outbox::new(wait_max) };
        Self { queue, connected, _task: AbortOnDropHandle::new(tokio::spawn(task.run())) }
    }

    /// Returns a receiver of the state of the connection: true while the broker is connected.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Publishes a message, and waits until the broker has confirmed it, even if it is away for long. The broker's
    /// access control treats messages of the same `kind` alike. Fails if the broker does not take it.
    pub async fn publish(&self, topic: String, kind: String, payload: Bytes) -> Result<(), PublishError> {
        let (done, confirmed) = oneshot::channel();
        self.queue.send(Publication { topic, kind, payload, done }).await.map_err(|_| PublishError::Stopped)?;
        confirmed.await.unwrap_or(Err(PublishError::Stopped))
    }
}

struct Task {
    endpoint: Endpoint,
    publications: mpsc::Receiver<Publication>,
    connected: watch::Sender<bool>,
    outbox: Outbox,
}

impl Task {
    async fn run(mut self) {
        let (mut backoff, mut choice, mut is_failing) = (Backoff::default(), ProtocolChoice::default(), false);
        let mut fruitless = Backoff::default();
        loop {
            let lost = match BrokerConnection::open(&self.endpoint, choice.next(), Role::Publisher).await {
                Ok(mut connection) => match self.serve(&mut connection).await {
                    Some(lost) => lost,
                    None => return connection.disconnect().await,
                },
                Err(lost) => lost,
            };
            let has_connected = self.connected.send_replace(false);
            choice.ended(has_connected, &lost);
            if has_connected && self.outbox.lose_connection() {
                fruitless.reset();
                is_failing = false;
            }
            report(&lost, &self.endpoint, is_failing);
            is_failing = true;
            if has_connected {
                backoff.reset();
                fruitless.pause_at_most(FRUITLESS_PAUSE_MAX).await;
            } else {
                backoff.pause().await;
            }
        }
    }

    /// Publishes until the connection is lost; `None` when nobody can publish any more.
    async fn serve(&mut self, connection: &mut BrokerConnection) -> Option<Lost> {
        let mut added = Vec::new();
        loop {
            let overdue_at = self.outbox.overdue_at();
            let room = usize::from(IN_FLIGHT_MAX).saturating_sub(self.outbox.len());
            tokio::select! {
                event = connection.next() => match event {
                    Ok(event) => self.handle(event),
                    Err(lost) => return Some(lost),
                },
                () = sleep_until(overdue_at.unwrap_or_else(Instant::now)), if overdue_at.is_some() => {
                    self.outbox.give_up_connection();
                    return Some(Lost::because("the broker does not confirm a message"));
                }
                count = self.publications.recv_many(&mut added, room), if room > 0 => {
                    if count == 0 {
                        return None;
                    }
                    added.drain(..).for_each(|publication| self.outbox.add(publication));
                }
            }
            while let Some(event) = connection.next_if_read() {
                self.handle(event);
            }
            while connection.has_room()
                && let Some((packet, publication)) = self.outbox.next()
            {
                connection.publish(packet, &publication.topic, &publication.payload);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connected(broker) => {
                tracing::info!(broker = %self.endpoint.url, "ready to publish");
                self.connected.send_replace(true);
                self.outbox.start_again(broker.packet_bytes_max, broker.in_flight_max);
            }
            Event::Confirmed { packet, refusal } => self.outbox.confirm(packet, refusal),
            Event::Subscribed { .. } | Event::Unsubscribed | Event::Received(_) | Event::Pong => {}
        }
    }
}
