//! Turns the credential of a call into claims, with the help of the account service that issued it.

mod cache;
mod question;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use client::account::AccountClient;
use tokio::{
    sync::{Semaphore, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;
use types::{AccessKey, AppId, Claims, Clock, Credential, GatewayId, Secret};

use self::{
    cache::{Cache, PendingResponse},
    question::{Question, Response},
};
use super::{
    AuthError, AuthSettings, Caller, ComponentToken, LocalAccount, TokenError,
    entity::Entity,
    issuer::Issuer,
    memory::{CredentialId, Memory},
    metrics, public_keys,
    rule::{Before, Decision, Now, Purpose, decision},
    verifier::Origin,
};
use crate::ledger::Owner;

/// Maximum duration of a question.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that a call waits if it can go on without a response. The question goes on, and its response counts for
/// later calls.
const ASK_AGAIN_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of questions at the same time. Further calls are decided without asking.
const QUESTIONS_MAX: usize = 4096;
/// Interval between checks of this component's own token.
const COMPONENT_INTERVAL: Duration = Duration::from_secs(2);

/// An account service to trust.
pub struct TrustedAccount {
    /// Its address.
    pub client: AccountClient,
    /// The service itself if it runs in this process. Then it is asked about credentials without HTTP.
    pub local: Option<Arc<dyn LocalAccount>>,
}

/// Authenticates callers.
///
/// It verifies tokens with their issuer's public keys, asks the issuer which rights of a token remain, and exchanges
/// access keys there. The response about a credential and an application is cached for 2 seconds. While the issuer
/// cannot be asked, [`Purpose`] decides how long its last response counts.
pub struct Authenticator {
    issuers: BTreeMap<String, Arc<Issuer>>,
    cache: Cache<CredentialId, Response, AuthError>,
    memory: Arc<Memory>,
    /// One permit per question that is being asked.
    questions: Arc<Semaphore>,
    settings: AuthSettings,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Trusts these account services, each by the id that its tokens and access keys carry. `component` is our own
    /// token there, if there is one.
    pub fn new(
        issuers: BTreeMap<String, TrustedAccount>,
        component: Option<&Arc<ComponentToken>>,
        settings: AuthSettings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let trusted = issuers.into_iter().map(|(id, TrustedAccount { client, local })| {
            let client = identified(&id, client, component);
            let issuer = Issuer::new(&id, (client, local), component.cloned(), Arc::clone(&clock));
            (id, Arc::new(issuer))
        });
        let questions = Arc::new(Semaphore::new(QUESTIONS_MAX));
        let (issuers, memory) = (trusted.collect(), Arc::default());
        Self { issuers, cache: Cache::default(), memory, questions, settings, clock }
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
        let issuer = self.issuer(&Origin::of(token.expose())?.issuer)?;
        let claims = self.authenticate_token(issuer, &token, purpose).await?;
        usage.set_caller(&claims);
        Ok(claims)
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
        self.authenticate_at(Entity::Application(app_id.clone()), caller.into(), purpose).await
    }

    /// A token with which others can be called in the caller's name: its own, or the one for its access key.
    ///
    /// It is not verified: call [`Self::authenticate_for`] first.
    pub async fn token_for(&self, app_id: &AppId, credential: &Credential) -> Result<Secret, AuthError> {
        match self.with_issuer(credential.clone())? {
            Credential::Token(token) => Ok(token),
            Credential::Key(key) => {
                let token = self.issuer_of_key(&key)?.exchange_for_token(app_id, &key, &Owner::from(app_id)).await?;
                token.ok_or_else(|| AuthError::Key { app_id: app_id.clone() })
            }
        }
    }

    /// The claims of a token, without the rights to this gateway that the user has lost since it was issued.
    pub async fn authenticate_for_gateway(
        &self,
        gateway_id: &GatewayId,
        caller: impl Into<Caller>,
        purpose: Purpose,
    ) -> Result<Claims, AuthError> {
        self.authenticate_at(Entity::Gateway(gateway_id.clone()), caller.into(), purpose).await
    }

    async fn authenticate_at(&self, entity: Entity, caller: Caller, purpose: Purpose) -> Result<Claims, AuthError> {
        let Caller { credential, usage } = caller;
        let credential = self.with_issuer(credential.ok_or(AuthError::Missing)?)?;
        let question = Question::new(entity, credential, usage.owner());
        let claims = self.decide(question, purpose).await.map(Arc::unwrap_or_clone)?;
        usage.set_caller(&claims);
        Ok(claims)
    }

    /// The claims of a token about which there is nothing to ask: it counts as long as the key that signed it.
    async fn authenticate_token(&self, issuer: &Issuer, token: &Secret, purpose: Purpose) -> Result<Claims, AuthError> {
        let age_max = match purpose {
            Purpose::Change => public_keys::AGE_MAX_FOR_CHANGES,
            Purpose::Read | Purpose::Live => public_keys::AGE_MAX,
        };
        let (claims, (now, before)) = issuer.claims(token, age_max).await?;
        match self.decision(now, before, purpose) {
            Decision::Unavailable(why) => Err(AuthError::Unconfirmed { why, cause: None }),
            Decision::Refused => Err(AuthError::Revoked),
            Decision::Allowed => Ok(claims),
        }
    }

    /// Decides by the account service's response or, if there is none, by its last one.
    async fn decide(&self, question: Question, purpose: Purpose) -> Result<Arc<Claims>, AuthError> {
        let Question { id, entity, credential, .. } = &question;
        if let Some(response) = self.cache.response(id, self.clock.now()) {
            return response.ok_or_else(|| entity.refusal(credential));
        }
        let issuer = self.issuer_of(credential)?;
        let (before, last) = self.memory.recall(id, entity, self.clock.now());
        if let (None, Credential::Token(token)) = (&last, credential)
            && !entity.is_in(&issuer.vouched_claims(token).await?)
        {
            return self.authenticate_token(issuer, token, purpose).await.map(Arc::new);
        }
        let silent_for = || issuer.reachability.silent_for(self.clock.now());
        let can_go_on = self.decision(Now::Silent(silent_for()), before, purpose) == Decision::Allowed;
        let (now, claims, cause) = match self.ask_within_limits(issuer, &question, can_go_on).await? {
            QuestionResult::Response(Some(claims)) => (Now::Confirmed, Some(claims), None),
            QuestionResult::Response(None) => (Now::Refused, None, None),
            QuestionResult::Silence(cause) => (Now::Silent(silent_for()), last, cause),
        };
        match (self.decision(now, before, purpose), claims) {
            (Decision::Allowed, Some(claims)) => {
                if matches!(now, Now::Silent(_)) {
                    self.check_still_valid(issuer, &claims, credential)?;
                    metrics::unconfirmed("allowed");
                }
                Ok(claims)
            }
            (Decision::Unavailable(why), _) => {
                metrics::unconfirmed("refused");
                Err(AuthError::Unconfirmed { why, cause })
            }
            (Decision::Refused | Decision::Allowed, _) => Err(entity.refusal(credential)),
        }
    }

    fn decision(&self, now: Now, before: Before, purpose: Purpose) -> Decision {
        decision(now, before, purpose, self.settings.grace_time())
    }

    /// Asks the account service. While it is silent, one call in each pause does; a call that can go on waits less.
    async fn ask_within_limits(
        &self,
        issuer: &Arc<Issuer>,
        question: &Question,
        can_go_on: bool,
    ) -> Result<QuestionResult, AuthError> {
        let now = self.clock.now();
        if !issuer.reachability.may_ask(now) {
            return Ok(QuestionResult::Silence(None));
        }
        let mut outcome = self.cache.join_or(&question.id, now, || self.ask(issuer, question));
        // The question itself has a limit.
        let limit = if can_go_on { ASK_AGAIN_WAIT } else { Duration::MAX };
        let outcome = match timeout(limit, outcome.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => outcome.clone(),
            // It was not asked, because too many are.
            Ok(Err(_)) => None,
            Err(_) => {
                issuer.reachability.slow(self.clock.now());
                None
            }
        };
        match outcome {
            Some(Ok(response)) => Ok(QuestionResult::Response(response)),
            Some(Err(error)) if error.is_silence() => Ok(QuestionResult::Silence(Some(Arc::new(error)))),
            Some(Err(error)) => Err(error),
            None => Ok(QuestionResult::Silence(None)),
        }
    }

    /// Asks in a task of its own, so that the response counts although nobody waits for it any more.
    fn ask(&self, issuer: &Arc<Issuer>, question: &Question) -> PendingResponse<Response, AuthError> {
        let (sender, outcome) = watch::channel(None);
        let Ok(permit) = Arc::clone(&self.questions).try_acquire_owned() else { return outcome };
        let (issuer, question, memory) = (Arc::clone(issuer), question.clone(), Arc::clone(&self.memory));
        tokio::spawn(async move {
            let response = timeout(ASK_TIMEOUT, question.ask(&issuer, &memory)).await;
            sender.send_replace(Some(response.unwrap_or_else(|_| Err(issuer.timed_out()))));
            drop(permit);
        });
        outcome
    }

    /// A token ends when it says, or with the key that signed it, also while nobody can be asked. An access key lives
    /// on.
    fn check_still_valid(&self, issuer: &Issuer, claims: &Claims, credential: &Credential) -> Result<(), AuthError> {
        match credential {
            Credential::Token(_) if claims.exp <= self.clock.now().as_secs() => Err(TokenError::Expired.into()),
            Credential::Token(token) if issuer.has_withdrawn_key_of(token) => Err(TokenError::Key.into()),
            _ => Ok(()),
        }
    }

    fn issuer_of(&self, credential: &Credential) -> Result<&Arc<Issuer>, AuthError> {
        match credential {
            Credential::Token(token) => self.issuer(&Origin::of(token.expose())?.issuer),
            Credential::Key(key) => self.issuer_of_key(key),
        }
    }

    fn issuer_of_key(&self, key: &AccessKey) -> Result<&Arc<Issuer>, AuthError> {
        key.issuer().and_then(|id| self.issuers.get(id)).ok_or(AuthError::KeyIssuer)
    }

    /// An access key that does not name its issuer is one of the only account service that is trusted.
    fn with_issuer(&self, credential: Credential) -> Result<Credential, AuthError> {
        let mut ids = self.issuers.keys();
        match (credential, ids.next(), ids.next()) {
            (Credential::Key(key), Some(only), None) => Ok(Credential::Key(key.or_issued_by(only)?)),
            (credential, ..) => Ok(credential),
        }
    }

    fn issuer(&self, id: &str) -> Result<&Arc<Issuer>, AuthError> {
        Ok(self.issuers.get(id).ok_or(TokenError::Issuer)?)
    }
}

/// A client that says which component asks, if this account service has issued our token.
fn identified(issuer: &str, client: AccountClient, component: Option<&Arc<ComponentToken>>) -> AccountClient {
    // Calls that are still being made must not keep what the component's token comes from, such as the store.
    let Some(component) = component.map(Arc::downgrade) else { return client };
    let issuer = issuer.to_owned();
    let is_issuer = move |token: &Secret| Origin::of(token.expose()).is_ok_and(|origin| origin.issuer == issuer);
    client.identified_by(move || component.upgrade()?.current().filter(&is_issuer))
}

/// Outcome of a question.
enum QuestionResult {
    Response(Response),
    /// There is no response yet; why, if the question failed.
    Silence(Option<Arc<AuthError>>),
}

impl From<AccountClient> for TrustedAccount {
    fn from(client: AccountClient) -> Self {
        Self { client, local: None }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.keys().collect();
        out.debug_struct("Authenticator").field("issuers", &issuers).finish_non_exhaustive()
    }
}
