//! The cached public keys of an account service, which verify its tokens.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use client::account::AccountClient;
use types::{Clock, Timestamp};

use super::{
    AuthError, TokenError, Verifier,
    rule::{Before, Now},
};

/// How long keys are used before they are fetched again; a removed key is trusted no longer than this.
const AGE_MAX: Duration = Duration::from_secs(60);
/// How long to wait between fetches for unknown key ids, so that garbage does not turn into calls.
const FETCH_PAUSE: Duration = Duration::from_secs(10);
/// The same for a token with an unknown key after a fetch that failed. It is short, because the account service may only
/// be starting.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How long a token with a known key waits while the keys are refreshed.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);
/// The same with an unknown key.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Fetches and caches the keys of one account service.
pub(super) struct PublicKeys {
    issuer: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    cached: Mutex<CachedKeys>,
    /// Held during a fetch, so that all callers wait for the same one.
    fetching: tokio::sync::Mutex<()>,
}

/// A verifier that has a token's key, and how current it is.
pub(super) struct CurrentKeys {
    pub(super) verifier: Arc<Verifier>,
    /// Whether the account service confirmed the keys just now or, if it is silent, how long ago.
    pub(super) confirmed: (Now, Before),
}

/// The cached keys and the result of the last fetch.
#[derive(Clone, Default)]
struct CachedKeys {
    verifier: Option<Arc<Verifier>>,
    confirmed: Option<Timestamp>,
    tried: Option<Timestamp>,
    failure: Option<Arc<client::Error>>,
}

impl PublicKeys {
    pub(super) fn new(issuer: &str, client: Arc<AccountClient>, clock: Arc<dyn Clock>) -> Self {
        let fetching = tokio::sync::Mutex::default();
        Self { issuer: issuer.to_owned(), client, clock, cached: Mutex::default(), fetching }
    }

    /// The keys for a token that was signed with the key `key_id`; fetched again if they are old or lack it.
    pub(super) async fn with(&self, key_id: &str) -> Result<CurrentKeys, AuthError> {
        self.fetch_if(|cached, now| cached.is_due(key_id, now), key_id).await;
        self.current(key_id)
    }

    /// The same for a token that the account service has just sent: an unknown key is fetched at once.
    pub(super) async fn with_new(&self, key_id: &str) -> Result<CurrentKeys, AuthError> {
        self.fetch_if(|cached, _| !cached.has(key_id), key_id).await;
        self.current(key_id)
    }

    /// Whether the account service has keys, but this one no longer.
    pub(super) fn has_dropped(&self, key_id: &str) -> bool {
        self.change(|cached| cached.verifier.is_some() && !cached.has(key_id))
    }

    fn current(&self, key_id: &str) -> Result<CurrentKeys, AuthError> {
        let now = self.clock.now();
        let cached = self.change(|cached| {
            // A fetch in the future was made before the clock was set back.
            cached.confirmed = cached.confirmed.map(|confirmed| confirmed.min(now));
            cached.clone()
        });
        match (&cached.verifier, &cached.failure) {
            (Some(verifier), _) if verifier.knows(key_id) => {
                Ok(CurrentKeys { verifier: Arc::clone(verifier), confirmed: cached.confirmation(now) })
            }
            (_, Some(failure)) => {
                Err(AuthError::Unavailable { issuer: self.issuer.clone(), source: Arc::clone(failure) })
            }
            _ => Err(TokenError::Key.into()),
        }
    }

    async fn fetch_if(&self, is_due: impl Fn(&CachedKeys, Timestamp) -> bool, key_id: &str) {
        let is_due = || self.change(|cached| is_due(cached, self.clock.now()));
        if !is_due() {
            return;
        }
        let _fetching = self.fetching.lock().await;
        if is_due() {
            let is_known = self.change(|cached| cached.has(key_id));
            self.fetch(if is_known { REFRESH_TIMEOUT } else { FETCH_TIMEOUT }).await;
        }
    }

    async fn fetch(&self, limit: Duration) {
        let response = tokio::time::timeout(limit, self.client.keys()).await.unwrap_or_else(|_| {
            Err(client::Error::Timeout { service: "account service", address: self.issuer.clone() })
        });
        let now = Some(self.clock.now());
        match response {
            Ok(set) => {
                let verifier = Verifier::new(&self.issuer, &set);
                tracing::debug!(?verifier, "fetched the keys of an account service");
                let verifier = Some(Arc::new(verifier));
                self.change(|cached| *cached = CachedKeys { verifier, confirmed: now, tried: now, failure: None });
            }
            Err(error) => self.change(|cached| {
                cached.tried = now;
                cached.failure = Some(Arc::new(error));
            }),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut CachedKeys) -> T) -> T {
        change(&mut self.cached.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CachedKeys {
    fn has(&self, key_id: &str) -> bool {
        self.verifier.as_ref().is_some_and(|verifier| verifier.knows(key_id))
    }

    /// Whether it is time to fetch them again, for a token with this key.
    fn is_due(&self, key_id: &str, now: Timestamp) -> bool {
        let pause = match (self.has(key_id), self.failure.is_some()) {
            (true, false) => AGE_MAX,
            (true, true) | (false, false) => FETCH_PAUSE,
            (false, true) => FAILED_PAUSE,
        };
        self.tried.is_none_or(|tried| tried > now || now.since(tried) >= pause)
    }

    fn confirmation(&self, now: Timestamp) -> (Now, Before) {
        let age = self.confirmed.map(|confirmed| now.since(confirmed));
        match age {
            Some(age) if self.failure.is_none() || age < AGE_MAX => (Now::Confirmed, Before::Confirmed(age)),
            Some(age) => (Now::Silent, Before::Confirmed(age)),
            None => (Now::Silent, Before::Never),
        }
    }
}
