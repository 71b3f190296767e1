//! Remembers the callers of credentials, so that a request's tenant is known before it is authenticated.
//!
//! Losing an entry is safe: the next request with that credential counts for its address.

use std::num::NonZeroUsize;

use aws_lc_rs::digest::{Context, SHA256};
use axum::http::HeaderMap;
use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    auth::credential_header,
    usage::{Tenant, Usage},
};

/// The most credentials that are remembered. The least recently used is forgotten first.
const CALLERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16 * 1024 - 1);

/// A hash, so that no credential stays in memory.
pub(super) type CredentialDigest = [u8; 32];

/// The callers of recent requests, by credential. Only verified credentials are in here.
pub(super) struct Callers(Mutex<LruCache<CredentialDigest, Tenant>>);

impl Default for Callers {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CALLERS_MAX)))
    }
}

impl Callers {
    pub(super) fn get(&self, digest: &CredentialDigest) -> Option<Tenant> {
        self.0.lock().get(digest).cloned()
    }

    /// Remembers the caller of a request that has ended, or forgets one whose credential was refused this time.
    ///
    /// Many requests end before anybody looks at their credential, or while the account service cannot be asked.
    pub(super) fn note(&self, digest: CredentialDigest, usage: &Usage, is_refused: bool) {
        match usage.caller() {
            Some(caller) => drop(self.0.lock().put(digest, caller)),
            None if is_refused => drop(self.0.lock().pop(&digest)),
            None => {}
        }
    }
}

/// The digest of a request's credential, if it has one. The rest of its head does not count.
pub(super) fn digest(headers: &HeaderMap) -> Option<CredentialDigest> {
    let (name, value) = credential_header(headers)?;
    digest_of(name, value.as_bytes())
}

pub(super) fn digest_of(header: &str, value: &[u8]) -> Option<CredentialDigest> {
    let mut digest = Context::new(&SHA256);
    // Neither a name nor a value contains a line feed.
    [header.as_bytes(), b"\n", value].into_iter().for_each(|part| digest.update(part));
    digest.finish().as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_caller_is_known_by_an_accepted_credential_only() {
        let (callers, digest) = (Callers::default(), digest(&headers("authorization", "Bearer x")).unwrap());
        callers.note(digest, &Usage::default(), false);
        assert_eq!(callers.get(&digest), None);
        let accepted = Usage::default();
        let claims = serde_json::json!({"iss": "a", "sub": "b", "type": "user", "iat": 0, "exp": 1});
        accepted.set_caller(&serde_json::from_value(claims).unwrap());
        callers.note(digest, &accepted, false);
        assert_eq!(callers.get(&digest), accepted.caller());
        let again = || Usage::of(callers.get(&digest), None);
        callers.note(digest, &again(), false);
        assert_eq!(callers.get(&digest), accepted.caller(), "nobody looked at it the last time");
        callers.note(digest, &again(), true);
        assert_eq!(callers.get(&digest), None, "it was refused the last time");
    }

    #[test]
    fn a_network_stays_one_whatever_it_calls() {
        let (callers, digest) = (Callers::default(), digest(&headers("token", "x")).unwrap());
        let claims = serde_json::json!({"iss": "a", "sub": "b", "type": "broker", "iat": 0, "exp": 1});
        let claims = serde_json::from_value(claims).unwrap();
        let [first, next] = [true, false].map(|is_network| {
            let usage = Usage::of(callers.get(&digest), None);
            usage.set_caller(&claims);
            if is_network {
                usage.set_network();
            }
            callers.note(digest, &usage, false);
            callers.get(&digest).unwrap().weight
        });
        assert!(first > 1 && next == first, "{first}, then {next}");
    }

    #[test]
    fn digests_differ_by_header_and_value() {
        let digests = [("token", "x"), ("key", "x"), ("key", "y")].map(|(name, value)| digest(&headers(name, value)));
        assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests.iter().all(Option::is_some));
        assert_eq!(digest(&headers("cookie", "x")), None);
    }

    #[test]
    fn only_the_header_that_is_used_counts() {
        let mut sent = headers("authorization", "Bearer x");
        let alone = digest(&sent);
        sent.insert("key", "y".parse().unwrap());
        sent.insert("token", "z".parse().unwrap());
        assert_eq!(digest(&sent), alone);
        sent.insert("authorization", " ".parse().unwrap());
        assert_eq!(digest(&sent), digest(&headers("token", "z")), "an empty header counts as absent");
    }
}
