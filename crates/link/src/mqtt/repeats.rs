//! Recognizes messages that the broker repeats on a new connection although they were dealt with: only their
//! acknowledgements were lost.
//!
//! A broker repeats a message under the number that it had, and gives the number of an acknowledged one to another
//! message. So number and content have to be the same, and a number is forgotten once the broker has its acknowledgement.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use aws_lc_rs::digest::{Context, Digest, SHA256};

/// Number of messages remembered, the last ones. No broker has more without an acknowledgement.
const MESSAGES_MAX: usize = 1024;

/// The messages that a session has got, by their numbers.
#[derive(Default)]
pub(super) struct Repeats {
    known: HashMap<u16, KnownMessage>,
    /// The numbers in the order in which they came.
    order: VecDeque<u16>,
}

struct KnownMessage {
    content: Digest,
    is_settled: Arc<AtomicBool>,
    /// True if it was settled when the broker last answered a ping.
    was_settled: bool,
}

impl Repeats {
    /// Notes a message, and returns the flag that tells whether it is settled: for one that comes again, the same as
    /// before.
    pub(super) fn note(&mut self, packet: u16, is_duplicate: bool, topic: &str, payload: &[u8]) -> Arc<AtomicBool> {
        let content = content(topic, payload);
        if let Some(known) = self.known.get(&packet)
            && is_duplicate
            && known.content.as_ref() == content.as_ref()
        {
            return known.is_settled.clone();
        }
        let is_settled = Arc::<AtomicBool>::default();
        if self
            .known
            .insert(packet, KnownMessage { content, is_settled: is_settled.clone(), was_settled: false })
            .is_some()
        {
            self.order.retain(|other| *other != packet);
        }
        self.order.push_back(packet);
        if self.order.len() > MESSAGES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        is_settled
    }

    /// Forgets all numbers: the broker has no session any more, and gives them anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes note that the broker has answered a ping, and so has read every acknowledgement that was sent before it. A
    /// message that was settled at the ping before that has one, as none is held for as long as from one ping to the
    /// next: its number is free for another.
    pub(super) fn answered(&mut self) {
        self.known.retain(|_, known| {
            let is_acknowledged = known.was_settled;
            known.was_settled = known.is_settled.load(Ordering::Acquire);
            !is_acknowledged
        });
        self.order.retain(|packet| self.known.contains_key(packet));
    }
}

fn content(topic: &str, payload: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    // The length keeps the two apart.
    context.update(&topic.len().to_le_bytes());
    context.update(topic.as_bytes());
    context.update(payload);
    context.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_message_under_the_same_number_is_a_repetition() {
        let mut repeats = Repeats::default();
        let first = repeats.note(1, false, "a", b"1");
        for (packet, is_duplicate, topic, payload, expected) in [
            (1, true, "a", b"1", true),
            (2, true, "a", b"1", false),
            (1, true, "a", b"2", false),
            (1, true, "a", b"1", false),
        ] {
            let noted = repeats.note(packet, is_duplicate, topic, payload);
            assert_eq!(Arc::ptr_eq(&noted, &first), expected, "{packet} {topic} {payload:?}");
        }
        let second = repeats.note(7, false, "a", b"1");
        assert!(!Arc::ptr_eq(&second, &repeats.note(7, false, "a", b"1")), "the same was published again");
    }

    #[test]
    fn a_number_is_free_when_the_broker_has_its_acknowledgement_or_no_session() {
        let mut repeats = Repeats::default();
        let (settled, open) = (repeats.note(1, false, "a", b"1"), repeats.note(2, false, "a", b"1"));
        settled.store(true, Ordering::Release);
        repeats.answered();
        assert!(Arc::ptr_eq(&repeats.note(1, true, "a", b"1"), &settled), "that ping may have been sent before");
        repeats.answered();
        assert!(!Arc::ptr_eq(&repeats.note(1, true, "a", b"1"), &settled), "it is another message");
        assert!(Arc::ptr_eq(&repeats.note(2, true, "a", b"1"), &open));
        repeats.forget();
        assert!(!Arc::ptr_eq(&repeats.note(2, true, "a", b"1"), &open));
    }

    #[test]
    fn only_the_last_messages_are_remembered() {
        let mut repeats = Repeats::default();
        (0..3000).for_each(|packet| _ = repeats.note(packet, false, "a", b"1"));
        assert_eq!((repeats.known.len(), repeats.order.len()), (MESSAGES_MAX, MESSAGES_MAX));
        assert!(repeats.known.contains_key(&2999) && !repeats.known.contains_key(&0));
    }
}
