//! The command line of Airlock: one module per command, and what they share.
//!
//! `run` is the table of contents. Programs that want Airlock's services use `airlock-client`, not this.

pub mod args;
pub mod codec_check;
mod commands;
pub mod dialect;
pub mod exit;
mod network;
mod script;
pub mod serve;
mod session;
pub mod settings;
mod terminal;

use args::{Args, Command, Config};
use network::Network;
use server::system::{OsRandom, SystemClock, install_crypto};
use settings::Settings;
use terminal::say;

/// What `airlock selfupdate` says: a program that replaces itself would be one more thing to trust.
const NEWER: &str = "Airlock does not replace itself: fetch the newer sources and build them, as the README says";

/// Does what was typed.
pub fn run(args: Args) -> anyhow::Result<()> {
    install_crypto();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let Args { global, command } = args;
    let (clock, random) = (SystemClock, OsRandom);
    runtime.block_on(async {
        match command {
            Command::Demo(demo) => commands::demo::run(demo, Settings::load(&global)?, &random).await,
            Command::Serve(serve) => serve::run(serve, Settings::load(&global)?).await,
            Command::Account { command } => commands::account::run(command, Settings::load(&global)?).await,
            Command::Config { command: None | Some(Config::Print) } => settings::print(&Settings::load(&global)?),
            Command::User { command } => {
                commands::user::run(command, &Network::new(Settings::load(&global)?), &clock, &random).await
            }
            Command::Applications { command } => {
                commands::applications::run(command, &Network::new(Settings::load(&global)?), &clock).await
            }
            Command::Devices { app_id, app_eui, command } => {
                let network = Network::new(Settings::load(&global)?);
                commands::devices::run(command, (app_id, app_eui), &network, &clock, &random).await
            }
            Command::Gateways { command } => {
                commands::gateways::run(command, &Network::new(Settings::load(&global)?), &clock).await
            }
            Command::Downlink(downlink) => {
                commands::downlink::run(downlink, &Network::new(Settings::load(&global)?), &clock).await
            }
            Command::Functions { command } => {
                commands::functions::run(command, Settings::load(&global)?.sandbox, &clock)
            }
            Command::Subscribe(subscribe) => {
                commands::subscribe::run(subscribe, &Network::new(Settings::load(&global)?), &clock).await
            }
            Command::Version => say(concat!("airlock ", env!("CARGO_PKG_VERSION"))),
            Command::Selfupdate => say(NEWER),
        }
    })
}
