//! Who may do what to an application: asked once per operation, before anything is looked up.

pub(crate) mod rate_limit;

use std::sync::Arc;

use server::auth::Authenticator;
use types::{AccessKey, AppId, ApplicationRight, Claims, ComponentId, Credential, Kind, Kinded, Scope, ServiceName};

pub use self::rate_limit::{Calls, Throttle};
use crate::Error;

/// Decides whether a caller may do something.
#[derive(Clone)]
pub struct Access {
    authenticator: Arc<Authenticator>,
    throttle: Throttle,
}

impl Access {
    /// Believes what `authenticator` says about callers, and lets them call as often as `throttle` says.
    pub fn new(authenticator: Arc<Authenticator>, throttle: Throttle) -> Self {
        Self { authenticator, throttle }
    }

    /// Lets a caller pass who holds one of `rights`; [`Error::Denied`] otherwise, [`Error::Throttled`] when it is one
    /// call too many.
    ///
    /// What counts for the application comes last, so that nobody without rights uses up what it may be called.
    /// The answer does not depend on whether the application exists, so that a stranger learns nothing from it.
    pub async fn allow(
        &self,
        caller: Option<Credential>,
        app_id: &AppId,
        rights: &[ApplicationRight],
    ) -> Result<Claims, Error> {
        let claims = self.authenticator.authenticate_for(app_id, caller).await?;
        self.throttle.client(&claims).await?;
        if rights.iter().any(|right| claims.allows(app_id, *right)) {
            self.throttle.application(app_id).await?;
            return Ok(claims);
        }
        let right = rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join("` or `");
        Err(Error::Denied { right, app_id: app_id.clone() })
    }

    /// Lets an application's own access key pass that holds this right; [`Error::Invalid`] when it opens nothing any more.
    ///
    /// It is not counted: what devices send does not use up what an application may be called.
    pub(crate) async fn allow_key(&self, key: AccessKey, app_id: &AppId, right: ApplicationRight) -> Result<(), Error> {
        match self.authenticator.authenticate_for(app_id, Some(Credential::Key(key))).await {
            Ok(claims) if claims.allows(app_id, right) => Ok(()),
            Ok(_) => Err(Error::Denied { right: right.as_str().to_owned(), app_id: app_id.clone() }),
            // Its caller is a broker, whose own credential is good.
            Err(error) if error.kind() == Kind::Unauthenticated => Err(Error::invalid("Application", error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets one of these brokers pass.
    pub(crate) async fn allow_broker(&self, caller: Option<Credential>, brokers: &[ComponentId]) -> Result<(), Error> {
        let claims = self.authenticator.authenticate(caller).await?;
        if brokers.iter().any(|id| claims.is_component(ServiceName::Broker, id)) {
            return Ok(());
        }
        Err(Error::BrokerDenied)
    }

    /// Lets pass who may look after this handler: itself, and whom its owner gave a token for it.
    pub async fn allow_component(&self, caller: Option<Credential>, id: &ComponentId) -> Result<(), Error> {
        let claims = self.authenticator.authenticate(caller).await?;
        self.throttle.client(&claims).await?;
        if claims.scope.contains(&Scope::Component(id.clone())) || claims.is_component(ServiceName::Handler, id) {
            return Ok(());
        }
        Err(Error::ComponentDenied { id: id.clone() })
    }
}
