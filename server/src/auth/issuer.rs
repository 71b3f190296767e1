//! A trusted account service and its cached public keys.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Clock, Credential, Kind, Kinded, Secret, Timestamp};

use super::{AuthError, TokenError, Verifier};

/// How long keys are used before they are fetched again; a removed key is trusted no longer than this.
const KEYS_AGE_MAX: Duration = Duration::from_secs(60);
/// How long to wait between fetches for unknown key ids, so that garbage does not turn into calls.
const FETCH_PAUSE: Duration = Duration::from_secs(10);
/// The same while there are no keys: short, for an account service that is still starting.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How long a token with a known key waits while the keys are refreshed.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a token waits for its remaining rights.
const RIGHTS_TIMEOUT: Duration = Duration::from_secs(1);

/// A trusted account service.
pub(super) struct Issuer {
    id: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    keys: Mutex<CachedKeys>,
    /// Held during a fetch, so that all callers wait for the same one.
    fetching: tokio::sync::Mutex<()>,
}

/// What the account service says about a token that it issued.
pub(super) enum RemainingRights {
    /// The rights that its bearer still has.
    Rights(Vec<ApplicationRight>),
    /// It was revoked before it expired.
    Revoked,
    /// It did not answer.
    Unknown,
}

/// The cached keys and the result of the last fetch.
#[derive(Clone, Default)]
struct CachedKeys {
    verifier: Option<Arc<Verifier>>,
    fetched: Option<Timestamp>,
    failure: Option<Arc<client::Error>>,
}

impl Issuer {
    pub(super) fn new(id: &str, client: Arc<AccountClient>, clock: Arc<dyn Clock>) -> Self {
        Self { id: id.to_owned(), client, clock, keys: Mutex::default(), fetching: tokio::sync::Mutex::default() }
    }

    /// The verifier for a token that was signed with the key `key_id`.
    ///
    /// While the account service is unavailable, its cached keys stay valid.
    pub(super) async fn verifier(&self, key_id: &str) -> Result<Arc<Verifier>, AuthError> {
        if self.keys().knows(key_id) {
            self.refresh(key_id).await;
        } else {
            self.fetch_unknown(key_id).await;
        }
        let keys = self.keys();
        match (keys.verifier, keys.failure) {
            (Some(verifier), _) if verifier.knows(key_id) => Ok(verifier),
            (_, Some(failure)) => Err(self.unavailable(failure)),
            _ => Err(TokenError::Key.into()),
        }
    }

    /// Exchanges an access key for a token; none when the account service refuses the key.
    pub(super) async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Option<Secret>, AuthError> {
        match self.client.exchange_key(app_id, key).await {
            Ok(answer) => Ok(Some(answer.access_token)),
            Err(error) => match error.kind() {
                Kind::Invalid | Kind::Unauthenticated | Kind::Denied | Kind::NotFound => Ok(None),
                _ => Err(self.unavailable(Arc::new(error))),
            },
        }
    }

    pub(super) async fn remaining_rights(&self, app_id: &AppId, token: Secret) -> RemainingRights {
        let credential = Credential::Token(token);
        let answer = tokio::time::timeout(RIGHTS_TIMEOUT, self.client.rights(&credential, app_id)).await;
        match answer {
            Ok(Ok(rights)) => RemainingRights::Rights(rights),
            Ok(Err(error)) if error.kind() == Kind::Unauthenticated => RemainingRights::Revoked,
            Ok(Err(error)) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => {
                RemainingRights::Rights(Vec::new())
            }
            _ => {
                tracing::warn!(issuer = self.id, "account service unavailable: using the rights in tokens unchecked");
                RemainingRights::Unknown
            }
        }
    }

    /// Fetches the keys again when they are old; one caller does, and only briefly, since the old ones still work.
    async fn refresh(&self, key_id: &str) {
        let now = self.clock.now();
        let due = self.change(|keys| {
            let due = keys.is_due(key_id, now);
            if due {
                keys.fetched = Some(now);
            }
            due
        });
        if due && tokio::time::timeout(REFRESH_TIMEOUT, self.fetch()).await.is_err() {
            tracing::warn!(issuer = self.id, "account service slow: still using its cached keys");
        }
    }

    /// Fetches the keys for an unknown key id, unless that was done a moment ago.
    async fn fetch_unknown(&self, key_id: &str) {
        let _fetching = self.fetching.lock().await;
        if self.keys().is_due(key_id, self.clock.now()) {
            self.fetch().await;
        }
    }

    async fn fetch(&self) {
        let answer = self.client.keys().await;
        let fetched = Some(self.clock.now());
        match answer {
            Ok(set) => {
                let verifier = Verifier::new(&self.id, &set);
                tracing::debug!(?verifier, "fetched the keys of an account service");
                self.change(|keys| *keys = CachedKeys { verifier: Some(Arc::new(verifier)), fetched, failure: None });
            }
            Err(error) => self.change(|keys| {
                keys.fetched = fetched;
                keys.failure = Some(Arc::new(error));
            }),
        }
    }

    fn keys(&self) -> CachedKeys {
        self.change(|keys| keys.clone())
    }

    fn change<T>(&self, change: impl FnOnce(&mut CachedKeys) -> T) -> T {
        change(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn unavailable(&self, source: Arc<client::Error>) -> AuthError {
        AuthError::Unavailable { issuer: self.id.clone(), source }
    }
}

impl CachedKeys {
    fn knows(&self, key_id: &str) -> bool {
        self.verifier.as_ref().is_some_and(|verifier| verifier.knows(key_id))
    }

    /// Whether it is time to fetch them again, for a token with this key.
    fn is_due(&self, key_id: &str, now: Timestamp) -> bool {
        let pause = match (self.knows(key_id), self.failure.is_some()) {
            (true, false) => KEYS_AGE_MAX,
            (true, true) | (false, false) => FETCH_PAUSE,
            (false, true) => FAILED_PAUSE,
        };
        self.fetched.is_none_or(|fetched| fetched > now || now.since(fetched) >= pause)
    }
}
