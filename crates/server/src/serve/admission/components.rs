//! Components that identify themselves, so that their questions do not share turns with strangers at their address.
//!
//! They ask about the credentials of others, so the credential of a request does not say who makes it. In one process,
//! or behind a proxy on the same machine, they also share its address.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use axum::http::HeaderMap;
use client::COMPONENT_HEADER;
use lru::LruCache;
use parking_lot::Mutex;
use store::{Buckets, Rate, TakenToken};
use tokio::time::Instant;
use types::{CREDENTIAL_BYTES_MAX, Secret};

use super::{
    super::VerifyComponent,
    callers::{CredentialDigest, digest_of},
};
use crate::usage::Tenant;

/// The most tokens that are remembered. The least recently used is forgotten first.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);
/// Rate at which tokens of one address are verified before their requests are admitted. It takes some 100 µs each.
const VERIFIED: Rate = Rate { per: Duration::from_millis(500), burst: 10 };

/// The components that have identified themselves, by token.
pub(super) struct Components {
    verify: Option<VerifyComponent>,
    known: Mutex<LruCache<CredentialDigest, Tenant>>,
    verified: Buckets<Arc<str>>,
    started: Instant,
}

impl Components {
    pub(super) fn new(verify: Option<VerifyComponent>) -> Self {
        let known = Mutex::new(LruCache::new(KNOWN_MAX));
        Self { verify, known, verified: Buckets::default(), started: Instant::now() }
    }

    /// The component that sends a request from this address; `None` if it does not say so, or its token is not valid.
    pub(super) fn tenant(&self, headers: &HeaderMap, address: &Arc<str>) -> Option<Tenant> {
        let verify = self.verify.as_ref()?;
        let token = headers.get(COMPONENT_HEADER)?.to_str().ok().filter(|token| token.len() <= CREDENTIAL_BYTES_MAX)?;
        let digest = digest_of(COMPONENT_HEADER, token.as_bytes())?;
        if let Some(tenant) = self.known.lock().get(&digest) {
            return Some(tenant.clone());
        }
        if !self.may_verify(address) {
            return None;
        }
        let tenant = Tenant::of(&verify(&Secret::new(token))?);
        self.known.lock().put(digest, tenant.clone());
        Some(tenant)
    }

    fn may_verify(&self, address: &Arc<str>) -> bool {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        matches!(self.verified.take(address, VERIFIED, now), TakenToken::Taken { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn headers(token: &str) -> HeaderMap {
        [(COMPONENT_HEADER.parse().unwrap(), token.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn wrong_tokens_are_not_verified_without_a_limit() {
        let count = Arc::new(AtomicUsize::new(0));
        let verified = Arc::clone(&count);
        let claims = serde_json::json!({"iss": "a", "sub": "b", "type": "handler", "iat": 0, "exp": 1});
        let claims = serde_json::from_value(claims).unwrap();
        let verify: VerifyComponent = Arc::new(move |token| {
            verified.fetch_add(1, Ordering::SeqCst);
            (token.expose() == "good").then(|| types::Claims::clone(&claims))
        });
        let (components, [here, elsewhere]) = (Components::new(Some(verify)), ["here", "elsewhere"].map(Arc::from));
        let good = components.tenant(&headers("good"), &here).unwrap();
        for number in 0..1000 {
            assert_eq!(components.tenant(&headers(&number.to_string()), &here), None);
        }
        assert_eq!(count.load(Ordering::SeqCst), 10);
        assert_eq!(components.tenant(&headers("good"), &here), Some(good.clone()), "it is known");
        assert_eq!(components.tenant(&headers("good"), &elsewhere), Some(good));
        assert_eq!(components.tenant(&HeaderMap::new(), &elsewhere), None);
    }
}
