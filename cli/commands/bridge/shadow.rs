//! `airlock bridge … --shadow`: publishes nothing, and reports how our runs of the codecs compare.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use bridge::{Environment, Error, Observation, Running};
use chirpstack::ChirpStackShadow;
use clap::Args;
use parking_lot::Mutex;
use server::{shutdown::Shutdown, telemetry::Metrics};
use things_stack::ThingsStackShadow;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
};
use types::Clock;

use super::network::Network;
use crate::{
    services::{shadow_report::Report, telemetry},
    settings::Settings,
    terminal::say,
};

/// Interval at which changed counts are printed.
const PRINT_INTERVAL: Duration = Duration::from_secs(5);

/// The arguments of every bridge for comparing.
#[derive(Clone, Debug, Args)]
pub(super) struct ShadowArgs {
    /// Publish nothing: compare our runs of the codecs with what the network made of the same uplinks
    #[arg(long)]
    shadow: bool,
    /// File for the report of --shadow, ending in .json or .html; may be repeated
    #[arg(long, value_name = "FILE", requires = "shadow")]
    report: Vec<PathBuf>,
    /// End --shadow after this many uplinks [default: when interrupted]
    #[arg(long, value_name = "N", requires = "shadow", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

impl ShadowArgs {
    /// Returns the options of the report; `None` if messages are to be published.
    pub(super) fn reporting(&self) -> Option<Reporting> {
        self.shadow.then(|| Reporting { files: self.report.clone(), count: self.count.map(u64::from) })
    }
}

/// Options of the report.
pub(super) struct Reporting {
    /// Files to write it to, JSON or HTML by their names.
    pub(super) files: Vec<PathBuf>,
    /// Number of uplinks after which to stop.
    pub(super) count: Option<u64>,
}

async fn start(
    network: &Network,
    environment: Environment,
    observe: impl Fn(Observation) + Send + Sync + 'static,
) -> Result<Box<dyn Running>, Error> {
    Ok(match network {
        Network::ChirpStack(settings) => Box::new(ChirpStackShadow::start(settings, environment, observe).await?),
        Network::ThingsStack(settings) => Box::new(ThingsStackShadow::start(settings, environment, observe).await?),
    })
}

/// Compares until a signal arrives, or enough uplinks have.
pub(super) async fn run(
    reporting: &Reporting,
    network: &Network,
    (settings, environment): (&Settings, Environment),
    shutdown: &Shutdown,
    metrics: Metrics,
) -> anyhow::Result<()> {
    reporting.files.iter().try_for_each(|path| kind(path).map(drop))?;
    let clock = environment.clock.clone();
    let report = Arc::new(Mutex::new(Report::new(clock.now(), settings.sandbox.limits.fuel)));
    let enough = Arc::new(Notify::new());
    let observe = {
        let (report, enough, count) = (report.clone(), enough.clone(), reporting.count);
        move |observation: Observation| {
            let mut report = report.lock();
            if count.is_none_or(|count| report.totals.messages < count) {
                report.add(&observation);
            }
            if Some(report.totals.messages) == count {
                enough.notify_one();
            }
        }
    };
    let shadow = start(network, environment, observe).await?;
    telemetry::serve(settings, network.shadow(), metrics, shutdown, |health| shadow.report_to(health)).await?;
    tokio::select! {
        () = shadow.ready() => say(format_args!(
            "Comparing the {} of {} with our own runs of them. Nothing is published.\n\
             Press Ctrl-C for the report; `kill -USR1 {}` writes it and goes on.",
            network.codecs(), network.source(), std::process::id()
        ))?,
        () = shutdown.requested.cancelled() => {}
    }
    let written = watch(&report, reporting, shutdown, (&enough, clock.as_ref())).await;
    shadow.stop().await;
    written?;
    let mut report = report.lock();
    report.finish(clock.now());
    say(format_args!("\n{}", report.text()))?;
    write(&report, &reporting.files)
}

/// Prints the counts as they change, and writes the report on request, until the end.
async fn watch(
    report: &Mutex<Report>,
    reporting: &Reporting,
    shutdown: &Shutdown,
    (enough, clock): (&Notify, &dyn Clock),
) -> anyhow::Result<()> {
    let mut requests = signal(SignalKind::user_defined1()).context("cannot listen for signals")?;
    let mut printed = 0;
    loop {
        tokio::select! {
            () = shutdown.requested.cancelled() => return Ok(()),
            () = enough.notified() => return Ok(()),
            _ = requests.recv() => {
                let mut report = report.lock();
                report.finish(clock.now());
                write(&report, &reporting.files)?;
            }
            () = tokio::time::sleep(PRINT_INTERVAL) => {
                let report = report.lock();
                if report.totals.messages != printed {
                    printed = report.totals.messages;
                    say(report.line())?;
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Json,
    Html,
}

fn kind(path: &Path) -> anyhow::Result<Kind> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(Kind::Json),
        Some("html" | "htm") => Ok(Kind::Html),
        _ => bail!("cannot tell the format of `{}`: give it a name that ends in .json or .html", path.display()),
    }
}

fn write(report: &Report, files: &[PathBuf]) -> anyhow::Result<()> {
    for path in files {
        let text = match kind(path)? {
            Kind::Json => serde_json::to_string_pretty(report)? + "\n",
            Kind::Html => report.html()?,
        };
        fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
        say(format_args!("Wrote {}", path.display()))?;
    }
    Ok(())
}
