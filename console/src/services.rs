//! The services, as one user reaches them.

mod first_application;

use std::time::Duration;

use api::{
    discovery::Announcement,
    history::Query,
    rest::account::{Application, UserDetails},
};
use client::{
    account::UserPage,
    deliveries::DeliveryClient,
    handler::HandlerClient,
    history::{ChartClient, Export},
    silence::SilenceClient,
    webhooks::WebhookClient,
};
use tokio::time::timeout;
use types::{AppId, ApplicationRight, Credential, Kind, Kinded, Scope, ServiceName, UserId, Username};

use crate::{Console, Error, Result, session::Session};

/// Maximum time to wait until the account service confirms a login.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// An application that the user may see, with a token for it.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) app_id: AppId,
    pub(crate) credential: Credential,
}

impl Console {
    /// The user's applications, by id.
    pub(crate) async fn applications(&self, session: &Session) -> Result<Vec<Application>> {
        self.account.applications(&session.credential()).await.map_err(Error::of_account)
    }

    /// A page of all users, for operators. The account service decides itself who is one.
    pub(crate) async fn users(&self, session: &Session, search: &str, after: Option<&Username>) -> Result<UserPage> {
        self.account.users(&session.credential(), search, after).await.map_err(Error::of_account)
    }

    /// A user with their applications and gateways, for operators.
    pub(crate) async fn user(&self, session: &Session, user_id: &UserId) -> Result<UserDetails> {
        self.account.user(&session.credential(), user_id).await.map_err(Error::of_account)
    }

    /// Asks the account service whether the session has ended there, as when the user was disabled.
    pub(crate) async fn confirm(&self, session: &Session) -> Result<()> {
        let user = timeout(CONFIRM_TIMEOUT, self.account.me(&session.credential())).await;
        let user = user.map_err(|_| Error::SlowAccount)?.map_err(Error::of_account)?;
        if user.id == session.user_id { Ok(()) } else { Err(Error::LoggedOut) }
    }

    /// Access to an application; not found if the user has no rights to it.
    pub(crate) async fn access(&self, session: &Session, app_id: AppId) -> Result<Access> {
        let credential = self.token_for(session, &[&app_id]).await?;
        Ok(Access { app_id, credential })
    }

    /// A token for several applications; not found if the user has no rights to one of them.
    async fn token_for(&self, session: &Session, app_ids: &[&AppId]) -> Result<Credential> {
        let scopes: Vec<_> = app_ids.iter().map(|app_id| Scope::App((*app_id).clone())).collect();
        let token = self.account.restrict_token(session.token(), &scopes).await;
        token.map(Credential::Token).map_err(|error| match error.kind() {
            Kind::NotFound | Kind::Denied => Error::NotFound("application"),
            _ => Error::of_account(error),
        })
    }

    /// The other applications in which the user may change devices, by id.
    pub(crate) async fn destinations(&self, session: &Session, from: &AppId) -> Result<Vec<AppId>> {
        let may_change = |application: &Application| application.rights.contains(&ApplicationRight::Devices);
        let others = self.applications(session).await?.into_iter().filter(|other| other.id != *from);
        Ok(others.filter(may_change).map(|other| other.id).collect())
    }

    /// The handler of two applications, with a token for both; [`Error::Invalid`] if each has a handler of its own.
    pub(crate) async fn handler_of_both(&self, session: &Session, from: &Access, to: &AppId) -> Result<HandlerClient> {
        let to = Access { app_id: to.clone(), credential: self.token_for(session, &[&from.app_id, to]).await? };
        let (here, there) = (self.announcement(from).await?, self.announcement(&to).await?);
        let here = here.ok_or(Error::NotServed)?;
        match there.filter(|there| there.id == here.id) {
            Some(there) => Ok(HandlerClient::connect(&there, to.credential)?),
            None => {
                let must = format!("must be registered with the handler of this one, {}", here.id);
                Err(Error::Invalid { what: "Application", must })
            }
        }
    }

    /// The handler of an application; none if no handler serves it.
    pub(crate) async fn handler(&self, access: &Access) -> Result<Option<HandlerClient>> {
        let Some(announcement) = self.announcement(access).await? else { return Ok(None) };
        Ok(Some(HandlerClient::connect(&announcement, access.credential.clone())?))
    }

    /// The webhooks of an application; none if no handler serves it.
    pub(crate) async fn webhooks(&self, access: &Access) -> Result<Option<WebhookClient>> {
        let Some(announcement) = self.announcement(access).await? else { return Ok(None) };
        let client = WebhookClient::connect(&announcement, access.app_id.clone(), access.credential.clone());
        Ok(Some(client?))
    }

    /// The fates of an application's messages at the outputs; none if no handler serves it.
    pub(crate) async fn deliveries(&self, access: &Access) -> Result<Option<DeliveryClient>> {
        let Some(announcement) = self.announcement(access).await? else { return Ok(None) };
        Ok(Some(DeliveryClient::connect(&announcement, access.app_id.clone(), access.credential.clone())?))
    }

    /// The time after which devices of an application count as silent; none if no handler serves it.
    pub(crate) async fn silence(&self, access: &Access) -> Result<Option<SilenceClient>> {
        let Some(announcement) = self.announcement(access).await? else { return Ok(None) };
        Ok(Some(SilenceClient::connect(&announcement, access.app_id.clone(), access.credential.clone())?))
    }

    /// Charts of an application's history; none if no handler serves it.
    pub(crate) async fn charts(&self, access: &Access) -> Result<Option<ChartClient>> {
        let Some(announcement) = self.announcement(access).await? else { return Ok(None) };
        Ok(Some(ChartClient::connect(&announcement, access.app_id.clone(), access.credential.clone())?))
    }

    /// The messages of an application that match a query, as a file of CSV in parts.
    pub(crate) async fn export(&self, access: &Access, query: &Query) -> Result<Export> {
        let announcement = self.announcement(access).await?.ok_or(Error::NotServed)?;
        Ok(Export::start(&announcement, &access.app_id, &access.credential, query, "csv").await?)
    }

    /// The announcement of the handler of an application; none if no handler serves it.
    pub(crate) async fn announcement(&self, access: &Access) -> Result<Option<Announcement>> {
        match self.discovery()?.get_by_app_id(&access.app_id).await {
            Ok(announcement) => self.trusted(announcement).map(Some),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets this network's handler serve an application; returns that handler.
    pub(crate) async fn register(&self, access: &Access) -> Result<HandlerClient> {
        let handler = HandlerClient::connect(&self.own_handler().await?, access.credential.clone())?;
        let registered = handler.register_application(&access.app_id).await;
        // Then it has only been announced again, as the first time may have failed.
        if let Err(error) = registered
            && error.kind() != Kind::AlreadyExists
        {
            return Err(error.into());
        }
        Ok(handler)
    }

    /// The announcement of this network's handler, which there is once it has started for the first time.
    async fn own_handler(&self) -> Result<Announcement> {
        match self.discovery()?.get(ServiceName::Handler, &self.handler_id).await {
            Ok(announcement) => self.trusted(announcement),
            Err(error) if error.kind() == Kind::NotFound => Err(Error::HandlerStarting(self.handler_id.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// The user's token is sent there next.
    fn trusted(&self, announcement: Announcement) -> Result<Announcement> {
        match announcement.certificate.trim().is_empty() && !self.allow_insecure {
            true => Err(Error::Insecure),
            false => Ok(announcement),
        }
    }
}
