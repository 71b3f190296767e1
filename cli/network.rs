//! What commands talk to: the services, as far as the settings and the login say where and as whom.

use std::fs;

use anyhow::{Context, bail};
use client::{
    Trust,
    account::{AccountClient, ClientCredentials},
    discovery::DiscoveryClient,
    handler::HandlerClient,
};
use types::{AppId, Clock, Credential, Scope, Secret, ServiceName};

use crate::{
    session::{Files, Login},
    settings::Settings,
};

/// The OAuth client that this program is.
const CLIENT_ID: &str = "airlock";

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

    /// The login, which has to be there and still valid.
    pub(crate) fn login(&self, clock: &dyn Clock) -> anyhow::Result<Login> {
        match self.files.login()? {
            Some(login) if login.auth_server != self.settings.client.auth_server => {
                bail!("you are logged in at {}: log in here with `airlock user login`", login.auth_server)
            }
            Some(login) if login.expires <= clock.now() => {
                bail!("your login has ended: log in again with `airlock user login {}`", login.username)
            }
            Some(login) => Ok(login),
            None => bail!("you are not logged in: use `airlock user login`"),
        }
    }

    /// The credential of the login, for what needs no application.
    pub(crate) fn credential(&self, clock: &dyn Clock) -> anyhow::Result<Credential> {
        Ok(Credential::Token(self.login(clock)?.access_token))
    }

    /// The credential of the login, for one application.
    pub(crate) async fn credential_for(&self, app_id: &AppId, clock: &dyn Clock) -> anyhow::Result<Credential> {
        let login = self.login(clock)?;
        let token = self.account()?.restrict_token(&login.access_token, &[Scope::App(app_id.clone())]).await?;
        Ok(Credential::Token(token))
    }

    /// The application that is meant: the one named, or the selected one.
    pub(crate) fn application(&self, named: Option<AppId>) -> anyhow::Result<AppId> {
        match named {
            Some(app_id) => Ok(app_id),
            None => self.files.selection()?.context("no application is selected: use `airlock applications select`"),
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
