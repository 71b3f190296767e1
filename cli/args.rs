//! What people type: every command, argument and option, with the help text beside it.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use client::Payload;
use types::{AccessKey, AppEui, AppId, ComponentId, DevId};

use crate::commands;

/// Runs LoRaWAN payload functions, each message in a fresh WebAssembly sandbox, and publishes JSON over MQTT.
///
/// Try `airlock demo` first: it needs nothing and shows everything.
#[derive(Debug, Parser)]
#[command(name = "airlock", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Args {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command; each can also be set in the settings file or the environment.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Settings file [default: airlock.toml in the current folder, then in the user's configuration folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder where everything is kept
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Address of the account service
    #[arg(long, global = true, value_name = "URL")]
    pub auth_server: Option<String>,
    /// Address of the discovery service
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub discovery_address: Option<String>,
    /// Id of the handler
    #[arg(long, global = true, value_name = "ID")]
    pub handler_id: Option<ComponentId>,
    /// Address of the MQTT broker [default: the one that the handler announces]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub mqtt_address: Option<String>,
    /// Name for the MQTT broker, which is the id of an application [default: the one that is meant]
    #[arg(long, global = true, value_name = "ID")]
    pub mqtt_username: Option<AppId>,
    /// Password for the MQTT broker, which is an access key [default: one of the application]
    #[arg(long, global = true, value_name = "KEY")]
    pub mqtt_password: Option<AccessKey>,
    /// Id of the router; no command talks to one yet
    #[arg(long, global = true, value_name = "ID")]
    pub router_id: Option<ComponentId>,
    /// Talk in plain text to a server without TLS
    #[arg(long, global = true)]
    pub allow_insecure: bool,
}

/// What there is to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start everything in a temporary folder, with a sample application, and show live uplinks
    Demo(Demo),
    /// Start the services: all of them, or one
    Serve(Serve),
    /// Register, log in, log out, show who is logged in
    User {
        /// What to do; without it, shows who is logged in
        #[command(subcommand)]
        command: Option<commands::user::args::User>,
    },
    /// Manage applications and their payload functions
    #[command(visible_alias = "application")]
    Applications {
        /// What to do
        #[command(subcommand)]
        command: commands::applications::args::Applications,
    },
    /// Manage the devices of an application
    #[command(visible_alias = "device")]
    Devices {
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID")]
        app_id: Option<AppId>,
        /// EUI that devices get [default: the selected one, or the first one of the application]
        #[arg(long, global = true, value_name = "EUI")]
        app_eui: Option<AppEui>,
        /// What to do
        #[command(subcommand)]
        command: commands::devices::args::Devices,
    },
    /// Manage gateways
    #[command(visible_alias = "gateway")]
    Gateways {
        /// What to do
        #[command(subcommand)]
        command: commands::gateways::args::Gateways,
    },
    /// Send a message to a device
    Downlink(Downlink),
    /// Check, try and measure payload functions on this machine, without a network
    #[command(visible_alias = "function")]
    Functions {
        /// What to do
        #[command(subcommand)]
        command: commands::functions::args::Functions,
    },
    /// Show uplinks and joins of an application as they arrive
    Subscribe(Subscribe),
    /// Manage users, OAuth clients, components and keys in the store of this server, without a network
    ///
    /// With the embedded store no service may run meanwhile; with Redis they may.
    Account {
        /// What to do
        #[command(subcommand)]
        command: commands::account::args::Account,
    },
    /// Show the settings
    Config {
        /// What to do; without it, prints them
        #[command(subcommand)]
        command: Option<Config>,
    },
    /// Print the version
    Version,
    /// Say how to get a newer version
    Selfupdate,
}

/// `airlock demo`.
#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// End after this many uplinks; exit code 0 only when all arrived with the right fields
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Decoder of your own, in place of the sample functions
    #[arg(long, value_name = "FILE", requires = "payload")]
    pub decoder: Option<PathBuf>,
    /// Payload that your decoder gets, in hexadecimal
    #[arg(long, value_name = "HEX", requires = "decoder")]
    pub payload: Option<Payload>,
    /// Port that your decoder gets; 0 belongs to LoRaWAN itself
    #[arg(long, value_name = "N", default_value_t = 1, requires = "decoder")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    pub port: u8,
}

/// `airlock serve`.
#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// Service to start [default: all, in one process]
    pub service: Option<Service>,
}

/// A service that can run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// Users, applications, access keys, tokens
    Account,
    /// Which component serves what, and where
    Discovery,
    /// Uplinks in, fields out
    Handler,
}

/// `airlock downlink`.
#[derive(Debug, ClapArgs)]
pub struct Downlink {
    /// Id of the device
    pub dev_id: DevId,
    /// Payload in hexadecimal; with --json, fields for the encoder
    #[arg(allow_hyphen_values = true)]
    pub payload: String,
    /// The payload is a JSON object of fields, which the application's encoder turns into bytes
    #[arg(long)]
    pub json: bool,
    /// Port
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub fport: u8,
    /// The device has to acknowledge it
    #[arg(long)]
    pub confirmed: bool,
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID")]
    pub app_id: Option<AppId>,
    /// Name of the access key to use [default: the first that may send messages to devices]
    #[arg(long, value_name = "NAME")]
    pub access_key: Option<String>,
}

/// `airlock subscribe`.
#[derive(Debug, ClapArgs)]
pub struct Subscribe {
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID")]
    pub app_id: Option<AppId>,
    /// Name of the access key to use [default: the first that may read messages]
    #[arg(long, value_name = "NAME")]
    pub access_key: Option<String>,
    /// End after this many messages
    #[arg(long, value_name = "N")]
    pub count: Option<u32>,
}

/// `airlock config …`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Print every setting with its meaning and value
    Print,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }
}
