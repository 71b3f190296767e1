//! `airlock bridge …`: decodes the traffic of an existing network.

mod chirpstack;
mod report;
mod shadow;

use clap::Subcommand;

use self::chirpstack::ChirpStack;
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    /// Decode the events of a ChirpStack 4 server, with the codecs of its device profiles
    ///
    /// Applications receive the same topics and JSON as from ChirpStack, with `object` filled in. Codecs, variables and
    /// tags come from ChirpStack's API. Everything else is a setting in `[bridge.chirpstack]`.
    #[command(name = "chirpstack")]
    ChirpStack(ChirpStack),
}

pub(crate) async fn run(command: Bridge, settings: Settings) -> anyhow::Result<()> {
    match command {
        Bridge::ChirpStack(command) => chirpstack::run(command, settings).await,
    }
}
