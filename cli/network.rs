//! What commands talk to: the services, as far as the settings and the login say where and as whom.

use std::fs;

use anyhow::{Context, bail};
use api::rest::account::Application;
use client::{
    Trust,
    account::{AccountClient, ClientCredentials},
    discovery::DiscoveryClient,
    handler::HandlerClient,
};
use types::{AppEui, AppId, ApplicationRight, Clock, Credential, Kind, Kinded, Scope, Secret, ServiceName};

use crate::{
    commands::applications::access_key,
    session::{Files, Login},
    settings::Settings,
};

/// The OAuth client that this program is.
const CLIENT_ID: &str = "airlock";
/// What to do when a command does not know which application is meant.
const NOTHING_SELECTED: &str = "no application is selected: use `airlock applications select`";

/// The services as one person sees them.
pub(crate) struct Network {
    settings: Settings,
    /// The person's files.
    pub(crate) files: Files,
}

impl Network {
    /// The network that the settings describe.
    pub(crate) fn new(settings: Settings) -> Self {
        let files = Files::new(&settings.data_dir);
        Self { settings, files }
    }

    /// The account service.
    pub(crate) fn account(&self) -> anyhow::Result<AccountClient> {
        Ok(AccountClient::new(&self.settings.client.auth_server)?)
    }

    /// The OAuth client that this program logs in as: a public one, which has no secret.
    pub(crate) fn client_credentials() -> anyhow::Result<ClientCredentials> {
        Ok(ClientCredentials { id: CLIENT_ID.parse()?, secret: Secret::default() })
    }

    /// The address of the account service, as a login remembers it.
    pub(crate) fn auth_server(&self) -> &str {
        &self.settings.client.auth_server
    }

    /// The login, which has to be there; one that has ended is continued where that can be done.
    pub(crate) async fn login(&self, clock: &dyn Clock) -> anyhow::Result<Login> {
        match self.files.login()? {
            Some(login) if login.auth_server != self.settings.client.auth_server => {
                bail!("you are logged in at {}: log in here with `airlock user login`", login.auth_server)
            }
            Some(login) if login.expires <= clock.now() => self.go_on(&login, clock).await,
            Some(login) => Ok(login),
            None => bail!("you are not logged in: use `airlock user login`"),
        }
    }

    /// Exchanges the refresh token of a login that has ended for a login that has not.
    async fn go_on(&self, login: &Login, clock: &dyn Clock) -> anyhow::Result<Login> {
        let ended = || format!("your login has ended: log in again with `airlock user login {}`", login.username);
        let refresh_token = login.refresh_token.as_ref().with_context(ended)?;
        let answer = match self.account()?.refresh_token(&Self::client_credentials()?, refresh_token).await {
            Err(error) if error.kind() == Kind::Invalid => return Err(error).with_context(ended),
            answer => answer?,
        };
        let login = Login::new(&login.auth_server, login.username.clone(), answer, clock);
        self.files.set_login(&login)?;
        Ok(login)
    }

    /// The credential of the login, for what needs no single thing.
    pub(crate) async fn credential(&self, clock: &dyn Clock) -> anyhow::Result<Credential> {
        Ok(Credential::Token(self.login(clock).await?.access_token))
    }

    /// The credential of the login, for one application.
    pub(crate) async fn credential_for(&self, app_id: &AppId, clock: &dyn Clock) -> anyhow::Result<Credential> {
        self.credential_with(Scope::App(app_id.clone()), clock).await
    }

    /// The credential of the login, for one thing.
    pub(crate) async fn credential_with(&self, scope: Scope, clock: &dyn Clock) -> anyhow::Result<Credential> {
        let login = self.login(clock).await?;
        Ok(Credential::Token(self.account()?.restrict_token(&login.access_token, &[scope]).await?))
    }

    /// The application that is meant: the one named, or the selected one.
    pub(crate) fn application(&self, named: Option<AppId>) -> anyhow::Result<AppId> {
        let selected = || Ok(self.files.selection()?.context(NOTHING_SELECTED)?.app_id);
        named.map_or_else(selected, Ok)
    }

    /// The EUI that devices of an application get: the one named, the selected one, or the first of the application.
    pub(crate) fn app_eui(&self, application: &Application, named: Option<AppEui>) -> anyhow::Result<AppEui> {
        let selection = self.files.selection()?.filter(|selection| selection.app_id == application.id);
        let selected = selection.and_then(|selection| selection.app_eui);
        match named.or(selected) {
            Some(eui) if application.euis.contains(&eui) => Ok(eui),
            Some(eui) => bail!("{eui} is no EUI of application {}", application.id),
            None => Ok(application.euis.first().copied().unwrap_or_default()),
        }
    }

    /// What the handler announced.
    pub(crate) async fn announcement(&self) -> anyhow::Result<api::discovery::Announcement> {
        let client = &self.settings.client;
        let discovery = DiscoveryClient::connect(&client.discovery_address, &self.trust()?)?;
        discovery.get(ServiceName::Handler, &client.handler_id).await.with_context(|| {
            let (id, place) = (&client.handler_id, self.settings.data_dir.join("ca.cert"));
            let hint = if place.exists() {
                String::new()
            } else {
                format!("; to trust a server, copy its ca.cert to {}", place.display())
            };
            format!("cannot find the handler `{id}`{hint}")
        })
    }

    /// The handler, as whoever has this credential.
    pub(crate) async fn handler(&self, credential: Credential) -> anyhow::Result<HandlerClient> {
        Ok(HandlerClient::connect(&self.announcement().await?, credential)?)
    }

    /// The application whose messages are meant: the one named, the one of the settings, or the selected one.
    pub(crate) fn mqtt_application(&self, named: Option<AppId>) -> anyhow::Result<AppId> {
        self.application(named.or_else(|| self.settings.client.mqtt_username.clone()))
    }

    /// The password for the MQTT broker: the one in the settings, else the access key of this name, else the first one
    /// with this right.
    pub(crate) async fn mqtt_credential(
        &self,
        app_id: &AppId,
        name: Option<String>,
        right: ApplicationRight,
        clock: &dyn Clock,
    ) -> anyhow::Result<Credential> {
        if let Some(key) = &self.settings.client.mqtt_password {
            return Ok(Credential::Key(key.clone()));
        }
        let credential = self.credential_for(app_id, clock).await?;
        access_key(self, &credential, app_id, name.as_deref(), right).await.map(Credential::Key)
    }

    /// The address of the MQTT broker: the one in the settings, or the one that the handler announces.
    pub(crate) async fn mqtt_address(&self) -> anyhow::Result<String> {
        match &self.settings.client.mqtt_address {
            Some(address) => Ok(address.clone()),
            None => Ok(self.announcement().await?.mqtt_address),
        }
    }

    /// Whom to believe to be the discovery service: the certificate beside our data, else whom the machine trusts.
    fn trust(&self) -> anyhow::Result<Trust> {
        if self.settings.client.allow_insecure {
            return Ok(Trust::Plaintext);
        }
        let path = self.settings.data_dir.join("ca.cert");
        match fs::read_to_string(&path) {
            Ok(certificate) => Ok(Trust::Certificate(certificate)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Trust::System),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}
