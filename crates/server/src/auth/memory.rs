//! The account service's last response about each credential, for when it cannot be asked.
//!
//! Losing an entry is safe: a credential without one counts as never confirmed.

mod confirmed;

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_lc_rs::digest::{Context, SHA256};
use lru::LruCache;
use parking_lot::Mutex;
use types::{Claims, Credential, Timestamp};

pub(super) use self::confirmed::CREDENTIALS_MAX;
use self::confirmed::{Confirmed, ConfirmedCredentials};
use super::{entity::Entity, rule::Before};

/// The most refused credentials that are remembered. The least recently used is forgotten first.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4 * 1024 - 1);

/// Identifies a credential for an application or a gateway, without keeping the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CredentialId([u8; 32]);

/// Time and order of a question. Of two responses about a credential, the one to the later question counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionTime {
    at: Timestamp,
    /// Orders questions, which the clock cannot if it is set back.
    number: u64,
}

/// The last responses. Confirmed credentials have room of their own, so that wrong ones cannot crowd them out.
#[derive(Default)]
pub(super) struct Memory {
    next: AtomicU64,
    entries: Mutex<Entries>,
}

struct Entries {
    confirmed: ConfirmedCredentials,
    /// The number of the question that was answered by a refusal.
    refused: LruCache<CredentialId, u64>,
}

impl CredentialId {
    pub(super) fn of(entity: &Entity, credential: &Credential) -> Self {
        let (sort, id) = match entity {
            Entity::Application(app_id) => ("application ", app_id.as_str()),
            Entity::Gateway(gateway_id) => ("gateway ", gateway_id.as_str()),
        };
        let (kind, text) = match credential {
            Credential::Token(token) => (" token ", token.expose()),
            Credential::Key(key) => (" key ", key.expose()),
        };
        let mut digest = Context::new(&SHA256);
        // An id has no spaces.
        for part in [sort, id, kind, text] {
            digest.update(part.as_bytes());
        }
        let mut id = [0; 32];
        id.copy_from_slice(digest.finish().as_ref());
        Self(id)
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self { confirmed: ConfirmedCredentials::default(), refused: LruCache::new(REFUSED_MAX) }
    }
}

impl Memory {
    /// Numbers a question that is about to be asked.
    pub(super) fn asking(&self, now: Timestamp) -> QuestionTime {
        QuestionTime { at: now, number: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// Notes that a credential was confirmed, unless a later question was answered already.
    pub(super) fn confirm(&self, id: CredentialId, entity: &Entity, claims: Arc<Claims>, asked: QuestionTime) {
        let mut entries = self.entries.lock();
        if entries.has_later(&id, entity, asked) {
            return;
        }
        entries.refused.pop(&id);
        entries.confirmed.put(entity, id, Confirmed { asked, claims });
    }

    /// Notes that a credential was refused, unless a later question was answered already.
    pub(super) fn refuse(&self, id: CredentialId, entity: &Entity, asked: QuestionTime) {
        let mut entries = self.entries.lock();
        if entries.has_later(&id, entity, asked) {
            return;
        }
        entries.confirmed.remove(entity, &id);
        entries.refused.put(id, asked.number);
    }

    /// Forgets that a credential was confirmed.
    pub(super) fn forget(&self, id: &CredentialId, entity: &Entity) {
        self.entries.lock().confirmed.remove(entity, id);
    }

    /// The last response about a credential; with its claims if it was confirmed.
    pub(super) fn recall(&self, id: &CredentialId, entity: &Entity, now: Timestamp) -> (Before, Option<Arc<Claims>>) {
        let mut entries = self.entries.lock();
        if let Some(confirmed) = entries.confirmed.get(entity, id) {
            // After the clock was set back, the grace time starts again, rather than lasting until the clock catches
            // up.
            confirmed.asked.at = confirmed.asked.at.min(now);
            return (Before::Confirmed(now.since(confirmed.asked.at)), Some(Arc::clone(&confirmed.claims)));
        }
        let was_refused = entries.refused.get(id).is_some();
        (if was_refused { Before::Refused } else { Before::Never }, None)
    }
}

impl Entries {
    /// Returns true if a question that was asked after this one has been answered.
    fn has_later(&mut self, id: &CredentialId, entity: &Entity, asked: QuestionTime) -> bool {
        let confirmed = self.confirmed.get(entity, id).map(|confirmed| confirmed.asked.number);
        let last = confirmed.or_else(|| self.refused.get(id).copied());
        last.is_some_and(|last| last > asked.number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use types::Secret;

    use super::*;

    fn app(name: &str) -> Entity {
        Entity::Application(name.parse().unwrap())
    }

    fn id(number: usize) -> CredentialId {
        let credential = Credential::Token(Secret::new(number.to_string()));
        CredentialId::of(&app("my-app"), &credential)
    }

    impl Memory {
        fn says(&self, number: usize, is_confirmed: bool, asked: QuestionTime) {
            if is_confirmed {
                self.confirm(id(number), &app("my-app"), confirmed::tests::claims(), asked);
            } else {
                self.refuse(id(number), &app("my-app"), asked);
            }
        }

        fn before(&self, number: usize, now: Timestamp) -> Before {
            self.recall(&id(number), &app("my-app"), now).0
        }
    }

    #[test]
    fn the_response_to_the_last_question_counts() {
        let (memory, start) = (Memory::default(), Timestamp::from_millis(1_000_000));
        assert_eq!(memory.before(1, start), Before::Never);
        memory.says(1, true, memory.asking(start));
        let later = start.plus(Duration::from_secs(5));
        assert_eq!(memory.before(1, later), Before::Confirmed(Duration::from_secs(5)), "since the question");
        memory.says(1, false, memory.asking(later));
        assert_eq!(memory.before(1, later), Before::Refused);
        memory.says(1, true, memory.asking(later));
        assert_eq!(memory.before(1, later), Before::Confirmed(Duration::ZERO));
    }

    #[test]
    fn a_late_response_does_not_replace_the_one_to_a_later_question() {
        let (memory, now) = (Memory::default(), Timestamp::from_millis(0));
        let (early, late) = (memory.asking(now), memory.asking(now));
        memory.says(1, false, late);
        memory.says(1, true, early);
        assert_eq!(memory.before(1, now), Before::Refused);
        memory.says(2, true, late);
        memory.says(2, false, early);
        assert_eq!(memory.before(2, now), Before::Confirmed(Duration::ZERO));
    }

    #[test]
    fn wrong_credentials_do_not_crowd_out_confirmed_ones() {
        let (memory, now) = (Memory::default(), Timestamp::from_millis(0));
        memory.says(0, true, memory.asking(now));
        (1..=REFUSED_MAX.get() + 1).for_each(|number| memory.says(number, false, memory.asking(now)));
        assert_eq!(memory.before(0, now), Before::Confirmed(Duration::ZERO));
        assert_eq!(memory.before(1, now), Before::Never, "the oldest is forgotten");
        assert_eq!(memory.before(2, now), Before::Refused);
    }

    #[test]
    fn a_clock_that_was_set_back_neither_ends_nor_extends_the_grace_time() {
        let (memory, start) = (Memory::default(), Timestamp::from_millis(10_000_000));
        memory.says(1, true, memory.asking(start));
        let back = Timestamp::from_millis(1_000_000);
        assert_eq!(memory.before(1, back), Before::Confirmed(Duration::ZERO));
        let later = back.plus(Duration::from_secs(600));
        assert_eq!(memory.before(1, later), Before::Confirmed(Duration::from_secs(600)));
    }
}
