//! The services of one process: started in order of dependency, stopped in reverse.

mod starting;

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use server::{
    audit::AuditLog,
    serve::ServerHandle,
    status::ErrorChain,
    store_mark::{StoreMark, StoreMarkError},
    telemetry::Health,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::starting::Starting;
use super::{
    Environment, Service,
    context::{Context, StoreFailure},
    data_dir::operator_socket::OperatorSocket,
    handler_service::HandlerService,
};
use crate::{services::telemetry::Process, settings::Settings};

/// Maximum time that abandoned requests may keep the store open when everything else has stopped. A question about a
/// credential may take five seconds.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(6);

/// Services that run in this process.
pub struct Stack {
    settings: Settings,
    health: Health,
    /// Names and addresses of what runs, in the order in which it was started.
    addresses: Vec<(&'static str, String)>,
    /// Stops the account and discovery services, which the handler may need until it has finished.
    stop: CancellationToken,
    /// Keeps the handler's token valid.
    renewing: JoinHandle<()>,
    serving: Vec<ServerHandle>,
    discovery_http: Option<SocketAddr>,
    handler: Option<HandlerService>,
    first_account_link: Option<String>,
    operator_sockets: Vec<OperatorSocket>,
    store_failure: StoreFailure,
    store_closed: BoxFuture<'static, ()>,
    audit: AuditLog,
    mark: Arc<StoreMark>,
    rolled_back: StoreRollback,
}

/// Ends when the store went back to an earlier state.
type StoreRollback = Shared<BoxFuture<'static, Arc<StoreMarkError>>>;

impl Stack {
    /// Starts one service, or all of them; returns when they are ready.
    pub async fn start(settings: Settings, only: Option<Service>, environment: Environment) -> anyhow::Result<Self> {
        Self::start_showing(settings, only, environment, |_| Ok(())).await
    }

    /// The same. `show_link` gets the address at which the operator creates the first account, unless there are users,
    /// as soon as the account service answers: the sandboxes may take seconds longer. Whoever has it is the operator.
    pub(super) async fn start_showing(
        settings: Settings,
        only: Option<Service>,
        environment: Environment,
        show_link: impl FnOnce(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let Environment { metrics, audit, clock } = environment;
        let includes = |service| only.is_none_or(|only| only == service);
        let mut starting = Starting::new(Context::open(settings, audit, clock).await?, metrics);
        if includes(Service::Account) {
            // Alone, the account service would have a console without anything to show.
            let has_console = only.is_none() && starting.context.settings.console.enabled;
            starting.start_account(has_console).await?;
            if let Some(link) = &starting.first_account_link {
                show_link(link)?;
            }
        }
        let (token, authenticator) = starting.authenticate().await?;
        let renewing = tokio::spawn(authenticator.clone().run(starting.context.server.stop.clone()));
        if includes(Service::Discovery) {
            starting.start_discovery(authenticator.clone()).await?;
        }
        if includes(Service::Handler) {
            starting.start_handler(authenticator, token).await?;
        }
        starting.check_first_account().await?;
        starting.show_status();
        starting.start_telemetry(only.map_or(Process::Handler, Service::process)).await?;
        Ok(Self::started(starting, renewing))
    }

    /// Watches what may stop the services that have started.
    fn started(starting: Starting, renewing: JoinHandle<()>) -> Self {
        let Starting { context, addresses, serving, discovery_http, handler, first_account_link, .. } = starting;
        let operator_sockets = context.listen_to_operator();
        let Context { settings, health, server, store_failure, store_closed, audit, mark, .. } = context;
        audit.report_to(&health);
        tokio::spawn(server.stop.clone().run_until_cancelled_owned(audit.clone().run()));
        let rolled_back = watch(mark.clone(), audit.clone(), server.stop.clone());
        let failed = report_failure((store_failure.clone(), rolled_back.clone()), health.clone());
        tokio::spawn(server.stop.clone().run_until_cancelled_owned(failed));
        Self {
            settings,
            health,
            addresses,
            stop: server.stop,
            renewing,
            serving,
            discovery_http,
            handler,
            first_account_link,
            operator_sockets,
            store_failure,
            store_closed,
            audit,
            mark,
            rolled_back,
        }
    }

    /// The settings, with the addresses that commands reach these services at.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the address at which MQTT clients connect, if the handler runs here.
    pub fn mqtt_address(&self) -> Option<SocketAddr> {
        self.handler.as_ref().map(HandlerService::mqtt_address)
    }

    /// Returns the address at which MQTT clients connect with TLS, if `broker.tls_listen` is set.
    pub fn mqtt_tls_address(&self) -> Option<SocketAddr> {
        self.handler.as_ref().and_then(HandlerService::mqtt_tls_address)
    }

    /// Returns the address at which MQTT clients connect over WebSocket, if `broker.websocket_listen` is set.
    pub fn mqtt_websocket_address(&self) -> Option<SocketAddr> {
        self.handler.as_ref().and_then(HandlerService::mqtt_websocket_address)
    }

    /// The discovery service's plain HTTP listener, if it runs here. For tests.
    #[doc(hidden)]
    pub fn discovery_http_address(&self) -> Option<SocketAddr> {
        self.discovery_http
    }

    /// The handler's plain HTTP listener, if it runs here. For tests and benches.
    #[doc(hidden)]
    pub fn handler_http_address(&self) -> Option<SocketAddr> {
        self.handler.as_ref().and_then(|handler| handler.serving().addresses().get(1).copied())
    }

    /// A line for everything that runs here, with its address.
    pub fn overview(&self) -> String {
        let lines: Vec<_> = self.addresses.iter().map(|(name, address)| format!("{name:>10}  {address}")).collect();
        lines.join("\n")
    }

    /// The address that creates the first account, unless it was used while the rest started.
    pub(super) fn first_account_link(&self) -> Option<&str> {
        self.first_account_link.as_deref()
    }

    /// Waits until the store fails for good, or went back to an earlier state. After a failure, what was acknowledged
    /// is in it when it is opened again.
    pub async fn failure(&self) -> anyhow::Error {
        tokio::select! {
            error = self.store_failure.clone() => error.into(),
            error = self.rolled_back.clone() => error.into(),
        }
    }

    /// Stops accepting calls, finishes the accepted ones, stops the services, and closes the store.
    pub async fn stop(self) {
        self.health.drain();
        let delivery_threads = match self.handler {
            Some(handler) => Some(handler.stop().await),
            None => None,
        };
        self.stop.cancel();
        // It fails only by a panic, which has been logged.
        _ = self.renewing.await;
        for serving in self.serving {
            serving.finished().await;
        }
        for socket in self.operator_sockets {
            socket.stop().await;
        }
        self.audit.finish();
        if let Err(error) = self.mark.advance().await {
            tracing::warn!(error = %ErrorChain(&error), "cannot mark the store: going back to this state will not be noticed");
        }
        drop((self.health, self.mark));
        if tokio::time::timeout(CLOSING_TIME_MAX, self.store_closed).await.is_err() {
            tracing::warn!("the store is still open: a request uses it that does not end");
        }
        drop(delivery_threads);
    }
}

/// Keeps the mark, and notices when the store went back.
fn watch(mark: Arc<StoreMark>, audit: AuditLog, stop: CancellationToken) -> StoreRollback {
    let watching = tokio::spawn(stop.run_until_cancelled_owned(async move { mark.run(audit).await }));
    let rolled_back = async {
        match watching.await {
            Ok(Some(error)) => Arc::new(error),
            // Stopped, or a panic, which has been logged.
            _ => pending().await,
        }
    };
    rolled_back.boxed().shared()
}

/// Reports this process as failed when its store fails or went back.
async fn report_failure((store_failure, rolled_back): (StoreFailure, StoreRollback), health: Health) {
    health.fail(tokio::select! {
        error = store_failure => ErrorChain(&*error).to_string(),
        error = rolled_back => ErrorChain(&*error).to_string(),
    });
}
