//! What the broker has not confirmed yet.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{
    connection::{Client, Event},
    suspects::{Number, Suspects},
};

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
    #[error("the broker closes the connection whenever it is sent: see the broker's log, and its access control")]
    ClosesConnections,
    /// The publisher was dropped.
    #[error("the bridge is stopping")]
    Stopped,
}

/// A message, and who waits for the result.
pub(super) struct Publication {
    pub(super) topic: String,
    /// What the broker's access control treats alike.
    pub(super) kind: String,
    pub(super) payload: Bytes,
    pub(super) done: oneshot::Sender<Result<(), PublishError>>,
}

/// What is not confirmed yet. Publications are numbered in their order.
pub(super) struct Outbox {
    next: Number,
    unconfirmed: BTreeMap<Number, Publication>,
    /// Not yet given to the current connection, without suspects.
    waiting: BTreeSet<Number>,
    /// Given to the connection, not yet sent.
    given: VecDeque<Number>,
    /// Sent, by the number of the packet.
    sent: HashMap<u16, Number>,
    packet_bytes_max: Option<u32>,
    suspects: Suspects,
}

impl Outbox {
    /// A message that may be the cause of lost connections waits up to `wait_max` for a broker that confirms nothing.
    pub(super) fn new(wait_max: Duration) -> Self {
        Self {
            next: 0,
            unconfirmed: BTreeMap::new(),
            waiting: BTreeSet::new(),
            given: VecDeque::new(),
            sent: HashMap::new(),
            packet_bytes_max: None,
            suspects: Suspects::new(wait_max),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    pub(super) fn add(&mut self, publication: Publication) {
        self.suspects.add(self.next, &publication.kind);
        if !self.suspects.is_suspect(self.next) {
            self.waiting.insert(self.next);
        }
        self.unconfirmed.insert(self.next, publication);
        self.next += 1;
    }

    /// Takes note of the end of a connection; whether it has led to anything, so that the next one may come soon.
    pub(super) fn lose_connection(&mut self) -> bool {
        let in_flight = self.sent.drain().map(|(_, number)| number).chain(self.given.drain(..));
        let kind = |number| Some((number, self.unconfirmed.get(&number)?.kind.as_str()));
        let in_flight: Vec<_> = in_flight.filter_map(kind).collect();
        let Some(number) = self.suspects.lose(&in_flight) else {
            return self.suspects.has_confirmed();
        };
        self.finish(number, Err(PublishError::ClosesConnections));
        true
    }

    /// A new connection: whatever is not confirmed goes out again.
    pub(super) fn start_again(&mut self, packet_bytes_max: Option<u32>) {
        self.suspects.start_again();
        let trusted = self.unconfirmed.keys().filter(|number| !self.suspects.is_suspect(**number));
        self.waiting = trusted.copied().collect();
        self.packet_bytes_max = packet_bytes_max;
    }

    /// Gives the connection what may be sent.
    pub(super) fn give_to(&mut self, client: &Client) {
        let in_flight = |this: &Self| this.given.len() + this.sent.len();
        while let Some(number) = self.suspects.next(&self.waiting, in_flight(self)) {
            if let Some(too_large) = self.too_large(number) {
                self.waiting.remove(&number);
                self.suspects.forget(number);
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
            self.waiting.remove(&number);
            self.suspects.sent(number);
            self.given.push_back(number);
        }
    }

    /// The error for a publication that the connection would break at.
    fn too_large(&self, number: Number) -> Option<PublishError> {
        let (publication, bytes_max) = (self.unconfirmed.get(&number)?, self.packet_bytes_max?);
        let bytes = publication.topic.len() + publication.payload.len() + HEADER_BYTES_MAX;
        (bytes > bytes_max as usize).then_some(PublishError::TooLarge(bytes_max))
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(packet) => {
                if let Some(number) = self.given.pop_front() {
                    self.sent.insert(packet, number);
                }
            }
            Event::Confirmed { packet, refusal } => {
                if let Some(number) = self.sent.remove(&packet) {
                    if let Some(publication) = self.unconfirmed.get(&number) {
                        self.suspects.confirmed(number, &publication.kind);
                    }
                    self.finish(number, refusal.map_or(Ok(()), |reason| Err(PublishError::Refused(reason))));
                }
            }
            Event::Connected { .. } | Event::Subscribed { .. } | Event::Unsubscribed | Event::Received(_) => {}
        }
    }

    fn finish(&mut self, number: Number, result: Result<(), PublishError>) {
        if let Some(publication) = self.unconfirmed.remove(&number) {
            // Nobody waits for it if the bridge is stopping.
            let _ = publication.done.send(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Confirmed = oneshot::Receiver<Result<(), PublishError>>;

    const LONG: Duration = Duration::from_secs(3600);
    const GIVEN_UP: Result<Result<(), PublishError>, oneshot::error::TryRecvError> =
        Ok(Err(PublishError::ClosesConnections));

    fn add(outbox: &mut Outbox, kind: &str) -> Confirmed {
        let (done, confirmed) = oneshot::channel();
        let (topic, kind) = (kind.to_owned(), kind.to_owned());
        outbox.add(Publication { topic, kind, payload: Bytes::new(), done });
        confirmed
    }

    /// A connection to a broker that takes one message after the other, until it closes the connection at one of these
    /// kinds; whether it did.
    fn connect(outbox: &mut Outbox, closes_at: &[&str]) -> bool {
        let (client, _connection) =
            rumqttc::AsyncClient::new(rumqttc::MqttOptions::new("me", "localhost", 1883), 10_000);
        let client = Client::V4(client);
        outbox.start_again(None);
        outbox.give_to(&client);
        while let Some(number) = outbox.given.front().copied() {
            if closes_at.contains(&outbox.unconfirmed[&number].topic.as_str()) {
                outbox.lose_connection();
                return true;
            }
            outbox.handle(Event::Sent(1));
            outbox.handle(Event::Confirmed { packet: 1, refusal: None });
            outbox.give_to(&client);
        }
        assert_eq!(outbox.len(), 0, "nothing is in flight, although something waits");
        false
    }

    #[tokio::test]
    async fn a_broker_that_closes_every_connection_loses_nothing() {
        let mut outbox = Outbox::new(LONG);
        let mut confirmed: Vec<_> = (0..1000).map(|_| add(&mut outbox, "a")).collect();
        for _ in 0..100 {
            assert!(connect(&mut outbox, &["a"]));
        }
        assert!(confirmed.iter_mut().all(|confirmed| confirmed.try_recv().is_err()), "one was given up");
        assert!(!connect(&mut outbox, &[]));
        assert!(confirmed.iter_mut().all(|confirmed| confirmed.try_recv() == Ok(Ok(()))));
    }

    #[tokio::test]
    async fn what_closes_connections_is_given_up_and_nothing_else() {
        let mut outbox = Outbox::new(LONG);
        let mut fatal: Vec<_> = (0..3).map(|_| add(&mut outbox, "fatal")).collect();
        let mut others: Vec<_> = (0..1000).map(|_| add(&mut outbox, "other")).collect();
        let mut connections = 0;
        while connect(&mut outbox, &["fatal"]) {
            connections += 1;
            assert!(connections < 100, "connections are lost again and again");
            others.push(add(&mut outbox, "other"));
        }
        assert!(fatal.iter_mut().all(|fatal| fatal.try_recv() == GIVEN_UP));
        assert!(others.iter_mut().all(|other| other.try_recv() == Ok(Ok(()))));
        // Each further one of this kind takes one connection, also when there is no other message.
        for _ in 0..3 {
            let mut fatal = add(&mut outbox, "fatal");
            assert!(connect(&mut outbox, &["fatal"]));
            assert_eq!(fatal.try_recv(), GIVEN_UP);
        }
    }

    /// Then there is no room for others, which could show that the broker works.
    #[tokio::test]
    async fn few_other_messages_are_enough_to_find_a_cause() {
        let mut outbox = Outbox::new(LONG);
        let mut fatal: Vec<_> = (0..10).map(|_| add(&mut outbox, "fatal")).collect();
        let _others: Vec<_> = (0..4).map(|_| add(&mut outbox, "other")).collect();
        for _ in 0..40 {
            connect(&mut outbox, &["fatal"]);
        }
        assert!(fatal.iter_mut().all(|fatal| fatal.try_recv() == GIVEN_UP));
    }

    #[tokio::test]
    async fn a_kind_that_is_taken_again_is_no_longer_suspected() {
        let mut outbox = Outbox::new(LONG);
        let mut kept = vec![add(&mut outbox, "mended")];
        while connect(&mut outbox, &["mended"]) {
            kept.push(add(&mut outbox, "other"));
        }
        for is_suspect in [true, false] {
            let mut mended = add(&mut outbox, "mended");
            assert_eq!(outbox.suspects.is_suspect(outbox.next - 1), is_suspect);
            assert!(!connect(&mut outbox, &[]));
            assert_eq!(mended.try_recv(), Ok(Ok(())));
        }
    }

    #[tokio::test]
    async fn the_only_message_is_given_up_when_it_has_waited() {
        for (wait_max, is_given_up) in [(LONG, false), (Duration::ZERO, true)] {
            let mut outbox = Outbox::new(wait_max);
            let mut fatal = add(&mut outbox, "fatal");
            assert!(connect(&mut outbox, &["fatal"]));
            assert_eq!(fatal.try_recv() == GIVEN_UP, is_given_up);
        }
    }
}
