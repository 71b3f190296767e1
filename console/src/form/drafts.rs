//! Forms that were sent when a login had expired or a service was away, kept until their user is back; and, apart from
//! them, what undoes deletions.
//!
//! Drafts are in memory: a form may have more bytes than a cookie. Only browsers with a session of this console, which
//! may have expired, can put something here.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use types::{Random, Timestamp, UserId};

/// Lifetime of a draft.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Maximum size of all drafts, in bytes; those of the user who has most go first.
const BYTES_MAX: usize = 32 << 20;
/// Maximum size of a draft, in bytes: no form of ours has more.
const DRAFT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of drafts of one user.
const PER_USER_MAX: usize = 4;

/// The fields of a form, in their order.
pub(crate) type Fields = Vec<(String, String)>;

/// The drafts of all users.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    kept: Mutex<VecDeque<Draft>>,
}

#[derive(Debug)]
struct Draft {
    id: String,
    user_id: UserId,
    /// Path to which it was sent.
    path: String,
    fields: Fields,
    expires: Timestamp,
}

impl Drafts {
    /// Keeps a form, unless it is too large; returns the id of the draft.
    pub(crate) fn keep(
        &self,
        user_id: &UserId,
        (path, fields): (String, Fields),
        now: Timestamp,
        random: &dyn Random,
    ) -> String {
        let id = hex::encode(random.array::<16>());
        let draft = Draft { id: id.clone(), user_id: user_id.clone(), path, fields, expires: now.plus(LIFETIME) };
        if draft.bytes() > DRAFT_BYTES_MAX {
            return id;
        }
        let mut kept = self.kept.lock();
        kept.retain(|draft| draft.expires > now);
        while kept.iter().filter(|draft| draft.user_id == *user_id).count() >= PER_USER_MAX {
            let Some(oldest) = kept.iter().position(|draft| draft.user_id == *user_id) else { break };
            kept.remove(oldest);
        }
        kept.push_back(draft);
        while kept.iter().map(Draft::bytes).sum::<usize>() > BYTES_MAX {
            let Some(index) = oldest_of_largest_user(&kept) else { break };
            kept.remove(index);
        }
        id
    }

    /// The path and the fields of a draft of this user, which stays until it expires: a page may be loaded again.
    pub(crate) fn find(&self, id: &str, user_id: &UserId, now: Timestamp) -> Option<(String, Fields)> {
        let kept = self.kept.lock();
        let draft = kept.iter().find(|draft| draft.id == id && draft.user_id == *user_id && draft.expires > now)?;
        Some((draft.path.clone(), draft.fields.clone()))
    }

    /// The results of `read` for the id, the fields and the time of each draft of this user for a path, the newest
    /// first.
    pub(crate) fn of_path<T>(
        &self,
        path: &str,
        user_id: &UserId,
        now: Timestamp,
        read: impl Fn(&str, &Fields, Timestamp) -> T,
    ) -> Vec<T> {
        let kept = self.kept.lock();
        let is_wanted = |draft: &&Draft| draft.path == path && draft.user_id == *user_id && draft.expires > now;
        let found = kept.iter().rev().filter(is_wanted);
        found.map(|draft| read(&draft.id, &draft.fields, draft.expires.minus(LIFETIME))).collect()
    }

    /// Forgets the drafts of this user that have a field.
    pub(crate) fn forget(&self, user_id: &UserId, field: &(String, String)) {
        let mut kept = self.kept.lock();
        kept.retain(|draft| draft.user_id != *user_id || !draft.fields.contains(field));
    }
}

impl Draft {
    /// The memory that it takes, about: empty fields take some, too.
    fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
        size_of::<Self>() + self.path.len() + fields.sum::<usize>()
    }
}

/// The place of the oldest draft of the user who has most bytes, so that nobody displaces what others keep by keeping
/// much. The newest draft of all does not count: its user is about to see it.
fn oldest_of_largest_user(kept: &VecDeque<Draft>) -> Option<usize> {
    let older = || kept.iter().take(kept.len().saturating_sub(1));
    let mut sizes = HashMap::<&UserId, usize>::new();
    for draft in older() {
        *sizes.entry(&draft.user_id).or_default() += draft.bytes();
    }
    let largest = sizes.values().max()?;
    older().position(|draft| sizes.get(&draft.user_id) == Some(largest))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    /// Ids that differ.
    #[derive(Default)]
    struct Counting(AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    fn user(number: u8) -> UserId {
        UserId::from_bytes([number; 12])
    }

    fn form(path: &str, value: &str) -> (String, Fields) {
        (path.to_owned(), vec![("name".to_owned(), value.to_owned())])
    }

    fn values(drafts: &Drafts, path: &str, number: u8, now: Timestamp) -> Vec<String> {
        drafts.of_path(path, &user(number), now, |_, fields, _| fields[0].1.clone())
    }

    // Conformance: console: many devices changed, deleted, brought back
    #[test]
    fn the_newest_four_drafts_of_a_user_are_kept_for_an_hour() {
        let (drafts, random, start) = (Drafts::default(), Counting::default(), Timestamp::from_millis(1_000_000));
        drafts.keep(&user(2), form("/a", "theirs"), start, &random);
        for value in ["1", "2", "3", "4", "5"] {
            drafts.keep(&user(1), form("/a", value), start, &random);
        }
        let id = drafts.keep(&user(1), form("/b", "6"), start, &random);
        assert_eq!(values(&drafts, "/a", 1, start), ["5", "4", "3"]);
        assert_eq!(values(&drafts, "/a", 2, start), ["theirs"]);
        assert_eq!(drafts.find(&id, &user(1), start), Some(form("/b", "6")));
        assert_eq!(drafts.find(&id, &user(2), start), None);
        let times = drafts.of_path("/b", &user(1), start, |found, _, time| (found == id, time));
        assert_eq!(times, [(true, start)]);
        assert_eq!(drafts.find(&id, &user(1), start.plus(LIFETIME)), None);
        assert!(values(&drafts, "/a", 1, start.plus(LIFETIME)).is_empty());
    }

    // Conformance: console: many devices changed, deleted, brought back
    #[test]
    fn all_drafts_together_have_a_bound() {
        let (drafts, random, start) = (Drafts::default(), Counting::default(), Timestamp::from_millis(1_000_000));
        drafts.keep(&user(0), form("/a", "little"), start, &random);
        let large = "x".repeat(BYTES_MAX / 16);
        for number in 1..=17 {
            drafts.keep(&user(number), form("/a", &large), start, &random);
        }
        let counts = [0, 1, 2, 3, 17].map(|number| values(&drafts, "/a", number, start).len());
        assert_eq!(counts, [1, 0, 0, 1, 1], "who keeps much displaces nobody who keeps little");
        let drafts = Drafts::default();
        for value in ["1", "2", "3", "4"] {
            drafts.keep(&user(1), form("/b", value), start, &random);
        }
        let id =
            drafts.keep(&user(1), ("/a".to_owned(), vec![(String::new(), String::new()); 100_000]), start, &random);
        assert_eq!(drafts.find(&id, &user(1), start), None, "empty fields take memory, too");
        assert_eq!(values(&drafts, "/b", 1, start), ["4", "3", "2", "1"], "what is not kept displaces nothing");
    }

    // Conformance: console: many devices changed, deleted, brought back
    #[test]
    fn a_user_forgets_only_own_drafts() {
        let (drafts, random, start) = (Drafts::default(), Counting::default(), Timestamp::from_millis(1_000_000));
        for (number, value) in [(1, "same"), (2, "same"), (1, "other")] {
            drafts.keep(&user(number), form("/a", value), start, &random);
        }
        drafts.forget(&user(1), &("name".to_owned(), "same".to_owned()));
        assert_eq!((values(&drafts, "/a", 1, start), values(&drafts, "/a", 2, start).len()), (vec!["other".into()], 1));
    }
}
