//! Turns the credential of a call into claims, with the help of the account service that issued it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use client::account::AccountClient;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use types::{AppId, Claims, Clock, Credential, Secret};

use super::{
    AuthError, AuthSettings, Caller, ComponentToken, TokenError,
    cache::{Cache, Cell},
    issuer::Issuer,
    memory::{CredentialId, Memory},
    metrics,
    rule::{Now, Purpose, Verdict, verdict},
    verifier::Origin,
};

/// How long a call waits for a response about its credential.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a call that can go on without one.
const ASK_AGAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How often this component's own token is checked.
const COMPONENT_INTERVAL: Duration = Duration::from_secs(2);

/// Authenticates callers.
///
/// It verifies tokens with their issuer's public keys, asks the issuer which rights of a token remain, and exchanges
/// access keys there. The response about a credential and an application is cached for 2 seconds. While the issuer cannot be
/// asked, [`Purpose`] decides how long its last response counts.
pub struct Authenticator {
    issuers: BTreeMap<String, Issuer>,
    cache: Cache<CredentialId, Confirmed>,
    memory: Memory,
    settings: AuthSettings,
    clock: Arc<dyn Clock>,
}

/// What the account service said about a credential: what it may do, or none if it is refused.
type Confirmed = Option<Arc<Claims>>;

impl Authenticator {
    /// Trusts these account services, each by the id that its tokens and access keys carry. `component` is our own token
    /// there, if there is one.
    pub fn new(
        issuers: BTreeMap<String, Arc<AccountClient>>,
        component: Option<&Arc<ComponentToken>>,
        settings: AuthSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let trusted = issuers.into_iter().map(|(id, client)| {
            let issuer = Issuer::new(&id, client, component.cloned(), Arc::clone(&clock));
            (id, issuer)
        });
        Self { issuers: trusted.collect(), cache: Cache::default(), memory: Memory::default(), settings, clock }
    }

    /// Keeps this component's own token accepted, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(COMPONENT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let forever = async {
            loop {
                ticks.tick().await;
                self.keep_component_accepted().await;
            }
        };
        _ = stop.run_until_cancelled(forever).await;
    }

    /// Renews this component's own token if it is due, or no longer valid.
    pub async fn keep_component_accepted(&self) {
        for issuer in self.issuers.values() {
            issuer.keep_component_accepted().await;
        }
    }

    /// The claims of a token. An access key is refused: it is valid only with the application that it belongs to.
    pub async fn authenticate(&self, caller: impl Into<Caller>, purpose: Purpose) -> Result<Claims, AuthError> {
        let Caller { credential, usage } = caller.into();
        let Credential::Token(token) = credential.ok_or(AuthError::Missing)? else {
            return Err(AuthError::KeyWithoutApplication);
        };
        let origin = Origin::of(token.expose())?;
        let keys = self.issuer(&origin.issuer)?.keys(&origin.key_id).await?;
        let claims = keys.verifier.verify(token.expose(), self.clock.now())?;
        usage.set_caller(&claims);
        let (now, before) = keys.confirmed;
        match verdict(now, before, purpose, self.settings.grace_time()) {
            Verdict::Unavailable(why) => Err(AuthError::Unconfirmed { why, cause: None }),
            Verdict::Allowed | Verdict::Refused => Ok(claims),
        }
    }

    /// The claims of a token, or of an access key of this application.
    ///
    /// Ask [`Claims::allows`] for the right. Rights that the user has lost since the token was issued are left out.
    pub async fn authenticate_for(
        &self,
        app_id: &AppId,
        caller: impl Into<Caller>,
        purpose: Purpose,
    ) -> Result<Claims, AuthError> {
        let Caller { credential, usage } = caller.into();
        let claims = self.authenticate_credential(app_id, credential, purpose).await?;
        usage.set_caller(&claims);
        Ok(claims)
    }

    async fn authenticate_credential(
        &self,
        app_id: &AppId,
        credential: Option<Credential>,
        purpose: Purpose,
    ) -> Result<Claims, AuthError> {
        let credential = credential.ok_or(AuthError::Missing)?;
        let id = CredentialId::of(app_id, &credential);
        let cell = self.cache.cell(&id, self.clock.now());
        let response = match cell.get() {
            Some(Some(claims)) => return Ok(Claims::clone(claims)),
            Some(None) => return Err(refused(app_id, &credential)),
            None => self.decide(Question { cell: &cell, id, app_id, credential: &credential }, purpose).await,
        };
        response.map(Arc::unwrap_or_clone).inspect_err(|_| self.cache.remove(&id, &cell))
    }

    /// Decides by the account service's response or, if there is none, by its last one.
    async fn decide(&self, question: Question<'_>, purpose: Purpose) -> Result<Arc<Claims>, AuthError> {
        let (before, last) = self.memory.recall(&question.id, self.clock.now());
        let verdict = |now| verdict(now, before, purpose, self.settings.grace_time());
        let issuer = self.issuer_of(question.credential)?;
        let can_go_on = verdict(Now::Silent) == Verdict::Allowed;
        let asked = self.ask_within_limits(issuer, &question, can_go_on).await;
        // The token has expired, or its key was withdrawn: whoever confirmed it would not do so again.
        let asked = asked.inspect_err(|_| self.memory.forget(&question.id))?;
        let (now, claims, cause) = match asked {
            Asked::Response(Some(claims)) => (Now::Confirmed, Some(claims), None),
            Asked::Response(None) => (Now::Refused, None, None),
            Asked::Silence(cause) => (Now::Silent, last, cause),
        };
        match (verdict(now), claims) {
            (Verdict::Allowed, Some(claims)) => {
                if now == Now::Silent {
                    self.check_still_valid(issuer, &claims, question.credential)?;
                    metrics::unconfirmed("allowed");
                }
                Ok(claims)
            }
            (Verdict::Unavailable(why), _) => {
                metrics::unconfirmed("refused");
                Err(AuthError::Unconfirmed { why, cause })
            }
            (Verdict::Refused | Verdict::Allowed, _) => Err(refused(question.app_id, question.credential)),
        }
    }

    /// Asks the account service; a call that can go on without a response waits less, and not every time.
    async fn ask_within_limits(
        &self,
        issuer: &Issuer,
        question: &Question<'_>,
        can_go_on: bool,
    ) -> Result<Asked, AuthError> {
        if can_go_on && !issuer.reachability.may_ask(self.clock.now()) {
            return Ok(Asked::Silence(None));
        }
        let limit = if can_go_on { ASK_AGAIN_TIMEOUT } else { ASK_TIMEOUT };
        let asked = timeout(limit, question.cell.get_or_try_init(|| self.ask(issuer, question))).await;
        match asked.unwrap_or_else(|_| Err(issuer.timed_out())) {
            Ok(response) => Ok(Asked::Response(response.clone())),
            Err(error) if error.is_silence() => Ok(Asked::Silence(Some(Arc::new(error)))),
            Err(error) => Err(error),
        }
    }

    /// Asks the account service about a credential, and remembers its response.
    async fn ask(&self, issuer: &Issuer, question: &Question<'_>) -> Result<Confirmed, AuthError> {
        let Question { id, app_id, credential, .. } = *question;
        let response = match credential {
            Credential::Token(token) => self.current_claims(issuer, app_id, token).await?,
            Credential::Key(key) => issuer.exchange(app_id, key).await?,
        };
        let response = response.map(Arc::new);
        match &response {
            Some(claims) if claims.apps.get(app_id).is_some_and(|rights| !rights.is_empty()) => {
                self.memory.confirm(id, Arc::clone(claims), self.clock.now());
            }
            // Without any right, it is as good as refused.
            _ => self.memory.refuse(id),
        }
        Ok(response)
    }

    /// The claims of a token, as far as they still hold.
    ///
    /// Whether it is too early is for the account service to say, by whose clock it was issued.
    async fn current_claims(
        &self,
        issuer: &Issuer,
        app_id: &AppId,
        token: &Secret,
    ) -> Result<Option<Claims>, AuthError> {
        let origin = Origin::of(token.expose())?;
        let keys = issuer.keys(&origin.key_id).await?;
        let claims = keys.verifier.verify_vouched(token.expose(), self.clock.now())?;
        if !claims.apps.contains_key(app_id) {
            return Ok(Some(keys.verifier.verify(token.expose(), self.clock.now())?));
        }
        issuer.current_claims(app_id, token, claims).await
    }

    /// A token ends when it says, or with the key that signed it, also while nobody can be asked. An access key lives on.
    fn check_still_valid(&self, issuer: &Issuer, claims: &Claims, credential: &Credential) -> Result<(), AuthError> {
        match credential {
            Credential::Token(_) if claims.exp <= self.clock.now().as_secs() => Err(TokenError::Expired.into()),
            Credential::Token(token) if issuer.has_withdrawn_key_of(token) => Err(TokenError::Key.into()),
            _ => Ok(()),
        }
    }

    fn issuer_of(&self, credential: &Credential) -> Result<&Issuer, AuthError> {
        match credential {
            Credential::Token(token) => self.issuer(&Origin::of(token.expose())?.issuer),
            Credential::Key(key) => self.issuers.get(key.issuer()).ok_or(AuthError::KeyIssuer),
        }
    }

    fn issuer(&self, id: &str) -> Result<&Issuer, AuthError> {
        Ok(self.issuers.get(id).ok_or(TokenError::Issuer)?)
    }
}

/// A credential that there is no cached response about.
struct Question<'a> {
    /// Where the response goes.
    cell: &'a Cell<Confirmed>,
    id: CredentialId,
    app_id: &'a AppId,
    credential: &'a Credential,
}

/// What came of a question.
enum Asked {
    Response(Confirmed),
    /// There is no response; why, if the question was asked.
    Silence(Option<Arc<AuthError>>),
}

fn refused(app_id: &AppId, credential: &Credential) -> AuthError {
    match credential {
        Credential::Token(_) => AuthError::Revoked,
        Credential::Key(_) => AuthError::Key { app_id: app_id.clone() },
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.keys().collect();
        out.debug_struct("Authenticator").field("issuers", &issuers).finish_non_exhaustive()
    }
}
