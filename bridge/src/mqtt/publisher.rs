//! Publishes messages in order; each counts as published once the broker has confirmed it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connection::{Client, Connection, Event, Lost, Role},
    endpoint::Endpoint,
    subscriber::{ProtocolChoice, report},
};
use crate::backoff::Backoff;

/// Maximum number of messages that the broker has not confirmed yet.
const IN_FLIGHT_MAX: u16 = 4096;

/// How many connections in a row may be lost with the same message first in flight, until it counts as the cause.
const LOSSES_MAX: u32 = 10;

/// Room for the header of a PUBLISH packet, besides topic and payload.
const HEADER_BYTES_MAX: usize = 16;

/// Why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PublishError {
    /// The broker said no.
    #[error("the broker refused it ({0}): let this user publish the topic in its access control")]
    Refused(String),
    /// The broker takes only smaller messages.
    #[error("the broker takes at most {0} bytes")]
    TooLarge(u32),
    /// The broker closes the connection because of it.
    #[error("the broker closed {LOSSES_MAX} connections in a row when it was sent")]
    ClosesConnections,
    /// The publisher was dropped.
    #[error("the bridge is stopping")]
    Stopped,
}

/// A connection for publishing that reconnects by itself. While it is down, messages wait.
pub(crate) struct Publisher {
    queue: mpsc::Sender<Publication>,
    connected: watch::Receiver<bool>,
    _task: AbortOnDropHandle<()>,
}

struct Publication {
    topic: String,
    payload: Bytes,
    done: oneshot::Sender<Result<(), PublishError>>,
}

impl Publisher {
    /// Connects in the background.
    pub(crate) fn start(endpoint: Endpoint) -> Self {
        let (queue, publications) = mpsc::channel(IN_FLIGHT_MAX.into());
        let (sender, connected) = watch::channel(false);
        let task = Task { endpoint, publications, connected: sender, outbox: Outbox::default() };
        Self { queue, connected, _task: AbortOnDropHandle::new(tokio::spawn(task.run())) }
    }

    /// Whether the broker is connected, now and as it changes.
    pub(crate) fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Publishes a message, and waits until the broker has confirmed it, however long it is away.
    pub(crate) async fn publish(&self, topic: String, payload: Bytes) -> Result<(), PublishError> {
        let (done, confirmed) = oneshot::channel();
        self.queue.send(Publication { topic, payload, done }).await.map_err(|_| PublishError::Stopped)?;
        confirmed.await.unwrap_or(Err(PublishError::Stopped))
    }
}

struct Task {
    endpoint: Endpoint,
    publications: mpsc::Receiver<Publication>,
    connected: watch::Sender<bool>,
    outbox: Outbox,
}

/// What is not confirmed yet. Publications are numbered in their order.
#[derive(Default)]
struct Outbox {
    next: u64,
    unconfirmed: BTreeMap<u64, Publication>,
    /// Not yet given to the current connection.
    waiting: VecDeque<u64>,
    /// Given to the connection, not yet sent.
    given: VecDeque<u64>,
    /// Sent, by the number of the packet.
    sent: HashMap<u16, u64>,
    packet_bytes_max: Option<u32>,
    /// Which publication was the first in flight when connections were lost, and how many in a row.
    suspect: Option<(u64, u32)>,
}

impl Task {
    async fn run(mut self) {
        let (mut backoff, mut choice, mut is_failing) = (Backoff::new(), ProtocolChoice::default(), false);
        loop {
            let role = Role::Publisher { in_flight_max: IN_FLIGHT_MAX };
            let mut connection = Connection::open(&self.endpoint, choice.next(), role);
            let lost = self.serve(&mut connection).await;
            let Some(lost) = lost else { return connection.client.disconnect().await };
            let has_connected = self.connected.send_replace(false);
            choice.ended(has_connected, &lost);
            if has_connected {
                self.outbox.lose_connection();
                backoff.reset();
                is_failing = false;
            }
            report(&lost, &self.endpoint, is_failing);
            is_failing = true;
            backoff.pause().await;
        }
    }

    /// Publishes until the connection is lost; none when nobody can publish any more.
    async fn serve(&mut self, connection: &mut Connection) -> Option<Lost> {
        loop {
            let has_room = self.outbox.unconfirmed.len() < IN_FLIGHT_MAX.into();
            tokio::select! {
                event = connection.next() => match event {
                    Ok(Event::Connected { packet_bytes_max, .. }) => {
                        tracing::info!(broker = %self.endpoint.url, "ready to publish");
                        self.connected.send_replace(true);
                        self.outbox.start_again(packet_bytes_max);
                    }
                    Ok(event) => self.outbox.handle(event),
                    Err(lost) => return Some(lost),
                },
                publication = self.publications.recv(), if has_room => self.outbox.add(publication?),
            }
            if *self.connected.borrow() {
                self.outbox.give_to(&connection.client);
            }
        }
    }
}

impl Outbox {
    fn add(&mut self, publication: Publication) {
        self.waiting.push_back(self.next);
        self.unconfirmed.insert(self.next, publication);
        self.next += 1;
    }

    /// Notes what was first in flight, and gives it up if that has happened too often.
    fn lose_connection(&mut self) {
        let in_flight = self.sent.values().chain(&self.given).min().copied();
        self.given.clear();
        self.sent.clear();
        let Some(first) = in_flight else { return };
        let before = self.suspect.filter(|(number, _)| *number == first);
        let losses = before.map_or(0, |(_, losses)| losses) + 1;
        self.suspect = Some((first, losses));
        if losses >= LOSSES_MAX {
            self.suspect = None;
            self.finish(first, Err(PublishError::ClosesConnections));
        }
    }

    /// A new connection: whatever is not confirmed goes out again, in order.
    fn start_again(&mut self, packet_bytes_max: Option<u32>) {
        self.waiting = self.unconfirmed.keys().copied().collect();
        self.packet_bytes_max = packet_bytes_max;
    }

    fn give_to(&mut self, client: &Client) {
        while let Some(number) = self.waiting.front().copied() {
            // Behind a loss, the first one goes alone, so that no other can be the cause of the next loss.
            let is_alone = self.given.is_empty() && self.sent.is_empty();
            if self.suspect.is_some() && !is_alone {
                return;
            }
            if let Some(too_large) = self.too_large(number) {
                self.waiting.pop_front();
                self.finish(number, Err(too_large));
                continue;
            }
            let is_given = self
                .unconfirmed
                .get(&number)
                .is_none_or(|publication| client.publish(&publication.topic, publication.payload.clone()));
            if !is_given {
                return;
            }
            self.waiting.pop_front();
            self.given.push_back(number);
        }
    }

    /// The error for a publication that the connection would break at.
    fn too_large(&self, number: u64) -> Option<PublishError> {
        let (publication, bytes_max) = (self.unconfirmed.get(&number)?, self.packet_bytes_max?);
        let bytes = publication.topic.len() + publication.payload.len() + HEADER_BYTES_MAX;
        (bytes > bytes_max as usize).then_some(PublishError::TooLarge(bytes_max))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(packet) => {
                if let Some(number) = self.given.pop_front() {
                    self.sent.insert(packet, number);
                }
            }
            Event::Confirmed { packet, refusal } => {
                self.suspect = None;
                if let Some(number) = self.sent.remove(&packet) {
                    self.finish(number, refusal.map_or(Ok(()), |reason| Err(PublishError::Refused(reason))));
                }
            }
            Event::Connected { .. } | Event::Subscribed { .. } | Event::Received(_) => {}
        }
    }

    fn finish(&mut self, number: u64, result: Result<(), PublishError>) {
        if let Some(publication) = self.unconfirmed.remove(&number) {
            // Nobody waits for it if the bridge is stopping.
            let _ = publication.done.send(result);
        }
    }
}
