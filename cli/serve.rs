//! `airlock serve`: starts services, says where they listen, and ends them in order.

mod certificate;
mod context;
mod data_dir;
mod handler_service;
mod operator;
mod stack;
mod store_socket;

use std::time::Duration;

use server::{
    shutdown::{Drained, Shutdown},
    telemetry::{self, Metrics},
};

pub(crate) use self::operator::open_account;
pub use self::stack::Stack;
use crate::{args::Serve, settings::Settings, terminal::say};

/// What somebody who just started everything may want to do.
const NEXT_STEPS: &str = "\
Next, in another terminal:

  airlock user register NAME EMAIL
  airlock user login NAME
  airlock applications add APP-ID DESCRIPTION

`airlock config print` shows every setting. Ctrl-C finishes what was accepted and stops.";

/// Starts what was asked for and runs until a signal.
pub async fn run(serve: Serve, settings: Settings) -> anyhow::Result<()> {
    telemetry::start_logs(&settings.telemetry)?;
    let shutdown = Shutdown::on_signals()?;
    let drain = Duration::from_millis(settings.serve.drain_timeout_ms);
    let metrics = Metrics::install(shutdown.requested.clone())?;
    let stack = Stack::start(settings, serve.service, metrics).await?;
    say(format_args!("Airlock is ready.\n\n{}\n\n{NEXT_STEPS}", stack.places()))?;
    shutdown.requested.cancelled().await;
    match shutdown.drain(stack.stop(), drain).await {
        Drained::Finished => say("Stopped"),
        Drained::TimedOut | Drained::Forced => say("Stopped before everything was finished"),
    }
}
