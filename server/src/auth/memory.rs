//! The account service's last response about each credential, for the time when it cannot be asked.
//!
//! Losing an entry is safe: a credential without one counts as never confirmed.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_lc_rs::digest::{Context, SHA256};
use lru::LruCache;
use types::{AppId, Claims, Credential, Timestamp};

use super::rule::Before;

/// The most credentials that are remembered of each kind. The least recently used is forgotten first.
const CONFIRMED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16 * 1024 - 1);
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4 * 1024 - 1);

/// Identifies a credential for an application, without keeping the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CredentialId([u8; 32]);

/// The last responses. Confirmed credentials have room of their own, so that wrong ones cannot crowd them out.
pub(super) struct Memory {
    confirmed: Mutex<LruCache<CredentialId, Confirmed>>,
    refused: Mutex<LruCache<CredentialId, ()>>,
}

/// A credential that was confirmed, and what it may do.
#[derive(Clone)]
pub(super) struct Confirmed {
    at: Timestamp,
    pub(super) claims: Arc<Claims>,
}

impl CredentialId {
    pub(super) fn of(app_id: &AppId, credential: &Credential) -> Self {
        let (kind, text) = match credential {
            Credential::Token(token) => (" token ", token.expose()),
            Credential::Key(key) => (" key ", key.expose()),
        };
        let mut digest = Context::new(&SHA256);
        // An application id has no spaces.
        for part in [app_id.as_str(), kind, text] {
            digest.update(part.as_bytes());
        }
        let mut id = [0; 32];
        id.copy_from_slice(digest.finish().as_ref());
        Self(id)
    }
}

impl Default for Memory {
    fn default() -> Self {
        let (confirmed, refused) = (LruCache::new(CONFIRMED_MAX), LruCache::new(REFUSED_MAX));
        Self { confirmed: Mutex::new(confirmed), refused: Mutex::new(refused) }
    }
}

impl Memory {
    pub(super) fn confirm(&self, id: CredentialId, claims: Arc<Claims>, now: Timestamp) {
        lock(&self.refused).pop(&id);
        lock(&self.confirmed).put(id, Confirmed { at: now, claims });
    }

    pub(super) fn refuse(&self, id: CredentialId) {
        lock(&self.confirmed).pop(&id);
        lock(&self.refused).put(id, ());
    }

    /// Forgets that a credential was confirmed.
    pub(super) fn forget(&self, id: &CredentialId) {
        lock(&self.confirmed).pop(id);
    }

    /// The last response about a credential; with its claims if it was confirmed.
    pub(super) fn recall(&self, id: &CredentialId, now: Timestamp) -> (Before, Option<Arc<Claims>>) {
        if let Some(confirmed) = lock(&self.confirmed).get_mut(id) {
            // After the clock was set back, the grace time starts again, rather than lasting until the clock catches up.
            confirmed.at = confirmed.at.min(now);
            return (Before::Confirmed(now.since(confirmed.at)), Some(Arc::clone(&confirmed.claims)));
        }
        let was_refused = lock(&self.refused).get(id).is_some();
        (if was_refused { Before::Refused } else { Before::Never }, None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one call, so a panic elsewhere cannot have left the map half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use types::Secret;

    use super::*;

    fn claims() -> Arc<Claims> {
        let claims = serde_json::json!({"iss": "a", "sub": "b", "type": "user", "iat": 0, "exp": 1});
        Arc::new(serde_json::from_value(claims).unwrap())
    }

    fn id(number: usize) -> CredentialId {
        let credential = Credential::Token(Secret::new(number.to_string()));
        CredentialId::of(&"my-app".parse().unwrap(), &credential)
    }

    #[test]
    fn the_last_response_counts() {
        let (memory, start) = (Memory::default(), Timestamp::from_millis(1_000_000));
        assert_eq!(memory.recall(&id(1), start).0, Before::Never);
        memory.confirm(id(1), claims(), start);
        let later = start.plus(Duration::from_secs(5));
        assert_eq!(memory.recall(&id(1), later).0, Before::Confirmed(Duration::from_secs(5)));
        memory.refuse(id(1));
        assert_eq!(memory.recall(&id(1), later).0, Before::Refused);
        memory.confirm(id(1), claims(), later);
        assert_eq!(memory.recall(&id(1), later).0, Before::Confirmed(Duration::ZERO));
    }

    #[test]
    fn wrong_credentials_do_not_crowd_out_confirmed_ones() {
        let (memory, now) = (Memory::default(), Timestamp::from_millis(0));
        memory.confirm(id(0), claims(), now);
        (1..=REFUSED_MAX.get() + 1).for_each(|number| memory.refuse(id(number)));
        assert_eq!(memory.recall(&id(0), now).0, Before::Confirmed(Duration::ZERO));
        assert_eq!(memory.recall(&id(1), now).0, Before::Never, "the oldest is forgotten");
        assert_eq!(memory.recall(&id(2), now).0, Before::Refused);
    }

    #[test]
    fn a_clock_that_was_set_back_neither_ends_nor_extends_the_grace_time() {
        let (memory, start) = (Memory::default(), Timestamp::from_millis(10_000_000));
        memory.confirm(id(1), claims(), start);
        let back = Timestamp::from_millis(1_000_000);
        assert_eq!(memory.recall(&id(1), back).0, Before::Confirmed(Duration::ZERO));
        let later = back.plus(Duration::from_secs(600));
        assert_eq!(memory.recall(&id(1), later).0, Before::Confirmed(Duration::from_secs(600)));
    }
}
