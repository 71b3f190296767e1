//! The context of every command: settings, output, and clients of the services, with the credentials of the login.

pub(crate) mod session;

use std::{fs, path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use api::{discovery::Announcement, rest::account::Application};
use client::{Trust, account::AccountClient, discovery::DiscoveryClient, handler::HandlerClient};
use types::{AccessKey, AppEui, AppId, ApplicationRight, Clock, Credential, Kind, Kinded, Random, Scope, ServiceName};

use self::session::{Login, SessionFiles};
use crate::{
    exit::{CommandError, NotLoggedIn},
    output::{Output, OutputOptions},
    settings::{ClientSettings, Settings},
};

/// The error of commands that need an application, when none is named or selected.
const NOTHING_SELECTED: &str = "no application is selected: select one with `airlock applications select`";

/// Settings, output, and the services as one person uses them.
pub(crate) struct CommandContext {
    settings: Settings,
    pub(crate) output: Output,
    pub(crate) files: SessionFiles,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl CommandContext {
    pub(crate) fn new(
        settings: Settings,
        output: OutputOptions,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        let output = Output::new(output, clock.clone());
        let files = SessionFiles::new(&settings.data_dir);
        Self { settings, output, files, clock, random }
    }

    pub(crate) fn account(&self) -> anyhow::Result<AccountClient> {
        Ok(AccountClient::new(&self.settings.client.auth_server)?)
    }

    /// The access key with that name, or else the first with a right.
    pub(crate) async fn access_key(
        &self,
        credential: &Credential,
        app_id: &AppId,
        name: Option<&str>,
        right: ApplicationRight,
    ) -> anyhow::Result<AccessKey> {
        let keys = self.account()?.access_keys(credential, app_id).await?;
        let found = keys.into_iter().find(|key| match name {
            Some(name) => key.name == name,
            None => key.rights.contains(&right),
        });
        found.and_then(|key| key.key).ok_or_else(|| {
            let hint = "`airlock applications info` shows its keys";
            CommandError::not_found(format!("{app_id} has no such access key that you may see: {hint}")).into()
        })
    }

    /// The addresses and ids of the services.
    pub(crate) fn settings(&self) -> &ClientSettings {
        &self.settings.client
    }

    /// URL of the account service.
    pub(crate) fn auth_server(&self) -> &str {
        &self.settings.client.auth_server
    }

    /// The login, refreshed if it has expired; an error when there is none.
    pub(crate) async fn login(&self) -> anyhow::Result<Login> {
        match self.files.login()? {
            Some(login) if login.auth_server != self.settings.client.auth_server => {
                let elsewhere = login.auth_server;
                let next = "log in to this server with `airlock user login`";
                Err(NotLoggedIn(format!("you are logged in to {elsewhere}: {next}")).into())
            }
            Some(login) if login.expires <= self.clock.now() => self.refresh(&login).await,
            Some(login) => Ok(login),
            None => Err(NotLoggedIn("you are not logged in: log in with `airlock user login`".to_owned()).into()),
        }
    }

    /// Exchanges the refresh token of an expired login for a new login.
    async fn refresh(&self, login: &Login) -> anyhow::Result<Login> {
        let expired = || format!("your login has expired: log in again with `airlock user login {}`", login.username);
        let refresh_token = login.refresh_token.as_ref().ok_or_else(|| NotLoggedIn(expired()))?;
        let response = match self.account()?.refresh_token(&login.client.credentials()?, refresh_token).await {
            Err(error) if error.kind() == Kind::Invalid => return Err(error).with_context(|| NotLoggedIn(expired())),
            response => response?,
        };
        let login =
            Login::new(&login.auth_server, (login.username.clone(), login.client), response, self.clock.as_ref());
        self.files.set_login(&login)?;
        Ok(login)
    }

    /// The login's token, for calls that concern no single application or gateway.
    pub(crate) async fn credential(&self) -> anyhow::Result<Credential> {
        Ok(Credential::Token(self.login().await?.access_token))
    }

    /// A token for one application.
    pub(crate) async fn credential_for(&self, app_id: &AppId) -> anyhow::Result<Credential> {
        self.credential_with(Scope::App(app_id.clone())).await
    }

    /// A token for all of these applications.
    pub(crate) async fn credential_for_all(&self, app_ids: &[&AppId]) -> anyhow::Result<Credential> {
        let scopes: Vec<_> = app_ids.iter().map(|app_id| Scope::App((*app_id).clone())).collect();
        self.restricted(&scopes).await
    }

    pub(crate) async fn credential_with(&self, scope: Scope) -> anyhow::Result<Credential> {
        self.restricted(&[scope]).await
    }

    async fn restricted(&self, scopes: &[Scope]) -> anyhow::Result<Credential> {
        let login = self.login().await?;
        Ok(Credential::Token(self.account()?.restrict_token(&login.access_token, scopes).await?))
    }

    /// The named application, or else the selected one.
    pub(crate) fn application(&self, named: Option<AppId>) -> anyhow::Result<AppId> {
        let selected = || Ok(self.files.selection()?.context(NOTHING_SELECTED)?.app_id);
        named.map_or_else(selected, Ok)
    }

    /// The EUI for devices of an application: the named one, the selected one, or the application's first.
    pub(crate) fn app_eui(&self, application: &Application, named: Option<AppEui>) -> anyhow::Result<AppEui> {
        let selection = self.files.selection()?.filter(|selection| selection.app_id == application.id);
        let selected = selection.and_then(|selection| selection.app_eui);
        match named.or(selected) {
            Some(eui) if application.euis.contains(&eui) => Ok(eui),
            Some(eui) => bail!(CommandError::not_found(format!("application {} has no EUI {eui}", application.id))),
            None => Ok(application.euis.first().copied().unwrap_or_default()),
        }
    }

    /// The handler's announcement. One without a certificate is refused, because the login's token or an access key is
    /// sent to it next.
    pub(crate) async fn announcement(&self) -> anyhow::Result<Announcement> {
        let client = &self.settings.client;
        let discovery = discovery(&self.settings)?;
        let found = discovery.get(ServiceName::Handler, &client.handler_id).await;
        let announcement = found.map_err(|error| {
            let path = certificate(&self.settings);
            let hint = match (path.exists(), error.is_untrusted()) {
                (false, _) => {
                    format!("; to trust a server with its own certificate, copy its ca.cert to {}", path.display())
                }
                (true, true) => format!("; what is trusted is in {}: replace or delete that file", path.display()),
                (true, false) => String::new(),
            };
            anyhow::Error::new(error).context(format!("cannot find the handler `{}`{hint}", client.handler_id))
        })?;
        if announcement.certificate.trim().is_empty() && !client.allow_insecure {
            bail!(
                "the handler `{}` is announced without a certificate, so credentials would be sent to it unencrypted: \
                 turn on its TLS, or set client.allow_insecure or pass --allow-insecure",
                client.handler_id
            );
        }
        Ok(announcement)
    }

    pub(crate) async fn handler(&self, credential: Credential) -> anyhow::Result<HandlerClient> {
        Ok(HandlerClient::connect(&self.announcement().await?, credential)?)
    }

    /// The handler, with a token for one application.
    pub(crate) async fn handler_for(&self, app_id: &AppId) -> anyhow::Result<HandlerClient> {
        self.handler(self.credential_for(app_id).await?).await
    }

    /// The application to use MQTT as: the named one, the one in the settings, or the selected one.
    pub(crate) fn mqtt_application(&self, named: Option<AppId>) -> anyhow::Result<AppId> {
        self.application(named.or_else(|| self.settings.client.mqtt_username.clone()))
    }

    /// The MQTT password: the one in the settings, or else the access key with that name, or else the first with a
    /// right.
    pub(crate) async fn mqtt_credential(
        &self,
        app_id: &AppId,
        name: Option<String>,
        right: ApplicationRight,
    ) -> anyhow::Result<Credential> {
        if let Some(key) = &self.settings.client.mqtt_password {
            return Ok(Credential::Key(key.clone()));
        }
        let credential = self.credential_for(app_id).await?;
        self.access_key(&credential, app_id, name.as_deref(), right).await.map(Credential::Key)
    }

    /// The address of the MQTT broker: the one in the settings, or else the one that the handler announces.
    pub(crate) async fn mqtt_address(&self) -> anyhow::Result<String> {
        match &self.settings.client.mqtt_address {
            Some(address) => Ok(address.clone()),
            None => Ok(self.announcement().await?.mqtt_address),
        }
    }
}

/// The discovery service, verified with the certificate in the data directory, or else with the system's roots.
pub(crate) fn discovery(settings: &Settings) -> anyhow::Result<DiscoveryClient> {
    Ok(DiscoveryClient::connect(&settings.client.discovery_address, &trust(settings)?)?)
}

/// The file with the certificate of a server that systems do not trust.
fn certificate(settings: &Settings) -> PathBuf {
    settings.data_dir.join("ca.cert")
}

fn trust(settings: &Settings) -> anyhow::Result<Trust> {
    if settings.client.allow_insecure {
        return Ok(Trust::Plaintext);
    }
    let path = certificate(settings);
    match fs::read_to_string(&path) {
        Ok(certificate) => Ok(Trust::Certificate(certificate)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Trust::System),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
