//! Queue of a session: messages that wait, and messages that the client has not acknowledged.

use std::collections::VecDeque;

use crate::session::message::{Delivery, DeliveryQos};

/// Maximum number of messages of a session; beyond that, the oldest is dropped.
pub(crate) const MESSAGES_MAX: usize = 1000;

/// Queue length from which only live messages are added.
pub(crate) const SPARE_MAX: usize = MESSAGES_MAX / 10;

/// Maximum size of a session's messages. They are shared by the sessions of an application.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Above this capacity, a queue that is nearly empty gives its memory back.
const CAPACITY_KEPT: usize = 64;

/// The messages of one session, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Delivery>,
    /// Those that were sent with QoS 1 and are not acknowledged, by packet identifier.
    in_flight: VecDeque<(u16, Delivery)>,
    /// Number of messages in flight, from the front, that were sent on this connection.
    sent: usize,
    /// Number of waiting messages with QoS 0.
    unreliable: usize,
    bytes: usize,
    last_packet_id: u16,
    /// Messages of the log with smaller numbers may have been sent before the process was restarted.
    sent_below: u64,
}

/// A message that is to be sent now.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) delivery: Delivery,
    /// None with QoS 0.
    pub(crate) packet_id: Option<u16>,
    /// True if it was or may have been sent before, on another connection.
    pub(crate) is_duplicate: bool,
}

impl Outbox {
    /// Adds a message; returns how many were dropped to make room: those with QoS 0 first, then the oldest.
    pub(crate) fn push(&mut self, delivery: Delivery) -> u64 {
        self.bytes += delivery.bytes();
        self.unreliable += usize::from(delivery.qos == DeliveryQos::AtMostOnce);
        self.waiting.push_back(delivery);
        let mut dropped = 0;
        while (self.len() > MESSAGES_MAX || self.bytes > BYTES_MAX) && self.drop_one() {
            dropped += 1;
        }
        dropped
    }

    /// Takes the next message, if the client has acknowledged all but `window - 1`.
    pub(crate) fn next(&mut self, window: usize) -> Option<Sending> {
        if let Some((packet_id, delivery)) = self.in_flight.get(self.sent).filter(|_| self.sent < window) {
            self.sent += 1;
            return Some(Sending { delivery: delivery.clone(), packet_id: Some(*packet_id), is_duplicate: true });
        }
        let is_reliable = self.waiting.front()?.qos == DeliveryQos::AtLeastOnce;
        if self.sent < self.in_flight.len() || (is_reliable && self.in_flight.len() >= window) {
            return None;
        }
        let delivery = self.waiting.pop_front()?;
        release(&mut self.waiting);
        if !is_reliable {
            self.unreliable -= 1;
            self.bytes -= delivery.bytes();
            return Some(Sending { delivery, packet_id: None, is_duplicate: false });
        }
        let packet_id = self.unused_packet_id();
        self.in_flight.push_back((packet_id, delivery.clone()));
        self.sent += 1;
        let is_duplicate =
            self.sent_below > 0 && delivery.stored.as_ref().is_some_and(|it| it.number < self.sent_below);
        Some(Sending { delivery, packet_id: Some(packet_id), is_duplicate })
    }

    /// Forgets a message that the client has; returns false if none was sent with this identifier.
    pub(crate) fn acknowledge(&mut self, packet_id: u16) -> bool {
        let sent = self.in_flight.iter().take(self.sent);
        let Some(at) = sent.into_iter().position(|(id, _)| *id == packet_id) else { return false };
        if let Some((_, delivery)) = self.in_flight.remove(at) {
            self.bytes -= delivery.bytes();
        }
        self.sent -= 1;
        release(&mut self.in_flight);
        true
    }

    /// The connection is lost: what was not acknowledged is sent again on the next, in the same order.
    pub(crate) fn disconnected(&mut self) {
        self.sent = 0;
        let bytes = &mut self.bytes;
        self.waiting.retain(|delivery| {
            let stays = delivery.qos == DeliveryQos::AtLeastOnce;
            *bytes -= if stays { 0 } else { delivery.bytes() };
            stays
        });
        self.unreliable = 0;
    }

    /// Returns the numbers of messages and of bytes that may be added behind live messages: zero once a tenth is in
    /// use.
    pub(crate) fn spare(&self) -> (usize, usize) {
        match SPARE_MAX.checked_sub(self.len()) {
            Some(messages) if messages > 0 && self.bytes <= BYTES_MAX / 10 => (messages, BYTES_MAX / 2 - self.bytes),
            _ => (0, 0),
        }
    }

    pub(crate) fn is_more_than_half_full(&self) -> bool {
        self.len() > MESSAGES_MAX / 2 || self.bytes > BYTES_MAX / 2
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// The messages of the log that are in flight, with their packet identifiers, and the first that waits.
    pub(crate) fn logged(&self) -> (Vec<(u16, u64)>, Option<u64>) {
        let number = |delivery: &Delivery| delivery.stored.as_ref().map(|stored| stored.number);
        let in_flight = self.in_flight.iter().filter_map(|(packet_id, delivery)| Some((*packet_id, number(delivery)?)));
        (in_flight.collect(), self.waiting.iter().find_map(number))
    }

    /// Messages of the log with numbers below this may have been sent before, by a process that used the packet
    /// identifiers that follow `last_packet_id` for them.
    pub(crate) fn repeat(&mut self, sent_below: u64, last_packet_id: u16) {
        (self.sent_below, self.last_packet_id) = (sent_below, last_packet_id);
    }

    /// Returns the arguments of the last [`Outbox::repeat`].
    pub(crate) fn repeated(&self) -> (u64, u16) {
        (self.sent_below, self.last_packet_id)
    }

    /// The messages that wait; there are no others if no client has had the session.
    pub(crate) fn into_waiting(self) -> VecDeque<Delivery> {
        self.waiting
    }

    /// Adds a message that was in flight before the process was restarted.
    pub(crate) fn restore_in_flight(&mut self, packet_id: u16, delivery: Delivery) {
        self.bytes += delivery.bytes();
        self.in_flight.push_back((packet_id, delivery));
    }

    /// The messages that the client must get.
    pub(crate) fn reliable(&mut self) -> impl Iterator<Item = &mut Delivery> {
        let waiting = self.waiting.iter_mut().filter(|delivery| delivery.qos == DeliveryQos::AtLeastOnce);
        self.in_flight.iter_mut().map(|(_, delivery)| delivery).chain(waiting)
    }

    /// About how much memory its messages take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory of the queue itself in bytes, even if it is empty.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Delivery>() + self.in_flight.capacity() * size_of::<(u16, Delivery)>()
    }

    /// Drops a message that waits; returns false if none does.
    pub(crate) fn drop_one(&mut self) -> bool {
        let is_unreliable = |delivery: &Delivery| delivery.qos == DeliveryQos::AtMostOnce;
        let at = if self.unreliable == 0 { Some(0) } else { self.waiting.iter().position(is_unreliable) };
        let Some(dropped) = at.and_then(|at| self.waiting.remove(at)) else { return false };
        self.bytes -= dropped.bytes();
        self.unreliable -= usize::from(is_unreliable(&dropped));
        release(&mut self.waiting);
        true
    }

    /// The next identifier that is not in use. There are far fewer messages in flight than identifiers.
    fn unused_packet_id(&mut self) -> u16 {
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if self.in_flight.iter().all(|(used, _)| *used != self.last_packet_id) {
                return self.last_packet_id;
            }
        }
    }
}

fn release<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > CAPACITY_KEPT && queue.len() < queue.capacity() / 8 {
        queue.shrink_to(2 * queue.len());
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::session::message::Message;

    fn delivery(number: usize, qos: DeliveryQos) -> Delivery {
        let payload = Bytes::from(number.to_string());
        let message = Message { topic: "t".to_owned(), payload, qos, properties: None, publisher: None, _memory: None };
        Delivery { message: Arc::new(message), qos, subscription_ids: Vec::new(), stored: None }
    }

    fn number(sending: &Sending) -> usize {
        std::str::from_utf8(&sending.delivery.message.payload).unwrap().parse().unwrap()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(bool),
        Send,
        /// Acknowledges one of those that the client has, not always the oldest.
        Acknowledge(prop::sample::Index),
        Reconnect {
            window: usize,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<bool>().prop_map(Step::Push),
            4 => Just(Step::Send),
            3 => any::<prop::sample::Index>().prop_map(Step::Acknowledge),
            1 => (1..5_usize).prop_map(|window| Step::Reconnect { window }),
        ]
    }

    /// Knowledge of a client, and of an observer that forgets nothing, about an outbox.
    #[derive(Default)]
    struct Model {
        /// Those of QoS 1 that are not acknowledged, in order.
        owed: BTreeSet<usize>,
        /// Of these, the ones that the client got on any connection.
        seen: BTreeSet<usize>,
        /// Messages not acknowledged on this connection, with packet identifiers.
        in_hand: Vec<(u16, usize)>,
        /// The last message of QoS 1 on this connection.
        last: Option<usize>,
    }

    proptest! {
        /// Over any number of connections, the client gets every message of QoS 1 until it acknowledges it, in order,
        /// within its window, marked as a duplicate exactly if it got it before.
        #[test]
        fn keeps_what_is_not_acknowledged(steps in prop::collection::vec(step(), 1..300)) {
            let (mut outbox, mut model, mut window) = (Outbox::default(), Model::default(), 3);
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(true) => {
                        prop_assert_eq!(outbox.push(delivery(at, DeliveryQos::AtLeastOnce)), 0);
                        model.owed.insert(at);
                    }
                    Step::Push(false) => prop_assert_eq!(outbox.push(delivery(at, DeliveryQos::AtMostOnce)), 0),
                    Step::Send => {
                        let Some(sending) = outbox.next(window) else { continue };
                        let Some(packet_id) = sending.packet_id else { continue };
                        let number = number(&sending);
                        prop_assert!(packet_id > 0 && model.in_hand.iter().all(|(used, _)| *used != packet_id));
                        prop_assert_eq!(sending.is_duplicate, !model.seen.insert(number));
                        prop_assert!(model.last < Some(number), "{} after {:?}", number, model.last);
                        let is_next = model.owed.iter().find(|owed| Some(**owed) > model.last);
                        prop_assert_eq!(is_next, Some(&number));
                        model.last = Some(number);
                        model.in_hand.push((packet_id, number));
                        prop_assert!(model.in_hand.len() <= window);
                    }
                    Step::Acknowledge(index) if !model.in_hand.is_empty() => {
                        let (packet_id, number) = model.in_hand.remove(index.index(model.in_hand.len()));
                        prop_assert!(outbox.acknowledge(packet_id) && !outbox.acknowledge(packet_id));
                        model.owed.remove(&number);
                    }
                    Step::Acknowledge(_) => {}
                    Step::Reconnect { window: other } => {
                        outbox.disconnected();
                        model.in_hand.clear();
                        (model.last, window) = (None, other);
                    }
                }
            }
            outbox.disconnected();
            let mut rest = Vec::new();
            while let Some(sending) = outbox.next(1) {
                rest.push(number(&sending));
                prop_assert!(outbox.acknowledge(sending.packet_id.unwrap()));
            }
            prop_assert_eq!(rest, model.owed.into_iter().collect::<Vec<_>>());
            prop_assert_eq!((outbox.bytes, outbox.unreliable), (0, 0));
        }
    }

    #[test]
    fn drops_the_oldest_when_it_is_full_but_those_of_qos_0_first() {
        let mut outbox = Outbox::default();
        for number in 0..MESSAGES_MAX {
            let qos = if number == 500 { DeliveryQos::AtMostOnce } else { DeliveryQos::AtLeastOnce };
            assert_eq!(outbox.push(delivery(number, qos)), 0);
        }
        let first = outbox.next(1).unwrap();
        assert_eq!(number(&first), 0);
        // 500 goes first, then 1: what is in flight stays.
        for number in 0..2 {
            assert_eq!(outbox.push(delivery(MESSAGES_MAX + number, DeliveryQos::AtLeastOnce)), 1);
        }
        outbox.acknowledge(first.packet_id.unwrap());
        let rest: Vec<_> = std::iter::from_fn(|| outbox.next(MESSAGES_MAX)).map(|sending| number(&sending)).collect();
        let expected: Vec<_> = (2..MESSAGES_MAX + 2).filter(|number| *number != 500).collect();
        assert_eq!(rest, expected);
    }

    #[test]
    fn has_room_behind_live_messages_until_a_tenth_is_in_use() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.spare(), (SPARE_MAX, BYTES_MAX / 2));
        for number in 1..SPARE_MAX {
            outbox.push(delivery(number, DeliveryQos::AtLeastOnce));
        }
        assert_eq!(outbox.spare().0, 1);
        outbox.push(delivery(0, DeliveryQos::AtLeastOnce));
        assert_eq!(outbox.spare(), (0, 0));
    }

    #[test]
    fn is_bounded_by_size_too() {
        let mut outbox = Outbox::default();
        let large = vec![0; BYTES_MAX / 3];
        let message = Message {
            payload: large.into(),
            ..Arc::try_unwrap(delivery(0, DeliveryQos::AtLeastOnce).message).unwrap()
        };
        let large = Delivery {
            message: Arc::new(message),
            qos: DeliveryQos::AtLeastOnce,
            subscription_ids: Vec::new(),
            stored: None,
        };
        let dropped: u64 = (0..10).map(|_| outbox.push(large.clone())).sum();
        assert_eq!((dropped, outbox.waiting.len()), (8, 2));
    }

    #[test]
    fn packet_identifiers_go_round_without_meeting_one_in_use() {
        let mut outbox = Outbox::default();
        outbox.push(delivery(0, DeliveryQos::AtLeastOnce));
        let held = outbox.next(2).unwrap().packet_id.unwrap();
        for number in 1..=70_000 {
            outbox.push(delivery(number, DeliveryQos::AtLeastOnce));
            let packet_id = outbox.next(2).unwrap().packet_id.unwrap();
            assert!(packet_id != held && packet_id != 0);
            outbox.acknowledge(packet_id);
        }
    }
}
