//! A trusted account service, and a cache of its public keys.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Clock, Credential, Kind, Kinded, Secret, Timestamp};

use super::{AuthError, TokenError, Verifier};

/// How long keys are cached, which bounds how long a removed key is accepted.
const KEYS_AGE_MAX: Duration = Duration::from_secs(60);
/// Minimum time between fetches for unknown keys, so that garbage does not cause requests.
const READ_PAUSE: Duration = Duration::from_secs(10);
/// The same while there are no keys yet: short, for an account service that is just starting.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How long a token with a known key waits for a refresh of the keys.
const NEWER_WAIT: Duration = Duration::from_secs(1);
/// How long a token waits for its current rights.
const STANDING_WAIT: Duration = Duration::from_secs(1);

/// A trusted account service.
pub(super) struct Issuer {
    id: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    keys: Mutex<Keys>,
    /// Held while fetching keys, so that concurrent callers share one request.
    reading: tokio::sync::Mutex<()>,
}

/// The current state of a token, according to the account service that issued it.
pub(super) enum Standing {
    /// The bearer still has these rights.
    Rights(Vec<ApplicationRight>),
    /// It was revoked.
    Ended,
    /// The account service did not respond.
    Unknown,
}

/// The cached keys, and the result of the last fetch.
#[derive(Clone, Default)]
struct Keys {
    verifier: Option<Arc<Verifier>>,
    tried: Option<Timestamp>,
    failure: Option<Arc<client::Error>>,
}

impl Issuer {
    pub(super) fn new(id: &str, client: Arc<AccountClient>, clock: Arc<dyn Clock>) -> Self {
        Self { id: id.to_owned(), client, clock, keys: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    /// Returns the verifier for tokens signed with the key `key_id`.
    ///
    /// While the account service is unavailable, known keys stay valid.
    pub(super) async fn verifier(&self, key_id: &str) -> Result<Arc<Verifier>, AuthError> {
        if self.keys().knows(key_id) {
            self.renew(key_id).await;
        } else {
            self.find(key_id).await;
        }
        let keys = self.keys();
        match (keys.verifier, keys.failure) {
            (Some(verifier), _) if verifier.knows(key_id) => Ok(verifier),
            (_, Some(failure)) => Err(self.away(failure)),
            _ => Err(TokenError::Key.into()),
        }
    }

    /// Exchanges an access key for a token; `None` if the account service rejects the key.
    pub(super) async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Option<Secret>, AuthError> {
        match self.client.exchange_key(app_id, key).await {
            Ok(answer) => Ok(Some(answer.access_token)),
            Err(error) => match error.kind() {
                Kind::Invalid | Kind::Unauthenticated | Kind::Denied | Kind::NotFound => Ok(None),
                _ => Err(self.away(Arc::new(error))),
            },
        }
    }

    /// Asks for the current rights of a token to one application.
    pub(super) async fn standing(&self, app_id: &AppId, token: Secret) -> Standing {
        let credential = Credential::Token(token);
        let asked = tokio::time::timeout(STANDING_WAIT, self.client.rights(&credential, app_id)).await;
        match asked {
            Ok(Ok(rights)) => Standing::Rights(rights),
            Ok(Err(error)) if error.kind() == Kind::Unauthenticated => Standing::Ended,
            Ok(Err(error)) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => Standing::Rights(Vec::new()),
            _ => {
                tracing::warn!(issuer = self.id, "the account service is unavailable: trusting the rights in tokens");
                Standing::Unknown
            }
        }
    }

    /// Refreshes old keys. Only one caller does, for a limited time, because the old ones are still valid.
    async fn renew(&self, key_id: &str) {
        let now = self.clock.now();
        let due = self.change(|keys| {
            let due = keys.is_due(key_id, now);
            if due {
                keys.tried = Some(now);
            }
            due
        });
        if due && tokio::time::timeout(NEWER_WAIT, self.read()).await.is_err() {
            tracing::warn!(issuer = self.id, "the account service is slow: using its old keys");
        }
    }

    /// Fetches keys to find an unknown one.
    async fn find(&self, key_id: &str) {
        let _reading = self.reading.lock().await;
        if self.keys().is_due(key_id, self.clock.now()) {
            self.read().await;
        }
    }

    async fn read(&self) {
        let read = self.client.keys().await;
        let tried = Some(self.clock.now());
        match read {
            Ok(set) => {
                let verifier = Verifier::new(&self.id, &set);
                tracing::debug!(?verifier, "fetched the keys of an account service");
                self.change(|keys| *keys = Keys { verifier: Some(Arc::new(verifier)), tried, failure: None });
            }
            Err(error) => self.change(|keys| {
                keys.tried = tried;
                keys.failure = Some(Arc::new(error));
            }),
        }
    }

    fn keys(&self) -> Keys {
        self.change(|keys| keys.clone())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Keys) -> T) -> T {
        change(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn away(&self, source: Arc<client::Error>) -> AuthError {
        AuthError::Away { issuer: self.id.clone(), source }
    }
}

impl Keys {
    fn knows(&self, key_id: &str) -> bool {
        self.verifier.as_ref().is_some_and(|verifier| verifier.knows(key_id))
    }

    /// Whether to fetch the keys again, for a token with this key.
    fn is_due(&self, key_id: &str, now: Timestamp) -> bool {
        let pause = match (self.knows(key_id), self.failure.is_some()) {
            (true, false) => KEYS_AGE_MAX,
            (true, true) | (false, false) => READ_PAUSE,
            (false, true) => FAILED_PAUSE,
        };
        self.tried.is_none_or(|tried| tried > now || now.since(tried) >= pause)
    }
}
