//! Messages that the broker has not confirmed yet.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::oneshot, time::Instant};

use super::{
    packet::{HEADER_BYTES_MAX, TOPIC_BYTES_MAX},
    poison_messages::{Number, PoisonMessages},
};

/// Maximum time to wait for a broker to confirm a message while the connection lasts.
const CONFIRMATION_WAIT_MAX: Duration = Duration::from_secs(60);

/// Reasons why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The broker said no.
    #[error("the broker refused it ({0}): let this user publish the topic in its access control")]
    Refused(String),
    /// The broker takes only smaller messages.
    #[error("the broker takes at most {0} bytes")]
    TooLarge(u32),
    /// No broker takes it.
    #[error("its topic is longer than MQTT allows: shorten the identifiers in it")]
    TopicTooLong,
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
    /// Messages of the same kind are treated alike by the broker's access control.
    pub(super) kind: String,
    pub(super) payload: Bytes,
    pub(super) done: oneshot::Sender<Result<(), PublishError>>,
}

/// Messages that are not confirmed yet, numbered in their order.
pub(super) struct Outbox {
    next: Number,
    unconfirmed: BTreeMap<Number, Publication>,
    /// Not yet sent on the current connection, without suspects.
    waiting: BTreeSet<Number>,
    /// Sent, by the number of the packet.
    sent: HashMap<u16, Number>,
    /// Times at which messages were sent. The first is one that is not confirmed.
    since: VecDeque<(u16, Number, Instant)>,
    last_packet: u16,
    /// Maximum number of messages that the broker has not confirmed yet.
    in_flight_max: u16,
    packet_bytes_max: u32,
    poison: PoisonMessages,
}

impl Outbox {
    /// A message that may be the cause of lost connections waits up to `wait_max` for a broker that confirms nothing.
    pub(super) fn new(wait_max: Duration) -> Self {
        Self {
            next: 0,
            unconfirmed: BTreeMap::new(),
            waiting: BTreeSet::new(),
            sent: HashMap::new(),
            since: VecDeque::new(),
            last_packet: 0,
            in_flight_max: 0,
            packet_bytes_max: 0,
            poison: PoisonMessages::new(wait_max),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    pub(super) fn add(&mut self, publication: Publication) {
        self.poison.add(self.next, &publication.kind);
        if !self.poison.is_suspect(self.next) {
            self.waiting.insert(self.next);
        }
        self.unconfirmed.insert(self.next, publication);
        self.next += 1;
    }

    /// Returns the time at which a message will have been sent for too long without a confirmation. Its place is free
    /// only on another connection: the broker may still confirm it on this one.
    pub(super) fn overdue_at(&self) -> Option<Instant> {
        self.since.front().map(|(_, _, since)| *since + CONFIRMATION_WAIT_MAX)
    }

    /// Takes note of a connection that was given up because of that. No message is to blame for it.
    pub(super) fn give_up_connection(&mut self) {
        self.sent.clear();
        self.since.clear();
    }

    /// Takes note of the end of a connection. Returns true if it has led to anything, so that the next one may come
    /// soon.
    pub(super) fn lose_connection(&mut self) -> bool {
        self.since.clear();
        let in_flight = self.sent.drain().map(|(_, number)| number);
        let kind = |number| Some((number, self.unconfirmed.get(&number)?.kind.as_str()));
        let in_flight: Vec<_> = in_flight.filter_map(kind).collect();
        let Some(number) = self.poison.lose(&in_flight) else {
            return self.poison.has_confirmed();
        };
        self.finish(number, Err(PublishError::ClosesConnections));
        true
    }

    /// A new connection: whatever is not confirmed goes out again.
    pub(super) fn start_again(&mut self, packet_bytes_max: u32, in_flight_max: u16) {
        self.poison.start_again();
        let trusted = self.unconfirmed.keys().filter(|number| !self.poison.is_suspect(**number));
        self.waiting = trusted.copied().collect();
        (self.packet_bytes_max, self.in_flight_max) = (packet_bytes_max, in_flight_max);
    }

    /// The next message to send, and the number of its packet.
    pub(super) fn next(&mut self) -> Option<(u16, &Publication)> {
        let number = loop {
            if self.sent.len() >= self.in_flight_max.into() {
                return None;
            }
            let number = self.poison.next(&self.waiting, self.sent.len())?;
            self.waiting.remove(&number);
            if !self.is_withdrawn(number) {
                let Some(too_large) = self.too_large(number) else { break number };
                self.finish(number, Err(too_large));
            }
            self.unconfirmed.remove(&number);
            self.poison.forget(number);
        };
        let packet = self.free_packet();
        self.poison.sent(number);
        self.sent.insert(packet, number);
        self.since.push_back((packet, number, Instant::now()));
        self.unconfirmed.get(&number).map(|publication| (packet, publication))
    }

    /// Returns true if the publication is gone, or nobody waits for it any more.
    fn is_withdrawn(&self, number: Number) -> bool {
        self.unconfirmed.get(&number).is_none_or(|publication| publication.done.is_closed())
    }

    /// A number that no packet in flight has, and that is not zero.
    fn free_packet(&mut self) -> u16 {
        loop {
            self.last_packet = self.last_packet.checked_add(1).unwrap_or(1);
            if !self.sent.contains_key(&self.last_packet) {
                return self.last_packet;
            }
        }
    }

    /// The error for a publication that the connection would break at.
    fn too_large(&self, number: Number) -> Option<PublishError> {
        let Publication { topic, payload, .. } = self.unconfirmed.get(&number)?;
        let bytes = topic.len() + payload.len() + HEADER_BYTES_MAX;
        if topic.len() > TOPIC_BYTES_MAX {
            Some(PublishError::TopicTooLong)
        } else if bytes > self.packet_bytes_max as usize {
            Some(PublishError::TooLarge(self.packet_bytes_max))
        } else {
            None
        }
    }

    /// Takes note that the broker has confirmed a packet, or refused it for a reason.
    pub(super) fn confirm(&mut self, packet: u16, refusal: Option<String>) {
        let Some(number) = self.sent.remove(&packet) else { return };
        while self.since.pop_front_if(|(packet, number, _)| self.sent.get(packet) != Some(number)).is_some() {}
        if let Some(publication) = self.unconfirmed.get(&number) {
            self.poison.confirmed(number, &publication.kind);
        }
        self.finish(number, refusal.map_or(Ok(()), |reason| Err(PublishError::Refused(reason))));
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

    /// Simulates a connection to a broker that takes one message after the other, until it closes the connection at one
    /// of these kinds. Returns true if it did.
    fn connect(outbox: &mut Outbox, closes_at: &[&str]) -> bool {
        outbox.start_again(u32::MAX, u16::MAX);
        let mut in_flight = VecDeque::new();
        loop {
            while let Some((packet, publication)) = outbox.next() {
                in_flight.push_back((packet, publication.topic.clone()));
            }
            let Some((packet, topic)) = in_flight.pop_front() else { break };
            if closes_at.contains(&topic.as_str()) {
                outbox.lose_connection();
                return true;
            }
            outbox.confirm(packet, None);
        }
        assert_eq!(outbox.len(), 0, "nothing is in flight, although something waits");
        false
    }

    #[tokio::test]
    async fn no_more_are_in_flight_than_the_broker_takes() {
        let mut outbox = Outbox::new(LONG);
        let mut confirmed: Vec<_> = (0..5).map(|_| add(&mut outbox, "a")).collect();
        outbox.start_again(u32::MAX, 2);
        let (first, _) = outbox.next().unwrap();
        let (second, _) = outbox.next().unwrap();
        assert!(first != second && outbox.next().is_none());
        outbox.confirm(second, None);
        let (third, _) = outbox.next().unwrap();
        assert!(third != first && outbox.next().is_none());
        assert_eq!(confirmed[1].try_recv(), Ok(Ok(())));
        assert!(confirmed[0].try_recv().is_err());
    }

    /// The places of what is never confirmed would be gone for as long as the connection lasts.
    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_a_message_is_not_confirmed_for_long() {
        let mut outbox = Outbox::new(LONG);
        let confirmed: Vec<_> = (0..3).map(|_| add(&mut outbox, "a")).collect();
        outbox.start_again(u32::MAX, u16::MAX);
        assert_eq!(outbox.overdue_at(), None);
        let mut packets = Vec::new();
        for _ in 0..3 {
            packets.push(outbox.next().unwrap().0);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let sent = Instant::now();
        outbox.confirm(packets[1], None);
        assert_eq!(outbox.overdue_at(), Some(sent + CONFIRMATION_WAIT_MAX - Duration::from_secs(3)));
        outbox.confirm(packets[0], None);
        assert_eq!(outbox.overdue_at(), Some(sent + CONFIRMATION_WAIT_MAX - Duration::from_secs(1)));
        outbox.give_up_connection();
        assert!(!outbox.lose_connection() || outbox.poison.has_confirmed());
        assert_eq!(outbox.overdue_at(), None);
        // Nobody waits for the last one any more, so it is not sent again.
        drop(confirmed);
        outbox.start_again(u32::MAX, u16::MAX);
        assert!(outbox.next().is_none());
        assert_eq!(outbox.len(), 0);
    }

    #[tokio::test]
    async fn what_no_packet_can_hold_is_given_up() {
        let mut outbox = Outbox::new(LONG);
        let mut topic_too_long = add(&mut outbox, &"a".repeat(65_536));
        let mut too_large = add(&mut outbox, &"a".repeat(65_535));
        outbox.start_again(60_000, 1);
        assert!(outbox.next().is_none());
        assert_eq!(topic_too_long.try_recv(), Ok(Err(PublishError::TopicTooLong)));
        assert_eq!(too_large.try_recv(), Ok(Err(PublishError::TooLarge(60_000))));
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
            assert_eq!(outbox.poison.is_suspect(outbox.next - 1), is_suspect);
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
