//! The component's own token: renewed long before it ends, and at once when the account service refuses it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde::Deserialize;
use types::{Clock, Secret, Timestamp};

use super::metrics;

/// Maximum time to wait for a token.
const RENEW_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after the first attempt that did not help; it doubles with every further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Source of a component's token.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// Returns a token to use in place of `current`, which may have been refused.
    async fn renew(&self, current: Option<&Secret>) -> Result<Secret, RenewError>;

    /// Returns true if the account service accepts `token`; `None` if it does not say.
    async fn accepts(&self, token: &Secret) -> Option<bool>;

    /// Returns true if the account service is in this process, so that it can be asked at any time.
    fn is_local(&self) -> bool {
        false
    }
}

/// Reason why there is no new token, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RenewError(pub String);

/// The token with which this component exchanges access keys and announces itself.
pub struct ComponentToken {
    source: Box<dyn TokenSource>,
    clock: Arc<dyn Clock>,
    state: Mutex<TokenState>,
    /// Held while a token is fetched, so that all callers wait for the same one.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct TokenState {
    token: Option<Secret>,
    is_refused: bool,
    /// Attempts to renew it since the account service last accepted one.
    attempts: u32,
    attempted: Option<Timestamp>,
    failure: Option<String>,
}

/// The times of a token, which its issuer wrote and its owner need not verify.
#[derive(Deserialize)]
struct Times {
    iat: u64,
    exp: u64,
}

impl ComponentToken {
    /// Starts with this token; with `None`, the source has to be asked first.
    pub fn new(token: Option<Secret>, source: impl TokenSource + 'static, clock: Arc<dyn Clock>) -> Self {
        metrics::describe();
        metrics::component_accepted(token.is_some());
        let state = Mutex::new(TokenState { token, ..TokenState::default() });
        Self { source: Box::new(source), clock, state, renewing: tokio::sync::Mutex::default() }
    }

    /// The current token; `None` if there is none yet.
    pub fn current(&self) -> Option<Secret> {
        self.state.lock().token.clone()
    }

    /// Asks the account service about `token`, which another service refused; returns a newer one if it does so, too.
    pub async fn replace_if_refused(&self, token: &Secret) -> Option<Secret> {
        match self.is_accepted(token).await {
            Some(false) => self.replace_refused(token).await,
            _ => self.current().filter(|current| current != token),
        }
    }

    /// Notes that the account service refused `token`, and returns a newer one if it can be had now.
    pub async fn replace_refused(&self, token: &Secret) -> Option<Secret> {
        self.note_refused(Some(token));
        self.renew(Some(token)).await
    }

    /// Notes that the account service accepted `token`, or this component without one.
    pub(super) fn note_accepted(&self, token: Option<&Secret>) {
        let mut state = self.state.lock();
        if state.token.as_ref() == token && (state.is_refused || state.attempts > 0) {
            *state = TokenState { token: state.token.take(), ..TokenState::default() };
            drop(state);
            metrics::component_accepted(true);
        }
    }

    /// Renews the token if a third of its lifetime is over, if it is refused, or if there is none.
    pub(super) async fn renew_if_due(&self) {
        let token = self.current();
        if let Some(token) = &token
            && self.source.is_local()
            && self.is_accepted(token).await == Some(false)
        {
            self.note_refused(Some(token));
        }
        let now = self.clock.now().as_secs();
        let is_old = token.as_ref().is_none_or(|token| Times::of(token).is_some_and(|times| times.are_due(now)));
        if is_old || self.state.lock().is_refused {
            self.renew(token.as_ref()).await;
        }
    }

    /// Fails while the account service does not accept this component: it is not ready then.
    pub fn check(&self) -> Result<(), String> {
        let state = self.state.lock();
        if !state.is_refused {
            return Ok(());
        }
        if state.token.is_none() {
            return Err("the account service does not accept this component: correct the client credentials in \
                        client.auth_server, or set handler.token_file"
                .to_owned());
        }
        let next = state.failure.as_deref().unwrap_or("it is being renewed");
        Err(format!("the account service does not accept this component's token: {next}"))
    }

    /// Asks the account service about a token, and notes if it accepts it.
    async fn is_accepted(&self, token: &Secret) -> Option<bool> {
        let is_accepted = tokio::time::timeout(RENEW_TIMEOUT, self.source.accepts(token)).await.ok().flatten();
        if is_accepted == Some(true) {
            self.note_accepted(Some(token));
        }
        is_accepted
    }

    /// Returns a token that is newer than `old`; `None` if there is none, or the last attempt was just now.
    async fn renew(&self, old: Option<&Secret>) -> Option<Secret> {
        let _renewing = self.renewing.lock().await;
        let current = self.current();
        if current.as_ref() != old {
            return current;
        }
        if !self.state.lock().begin_attempt(self.clock.now()) {
            return None;
        }
        let renewed = tokio::time::timeout(RENEW_TIMEOUT, self.source.renew(old)).await;
        match renewed.unwrap_or_else(|_| Err(RenewError("the account service did not answer in time".to_owned()))) {
            Ok(token) => Some(self.install(token).await),
            Err(error) => {
                metrics::component_renewed("failed");
                if old.is_some() {
                    tracing::warn!(%error, "cannot renew this component's token: trying again");
                }
                self.state.lock().failure = Some(error.to_string());
                None
            }
        }
    }

    /// Uses a new token. After a refusal, it counts as accepted only when the account service says so.
    async fn install(&self, token: Secret) -> Secret {
        metrics::component_renewed("renewed");
        tracing::info!("this component has a new token");
        let is_refused = self.state.lock().replace_token(token.clone());
        if is_refused {
            self.is_accepted(&token).await;
        } else {
            metrics::component_accepted(true);
        }
        token
    }

    /// Notes that the account service refused `token`, or this component without one.
    pub(super) fn note_refused(&self, token: Option<&Secret>) {
        let mut state = self.state.lock();
        if state.token.as_ref() != token {
            return;
        }
        let was_refused = std::mem::replace(&mut state.is_refused, true);
        drop(state);
        if !was_refused {
            metrics::component_refused();
            metrics::component_accepted(false);
            match token {
                Some(_) => tracing::warn!("the account service does not accept this component's token: renewing it"),
                None => tracing::warn!("the account service does not accept the credentials in client.auth_server"),
            }
        }
    }
}

impl TokenState {
    /// Takes a new token; returns true if the account service refused the one before.
    fn replace_token(&mut self, token: Secret) -> bool {
        self.token = Some(token);
        self.failure = None;
        if !self.is_refused {
            self.attempts = 0;
        }
        self.is_refused
    }

    /// Counts an attempt; false if the pause after the last one is not over.
    fn begin_attempt(&mut self, now: Timestamp) -> bool {
        let pause = match self.attempts {
            0 => Duration::ZERO,
            attempts => PAUSE_MIN.saturating_mul(1 << (attempts - 1).min(16)).min(PAUSE_MAX),
        };
        // An attempt in the future was made before the clock was set back.
        let is_over = self.attempted.is_none_or(|attempted| attempted > now || now.since(attempted) >= pause);
        if is_over {
            self.attempts = self.attempts.saturating_add(1);
            self.attempted = Some(now);
        }
        is_over
    }
}

impl Times {
    fn of(token: &Secret) -> Option<Self> {
        let payload = URL_SAFE_NO_PAD.decode(token.expose().split('.').nth(1)?).ok()?;
        serde_json::from_slice(&payload).ok()
    }

    fn are_due(&self, now: u64) -> bool {
        now >= self.iat.saturating_add(self.exp.saturating_sub(self.iat) / 3)
    }
}

/// Returns the time at which a token expires, in seconds since 1970; `None` if it is not a token.
pub fn expiry_of(token: &Secret) -> Option<u64> {
    Times::of(token).map(|times| times.exp)
}
