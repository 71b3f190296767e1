//! `airlock serve`: starts the services, prints their addresses, and stops them in order.

mod backup;
mod console_service;
mod context;
mod data_dir;
mod handler_service;
mod history;
mod local_address;
mod networks;
mod operator;
mod own_status;
mod stack;

use std::{sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use server::{
    audit::AuditLog,
    shutdown::{Drained, Shutdown},
    system::SystemClock,
    telemetry::{self, Metrics},
};
use types::Clock;

pub(crate) use self::backup::{Extent, KeyFiles, PreparedRestore, back_up};
pub(crate) use self::data_dir::usage_socket::running_usage;
use self::operator::accept_older_store;
pub(crate) use self::operator::{open_account, open_devices, open_running_account, serves_accounts};
pub use self::stack::Stack;
use crate::{
    services::telemetry::Process,
    settings::{GlobalOptions, Settings},
    terminal::say,
    version,
};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Service to start [default: all, in one process]
    service: Option<Service>,
    /// Start on a store that is older than when it was last used, such as a restored backup. What was deleted since
    /// then becomes valid again
    #[arg(long)]
    accept_older_store: bool,
}

/// A service that can run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// Users, applications, access keys and tokens
    Account,
    /// Addresses of the network's components
    Discovery,
    /// Processes uplinks and downlinks
    Handler,
    /// Applications, devices, messages and functions in a browser. It needs no store
    Console,
}

impl Service {
    const fn process(self) -> Process {
        match self {
            Self::Account => Process::Account,
            Self::Discovery => Process::Discovery,
            Self::Handler => Process::Handler,
            Self::Console => Process::Console,
        }
    }
}

/// Resources that services take from their process.
pub struct Environment {
    /// The recorder of metrics. A process can install only one.
    pub metrics: Metrics,
    /// Records security events.
    pub audit: AuditLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Starts one service or all of them, and runs until a signal arrives or the store fails.
pub(crate) async fn run(serve: Serve, settings: Settings, global: &GlobalOptions) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock);
    let audit = AuditLog::open(&settings.telemetry, clock.clone())?;
    telemetry::start_logs(&settings.telemetry, audit.layer())?;
    // The first line shows at once whether the audit file can be written.
    audit.note("started", &"airlock", &env!("CARGO_PKG_VERSION"));
    if serve.accept_older_store {
        accept_older_store(&settings, &audit).await?;
    }
    let shutdown = Shutdown::on_signals()?;
    let drain = Duration::from_millis(settings.serve.drain_timeout_ms);
    let metrics = Metrics::install(shutdown.requested.clone())?;
    version::report(&metrics);
    if serve.service == Some(Service::Console) {
        return console_service::run(&settings, clock, (metrics, shutdown)).await;
    }
    let environment = Environment { metrics, audit, clock };
    let show_link = |link: &str| say(invitation(link));
    let stack = tokio::select! {
        stack = Stack::start_showing(settings, serve.service, environment, show_link) => stack?,
        () = shutdown.requested.cancelled() => return say("Stopped before it was ready"),
    };
    let next_steps = next_steps(&global.where_settings_are());
    // It was shown as soon as it could be used; what was logged since may have moved it out of sight.
    let first_account = stack.first_account_link().map(invitation).unwrap_or_default();
    say(format_args!("Airlock is ready.\n\n{}\n\n{first_account}{next_steps}", stack.overview()))?;
    let failure = tokio::select! {
        () = shutdown.requested.cancelled() => Ok(()),
        // The supervisor starts the process again, which opens the store again.
        error = stack.failure() => Err(error),
    };
    match shutdown.drain(stack.stop(), drain).await {
        Drained::Finished => say("Stopped")?,
        Drained::TimedOut | Drained::Forced => say("Stopped before all accepted work was finished")?,
    }
    failure
}

/// Says where whoever has started Airlock for the first time goes on in a browser.
fn invitation(link: &str) -> String {
    format!(
        "Open this address in a browser to create the first account, the operator's. It works once:\n\n  {link}\n\n"
    )
}

/// Returns the next steps for people who start Airlock for the first time, with the options by which commands find
/// these services.
fn next_steps(options: &str) -> String {
    format!(
        "\
Next, at the command line in another terminal:

  airlock{options} user register NAME EMAIL
  airlock{options} user login NAME
  airlock{options} applications add APP-ID DESCRIPTION

`airlock{options} config print` shows every setting. Press Ctrl-C to stop."
    )
}
