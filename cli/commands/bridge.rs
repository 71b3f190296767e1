//! `airlock bridge …`: decodes the traffic of an existing network.

mod chirpstack;
mod network;
mod run;
mod shadow;
mod things_stack;

use clap::Subcommand;

use self::{chirpstack::ChirpStack, things_stack::ThingsStack};
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    /// Decode the events of a ChirpStack 4 server, with the codecs of its device profiles
    ///
    /// Applications receive the same topics and JSON as from ChirpStack, with `object` filled in. Codecs, variables and
    /// tags come from ChirpStack's API. Everything else is a setting in `[bridge.chirpstack]`.
    #[command(name = "chirpstack")]
    #[command(
        after_help = "Examples:\n  airlock bridge chirpstack --mqtt mqtt://localhost:1883 --grpc http://localhost:8080 \\\n      --token-file chirpstack.key\n  airlock bridge chirpstack --shadow --report report.html"
    )]
    ChirpStack(ChirpStack),
    /// Decode the messages of The Things Stack 3, with its own payload formatters
    ///
    /// Applications receive the same topics and JSON as from The Things Stack, with `decoded_payload` filled in.
    /// Formatters of devices, applications and the device repository come from The Things Stack's API. Everything else
    /// is a setting in `[bridge.things_stack]`.
    #[command(name = "things-stack")]
    #[command(
        after_help = "Example:\n  airlock bridge things-stack --api https://eu1.cloud.thethings.network \\\n      --application app1@ttn --key-file app1.key --to mqtt://localhost:1883"
    )]
    ThingsStack(ThingsStack),
}

pub(crate) async fn run(command: Bridge, settings: Settings) -> anyhow::Result<()> {
    match command {
        Bridge::ChirpStack(command) => chirpstack::run(command, settings).await,
        Bridge::ThingsStack(command) => things_stack::run(command, settings).await,
    }
}
