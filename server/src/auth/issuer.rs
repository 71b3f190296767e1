//! One account service that is trusted: its public keys, fetched when needed and kept for a while.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use client::account::AccountClient;
use types::{AccessKey, AppId, ApplicationRight, Clock, Credential, Kind, Kinded, Secret, Timestamp};

use super::{AuthError, TokenError, Verifier};

/// How long keys are used before they are read again, so that a removed key stops counting.
const KEYS_AGE_MAX: Duration = Duration::from_secs(60);
/// How long an unknown key waits for the next reading, so that garbage does not become calls.
const READ_PAUSE: Duration = Duration::from_secs(10);
/// The same where there are no keys yet: short, for an account service that is just starting.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How long a token with a known key waits for newer keys.
const NEWER_WAIT: Duration = Duration::from_secs(1);
/// How long a token waits to hear what is left of its rights.
const STANDING_WAIT: Duration = Duration::from_secs(1);

/// An account service that is trusted.
pub(super) struct Issuer {
    id: String,
    client: Arc<AccountClient>,
    clock: Arc<dyn Clock>,
    keys: Mutex<Keys>,
    /// Held while keys are read, so that everyone who needs them waits for one answer.
    reading: tokio::sync::Mutex<()>,
}

/// What the account service says of a token that it issued.
pub(super) enum Standing {
    /// Its bearer may still do this.
    Rights(Vec<ApplicationRight>),
    /// It is over before its time.
    Ended,
    /// It did not answer.
    Unknown,
}

/// What is known about the keys, and how the last reading went.
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

    /// The keys to check a token with that was signed with the key `key_id`.
    ///
    /// When the account service is away, the keys that are known go on counting.
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

    /// The token that the account service gives for an access key; none when it refuses the key.
    pub(super) async fn exchange(&self, app_id: &AppId, key: &AccessKey) -> Result<Option<Secret>, AuthError> {
        match self.client.exchange_key(app_id, key).await {
            Ok(answer) => Ok(Some(answer.access_token)),
            Err(error) => match error.kind() {
                Kind::Invalid | Kind::Unauthenticated | Kind::Denied | Kind::NotFound => Ok(None),
                _ => Err(self.away(Arc::new(error))),
            },
        }
    }

    /// What is left of a token that was issued, for one application.
    pub(super) async fn standing(&self, app_id: &AppId, token: Secret) -> Standing {
        let credential = Credential::Token(token);
        let asked = tokio::time::timeout(STANDING_WAIT, self.client.rights(&credential, app_id)).await;
        match asked {
            Ok(Ok(rights)) => Standing::Rights(rights),
            Ok(Err(error)) if error.kind() == Kind::Unauthenticated => Standing::Ended,
            Ok(Err(error)) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => Standing::Rights(Vec::new()),
            _ => {
                tracing::warn!(issuer = self.id, "the account service is away: rights in tokens count as they stand");
                Standing::Unknown
            }
        }
    }

    /// Reads keys that are old; only one caller does, and only for so long, since the old ones still count.
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
            tracing::warn!(issuer = self.id, "the account service is slow: its older keys go on counting");
        }
    }

    /// Reads keys among which there may be the one that is unknown.
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
                tracing::debug!(?verifier, "read the keys of an account service");
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

    /// Whether it is time to read them again, for a token with this key.
    fn is_due(&self, key_id: &str, now: Timestamp) -> bool {
        let pause = match (self.knows(key_id), self.failure.is_some()) {
            (true, false) => KEYS_AGE_MAX,
            (true, true) | (false, false) => READ_PAUSE,
            (false, true) => FAILED_PAUSE,
        };
        self.tried.is_none_or(|tried| tried > now || now.since(tried) >= pause)
    }
}
