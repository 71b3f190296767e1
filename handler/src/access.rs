//! Checks a caller's rights and rate limits, once per operation, before anything is read.

pub mod grants;
pub(crate) mod rate_limit;

use std::sync::Arc;

use server::auth::{Authenticator, Caller, Purpose};
use types::{
    AccessKey, AppId, ApplicationRight, Claims, ComponentId, Credential, Kind, Kinded, Scope, Secret, ServiceName,
};

pub(crate) use self::rate_limit::TooMany;
pub use self::rate_limit::{RateLimiter, RateLimits};
use crate::Error;

/// Rights of which a caller needs one, to send uplinks as if devices had sent them.
const UPLINK_RIGHTS: [ApplicationRight; 2] = [ApplicationRight::Devices, ApplicationRight::MessagesUpWrite];

/// Decides whether a caller may do something.
#[derive(Clone)]
pub struct Access {
    authenticator: Arc<Authenticator>,
    rate_limiter: RateLimiter,
}

impl Access {
    /// Trusts `authenticator` on who callers are, and `rate_limiter` on how often they may call.
    pub fn new(authenticator: Arc<Authenticator>, rate_limiter: RateLimiter) -> Self {
        Self { authenticator, rate_limiter }
    }

    /// Allows a caller that has one of `rights`; [`Error::Denied`] otherwise, [`Error::RateLimited`] for one call too
    /// many.
    ///
    /// The application's calls are counted last, so that callers without rights cannot use up its limit. The result
    /// does not depend on whether the application exists, so as not to reveal which applications exist.
    pub(crate) async fn allow(
        &self,
        caller: Caller,
        app_id: &AppId,
        rights: &[ApplicationRight],
        purpose: Purpose,
    ) -> Result<Claims, Error> {
        let claims = self.authenticator.authenticate_for(app_id, caller, purpose).await?;
        self.rate_limiter.count_client(&claims).await?;
        check(&claims, app_id, rights)?;
        self.rate_limiter.count_application(app_id).await?;
        Ok(claims)
    }

    /// Allows as many of `wanted` uplinks of an application as the rate limits do, and returns how many these are, and
    /// what refuses the others; [`Error::Denied`] if the caller may send none. None may be wanted, to learn just that.
    pub(crate) async fn allow_uplinks(
        &self,
        caller: Caller,
        app_id: &AppId,
        wanted: u32,
    ) -> Result<(u32, Option<TooMany>), Error> {
        let claims = self.authenticator.authenticate_for(app_id, caller, Purpose::Live).await?;
        if let Err(denied) = check(&claims, app_id, &UPLINK_RIGHTS) {
            self.rate_limiter.count_client(&claims).await?;
            return Err(denied);
        }
        if wanted == 0 {
            return Ok((0, None));
        }
        let (of_client, refused) = self.rate_limiter.count_several_of_client(&claims, wanted).await?;
        if of_client == 0 {
            return Ok((0, refused));
        }
        let (allowed, refused_by_application) =
            self.rate_limiter.count_several_of_application(app_id, of_client).await?;
        Ok((allowed, refused_by_application.or(refused)))
    }

    /// Returns true if a caller that was allowed another operation also holds this right to read. Counts no call.
    pub(crate) async fn may_read(&self, caller: Caller, app_id: &AppId, right: ApplicationRight) -> bool {
        let claims = self.authenticator.authenticate_for(app_id, caller, Purpose::Read).await;
        claims.is_ok_and(|claims| claims.allows(app_id, right))
    }

    /// Allows an application's own access key that has this right; [`Error::Invalid`] if the key is no longer valid.
    ///
    /// No call is counted, because traffic from devices must not use up the application's limit.
    pub(crate) async fn allow_key(&self, key: AccessKey, app_id: &AppId, right: ApplicationRight) -> Result<(), Error> {
        // The key registers a device, which is a change.
        match self.authenticator.authenticate_for(app_id, Some(Credential::Key(key)), Purpose::Change).await {
            Ok(claims) if claims.allows(app_id, right) => Ok(()),
            Ok(_) => Err(Error::Denied { right: right.as_str().to_owned(), app_id: app_id.clone() }),
            // The caller is a network broker, whose own credential is valid.
            Err(error) if error.kind() == Kind::Unauthenticated => Err(Error::invalid("Application", error)),
            Err(error) => Err(error.into()),
        }
    }

    /// A token with which others can be called in the name of a caller that was allowed.
    pub(crate) async fn token(&self, app_id: &AppId, credential: &Credential) -> Result<Secret, Error> {
        Ok(self.authenticator.token_for(app_id, credential).await?)
    }

    pub(crate) async fn allow_network_broker(&self, caller: Caller, brokers: &[ComponentId]) -> Result<(), Error> {
        let usage = caller.usage.clone();
        let claims = self.authenticator.authenticate(caller, Purpose::Live).await?;
        if brokers.iter().any(|id| claims.is_component(ServiceName::Broker, id)) {
            usage.set_network();
            return Ok(());
        }
        Err(Error::NetworkBrokerDenied)
    }

    /// Allows the handler itself, and callers with a token that its owner issued for it.
    pub(crate) async fn allow_component(&self, caller: Caller, id: &ComponentId) -> Result<(), Error> {
        let claims = self.authenticator.authenticate(caller, Purpose::Read).await?;
        self.rate_limiter.count_client(&claims).await?;
        if claims.scope.contains(&Scope::Component(id.clone())) || claims.is_component(ServiceName::Handler, id) {
            return Ok(());
        }
        Err(Error::ComponentDenied(id.clone()))
    }
}

fn check(claims: &Claims, app_id: &AppId, rights: &[ApplicationRight]) -> Result<(), Error> {
    if rights.iter().any(|right| claims.allows(app_id, *right)) {
        return Ok(());
    }
    let right = rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join("` or `");
    Err(Error::Denied { right, app_id: app_id.clone() })
}
