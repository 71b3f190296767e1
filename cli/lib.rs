//! The command line of Airlock.
//!
//! Programs that want to use Airlock's services need `airlock-client`, not this crate. What is public here serves the
//! integration tests, the benchmarks, and programs that check codecs.

mod args;
pub mod codec_check;
mod codec_service;
mod commands;
mod dialect;
mod exit;
mod json_object;
mod location;
mod network;
mod pool;
mod script;
pub mod serve;
mod session;
pub mod settings;
mod telemetry;
mod terminal;

use std::{io::Write, process::ExitCode, sync::Arc};

use args::{Args, Command};
use clap::Parser;
use network::Network;
use server::system::{OsRandom, SystemClock, install_crypto};
use settings::{GlobalOptions, Settings};
use terminal::say;

/// What `airlock selfupdate` prints. A program that replaces itself would be one more thing to trust.
const HOW_TO_UPDATE: &str =
    "Airlock does not update itself: download the new sources and build them as described in the README";

/// How many tasks a busy worker of tokio runs before it looks for data on sockets (61 by default), and for tasks that
/// sandboxes have woken. Whatever has to wait that long cannot be ordered fairly before.
const EVENT_INTERVAL: u32 = 8;
const GLOBAL_QUEUE_INTERVAL: u32 = 4;

/// Runs the command in this process's arguments, and prints its error if it fails.
pub fn run() -> ExitCode {
    let Args { global, command } = Args::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let result =
        runtime.event_interval(EVENT_INTERVAL).global_queue_interval(GLOBAL_QUEUE_INTERVAL).enable_all().build();
    match result.map_err(Into::into).and_then(|runtime| runtime.block_on(run_command(command, &global))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(text) = exit::text(&error) {
                // With standard error closed, there is nobody to tell.
                _ = writeln!(std::io::stderr(), "error: {text}");
            }
            exit::code(&error)
        }
    }
}

async fn run_command(command: Command, global: &GlobalOptions) -> anyhow::Result<()> {
    install_crypto();
    let settings = || Settings::load(global);
    let network = || anyhow::Ok(Network::new(settings()?, Arc::new(SystemClock), Arc::new(OsRandom)));
    match command {
        Command::Demo(demo) => commands::demo::run(demo, settings()?, Arc::new(OsRandom)).await,
        Command::Serve(serve) => serve::run(serve, settings()?).await,
        Command::Bridge { command } => commands::bridge::run(command, settings()?).await,
        Command::User { command } => commands::user::run(command, &network()?).await,
        Command::Applications { command } => commands::applications::run(command, &network()?).await,
        Command::Devices { app_id, app_eui, command } => {
            commands::devices::run(command, (app_id, app_eui), &network()?).await
        }
        Command::Webhooks { app_id, command } => commands::webhooks::run(command, app_id, &network()?).await,
        Command::Gateways { command } => commands::gateways::run(command, &network()?).await,
        Command::Downlink(downlink) => commands::downlink::run(downlink, &network()?).await,
        Command::Subscribe(subscribe) => commands::subscribe::run(subscribe, &network()?).await,
        Command::Functions { command } => commands::functions::run(command, settings()?, &SystemClock).await,
        Command::Account { command } => commands::account::run(command, settings()?).await,
        Command::Handler { command } => commands::handler::run(command, settings()?).await,
        Command::Config { .. } => settings::print(&settings()?),
        Command::Version => say(concat!("airlock ", env!("CARGO_PKG_VERSION"))),
        Command::Selfupdate => say(HOW_TO_UPDATE),
    }
}
