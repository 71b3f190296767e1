//! The services of a process while they start: each takes what it needs from those before it.

use std::{net::SocketAddr, sync::Arc};

use account::Account;
use console::Console;
use server::{
    auth::{Authenticator, ComponentToken},
    serve::ServerHandle,
    telemetry::Metrics,
};

use crate::{
    serve::{
        context::{Context, address},
        handler_service::HandlerService,
        local_address::from_here,
        own_status::OwnStatus,
    },
    services::telemetry::Process,
};

/// The services that run so far.
pub(super) struct Starting {
    pub(super) context: Context,
    /// Names and addresses of what runs, in the order in which it was started.
    pub(super) addresses: Vec<(&'static str, String)>,
    pub(super) serving: Vec<ServerHandle>,
    pub(super) discovery_http: Option<SocketAddr>,
    pub(super) handler: Option<HandlerService>,
    /// The address that creates the first account, until there are users.
    pub(super) first_account_link: Option<String>,
    metrics: Metrics,
    account: Option<Account>,
    console: Option<Console>,
}

impl Starting {
    pub(super) fn new(context: Context, metrics: Metrics) -> Self {
        Self {
            addresses: vec![("data", context.settings.data_dir.display().to_string())],
            serving: Vec::new(),
            discovery_http: None,
            handler: None,
            first_account_link: None,
            metrics: metrics.with(context.ledger.metrics()),
            account: None,
            console: None,
            context,
        }
    }

    pub(super) async fn start_account(&mut self, has_console: bool) -> anyhow::Result<()> {
        let (serving, account, console) = self.context.start_account(has_console).await?;
        let url = format!("http://{}", from_here(address(&serving, 0)?));
        self.context.settings.client.auth_server.clone_from(&url);
        self.addresses.push(("account", url));
        self.addresses.extend(console.is_some().then(|| ("console", format!("{}/console", account.public_url()))));
        self.serving.push(serving);
        self.first_account_link = if console.is_some() { account.first_account_link().await? } else { None };
        (self.account, self.console) = (Some(account), console);
        Ok(())
    }

    /// Forgets the address that creates the first account, if somebody has used it.
    pub(super) async fn check_first_account(&mut self) -> anyhow::Result<()> {
        if let (Some(_), Some(account)) = (&self.first_account_link, &self.account)
            && !account.awaits_first_account().await?
        {
            self.first_account_link = None;
        }
        Ok(())
    }

    /// Gets the token of the handler, and what checks the credentials of callers. Both ask the account service.
    pub(super) async fn authenticate(&mut self) -> anyhow::Result<(Arc<ComponentToken>, Arc<Authenticator>)> {
        let token = self.context.component_token(self.account.clone()).await?;
        self.context.ask_owners(&token)?;
        let authenticator = Arc::new(self.context.authenticator(&token, self.account.clone())?);
        Ok((token, authenticator))
    }

    pub(super) async fn start_discovery(&mut self, authenticator: Arc<Authenticator>) -> anyhow::Result<()> {
        let discovery = self.context.start_discovery(authenticator).await?;
        self.context.settings.client.discovery_address = from_here(address(&discovery, 0)?).to_string();
        self.discovery_http = Some(address(&discovery, 1)?);
        if let Some(console) = &self.console {
            console.connect(self.context.own_discovery()?);
        }
        self.addresses.push(("discovery", self.context.describe(&discovery)?));
        self.serving.push(discovery);
        Ok(())
    }

    /// Starts the handler, and the codec service if the settings name a directory of codecs.
    pub(super) async fn start_handler(
        &mut self,
        authenticator: Arc<Authenticator>,
        token: Arc<ComponentToken>,
    ) -> anyhow::Result<()> {
        let service = HandlerService::start(&self.context, authenticator, token).await?;
        self.addresses.push(("handler", self.context.describe(service.serving())?));
        self.addresses.push(("MQTT", service.mqtt_address().to_string()));
        self.addresses.extend(service.access_address().map(|address| ("access", format!("http://{address}/"))));
        self.addresses.extend(service.webhook_addresses().map(|address| ("webhook", format!("http://{address}/"))));
        self.metrics = service.metrics().into_iter().fold(self.metrics.clone(), Metrics::with);
        self.handler = Some(service);
        if self.context.settings.codecs.dir.is_some() {
            let codecs = self.context.start_codecs().await?;
            self.addresses.push(("codecs", format!("http://{}/codecs", address(&codecs, 0)?)));
            self.serving.push(codecs);
        }
        Ok(())
    }

    /// Shows the state of this process in the console that runs in it.
    pub(super) fn show_status(&mut self) {
        let (Some(console), Some(account)) = (self.console.take(), self.account.take()) else { return };
        let handler = self.handler.as_ref();
        console.watch(Arc::new(OwnStatus {
            health: self.context.health.clone(),
            metrics: self.metrics.clone(),
            ledger: self.context.ledger.clone(),
            account,
            runs: handler.map(HandlerService::runs),
            audit_file: self.context.settings.telemetry.audit_file.clone(),
            clock: self.context.clock.clone(),
            networks: handler.map(HandlerService::watched_networks).unwrap_or_default(),
            trials: handler.map(HandlerService::trials),
            shadows: handler.map(HandlerService::shadows).unwrap_or_default(),
        }));
    }

    pub(super) async fn start_telemetry(&mut self, process: Process) -> anyhow::Result<()> {
        let telemetry = self.context.start_telemetry(process, self.metrics.clone()).await?;
        self.addresses.push(("metrics", format!("http://{}/metrics", address(&telemetry, 0)?)));
        self.serving.push(telemetry);
        Ok(())
    }
}
