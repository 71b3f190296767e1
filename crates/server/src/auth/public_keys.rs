//! The cached public keys of an account service, which verify its tokens.

use std::{sync::Arc, time::Duration};

use client::account::AccountClient;
use parking_lot::Mutex;
use tokio::time::timeout;
use types::{Clock, Timestamp};

use super::{
    AuthError, TokenError, Verifier,
    rule::{Before, Now},
};
use crate::error::status::ErrorChain;

/// Time for which keys are used before they are fetched again; a removed key is trusted no longer than this.
pub(super) const AGE_MAX: Duration = Duration::from_secs(60);
/// Maximum age of keys for changes, for which nothing else is asked.
pub(super) const AGE_MAX_FOR_CHANGES: Duration = Duration::from_secs(2);
/// Pause between fetches for unknown key ids, so that garbage does not turn into calls.
const FETCH_PAUSE: Duration = Duration::from_secs(10);
/// Pause between fetches while there are no keys: short, for an account service that is still starting.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// Maximum duration of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that a token waits for a fetch if the old keys verify it.
const REFRESH_WAIT: Duration = Duration::from_secs(1);

/// Fetches and caches the keys of one account service.
pub(super) struct PublicKeys {
    issuer: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    cached: Mutex<CachedKeys>,
    /// Held during a fetch, so that all callers wait for the same one.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

/// A verifier that has a token's key, and how current it is.
pub(super) struct CurrentKeys {
    pub(super) verifier: Arc<Verifier>,
    /// Confirmation of the keys: just now or, if the account service is silent, some time ago.
    pub(super) confirmed: (Now, Before),
}

/// The cached keys and the result of the last fetch.
#[derive(Clone, Default)]
struct CachedKeys {
    verifier: Option<Arc<Verifier>>,
    confirmed: Option<Timestamp>,
    tried: Option<Timestamp>,
    failure: Option<Failure>,
}

/// The error of the last fetch, and the time since which all fetches have failed.
#[derive(Clone)]
struct Failure {
    since: Timestamp,
    error: Arc<client::Error>,
}

impl PublicKeys {
    pub(super) fn new(issuer: &str, client: Arc<AccountClient>, clock: Arc<dyn Clock>) -> Self {
        Self { issuer: issuer.to_owned(), client, clock, cached: Mutex::default(), fetching: Arc::default() }
    }

    /// The keys for a token that was signed with the key `key_id`; fetched again if they are older than `age_max` or
    /// lack it.
    pub(super) async fn with(self: &Arc<Self>, key_id: &str, age_max: Duration) -> Result<CurrentKeys, AuthError> {
        self.fetch_if(|cached, now| cached.is_due(key_id, age_max, now), key_id, age_max).await;
        self.current(key_id, age_max)
    }

    /// Like [`Self::with`], for a token that the account service has just sent: an unknown key is fetched at once.
    pub(super) async fn with_new(self: &Arc<Self>, key_id: &str) -> Result<CurrentKeys, AuthError> {
        self.fetch_if(|cached, _| !cached.has(key_id), key_id, AGE_MAX).await;
        self.current(key_id, AGE_MAX)
    }

    /// Returns true if the account service has keys, but this one no longer.
    pub(super) fn has_dropped(&self, key_id: &str) -> bool {
        self.change(|cached| cached.verifier.is_some() && !cached.has(key_id))
    }

    fn current(&self, key_id: &str, age_max: Duration) -> Result<CurrentKeys, AuthError> {
        let now = self.clock.now();
        let cached = self.change(|cached| {
            // A fetch in the future was made before the clock was set back.
            cached.confirmed = cached.confirmed.map(|confirmed| confirmed.min(now));
            cached.clone()
        });
        match (&cached.verifier, &cached.failure) {
            (Some(verifier), _) if verifier.knows(key_id) => {
                Ok(CurrentKeys { verifier: Arc::clone(verifier), confirmed: cached.confirmation(age_max, now) })
            }
            (_, Some(failure)) => {
                Err(AuthError::Unavailable { issuer: self.issuer.clone(), source: Arc::clone(&failure.error) })
            }
            _ => Err(TokenError::Key.into()),
        }
    }

    /// Fetches the keys if they are due. The fetch goes on in a task of its own when nobody waits any more.
    async fn fetch_if(
        self: &Arc<Self>,
        is_due: impl Fn(&CachedKeys, Timestamp) -> bool,
        key_id: &str,
        age_max: Duration,
    ) {
        let is_due = || self.change(|cached| is_due(cached, self.clock.now()));
        if !is_due() {
            return;
        }
        let can_go_on = age_max == AGE_MAX && self.change(|cached| cached.has(key_id));
        let fetched = async {
            let fetching = Arc::clone(&self.fetching).lock_owned().await;
            if is_due() {
                let keys = Arc::clone(self);
                let fetch = tokio::spawn(async move {
                    keys.fetch().await;
                    drop(fetching);
                });
                // It fails only by a panic, which has been logged.
                _ = fetch.await;
            }
        };
        // Whether it was in time shows in the keys.
        _ = timeout(if can_go_on { REFRESH_WAIT } else { FETCH_TIMEOUT }, fetched).await;
    }

    async fn fetch(&self) {
        let response = timeout(FETCH_TIMEOUT, self.client.keys()).await.unwrap_or_else(|_| {
            Err(client::Error::Timeout { service: "account service", address: self.issuer.clone() })
        });
        let now = self.clock.now();
        match response {
            Ok(set) => {
                let verifier = match self.change(|cached| cached.verifier.clone()) {
                    Some(verifier) => verifier.with_keys(&set),
                    None => Arc::new(Verifier::new(&self.issuer, &set)),
                };
                tracing::debug!(?verifier, "fetched the keys of an account service");
                let (verifier, now) = (Some(verifier), Some(now));
                self.change(|cached| *cached = CachedKeys { verifier, confirmed: now, tried: now, failure: None });
            }
            Err(error) => self.note_failure(error, now),
        }
    }

    fn note_failure(&self, error: client::Error, now: Timestamp) {
        let error = Arc::new(error);
        let is_first = self.change(|cached| {
            let before = cached.failure.take();
            let since = before.as_ref().map_or(now, |failure| failure.since.min(now));
            cached.tried = Some(now);
            cached.failure = Some(Failure { since, error: Arc::clone(&error) });
            before.is_none()
        });
        if is_first {
            tracing::warn!(
                issuer = self.issuer,
                error = %ErrorChain(&*error),
                "cannot fetch the keys of the account service: trying again"
            );
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut CachedKeys) -> T) -> T {
        change(&mut self.cached.lock())
    }
}

impl CachedKeys {
    fn has(&self, key_id: &str) -> bool {
        self.verifier.as_ref().is_some_and(|verifier| verifier.knows(key_id))
    }

    /// Returns true if it is time to fetch the keys again, for a token with this key.
    fn is_due(&self, key_id: &str, age_max: Duration, now: Timestamp) -> bool {
        let pause = match (self.has(key_id), self.failure.is_some()) {
            (true, false) => age_max,
            (true, true) => FETCH_PAUSE.min(age_max),
            (false, false) => FETCH_PAUSE,
            (false, true) => FAILED_PAUSE,
        };
        self.tried.is_none_or(|tried| tried > now || now.since(tried) >= pause)
    }

    fn confirmation(&self, age_max: Duration, now: Timestamp) -> (Now, Before) {
        let before = self.confirmed.map(|confirmed| now.since(confirmed));
        match (before, &self.failure) {
            (Some(age), _) if age < age_max => (Now::Confirmed, Before::Confirmed(age)),
            (before, failure) => {
                let silent_for = failure.as_ref().map_or(Duration::ZERO, |failure| now.since(failure.since.min(now)));
                (Now::Silent(silent_for), before.map_or(Before::Never, Before::Confirmed))
            }
        }
    }
}
