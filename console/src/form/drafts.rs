//! Forms that were sent when a login had expired or a service was away, kept until their user is back.
//!
//! Drafts are in memory: a form may have more bytes than a cookie. Only browsers with a session of this console, which
//! may have expired, can put something here.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use types::{Random, Timestamp, UserId};

/// Lifetime of a draft.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Maximum size of all drafts, in bytes; the oldest go first.
const BYTES_MAX: usize = 32 << 20;
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
    /// Keeps a form; returns the id of the draft.
    pub(crate) fn keep(
        &self,
        user_id: &UserId,
        (path, fields): (String, Fields),
        now: Timestamp,
        random: &dyn Random,
    ) -> String {
        let id = hex::encode(random.array::<16>());
        let draft = Draft { id: id.clone(), user_id: user_id.clone(), path, fields, expires: now.plus(LIFETIME) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|draft| draft.expires > now);
        while kept.iter().filter(|draft| draft.user_id == *user_id).count() >= PER_USER_MAX {
            let Some(oldest) = kept.iter().position(|draft| draft.user_id == *user_id) else { break };
            kept.remove(oldest);
        }
        kept.push_back(draft);
        while kept.len() > 1 && kept.iter().map(Draft::bytes).sum::<usize>() > BYTES_MAX {
            kept.pop_front();
        }
        id
    }

    /// The path and the fields of a draft of this user, which stays until it expires: a page may be loaded again.
    pub(crate) fn find(&self, id: &str, user_id: &UserId, now: Timestamp) -> Option<(String, Fields)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let draft = kept.iter().find(|draft| draft.id == id && draft.user_id == *user_id && draft.expires > now)?;
        Some((draft.path.clone(), draft.fields.clone()))
    }
}

impl Draft {
    fn bytes(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}
