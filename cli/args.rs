//! What people type: every command, argument and option, with the help text beside it.

pub mod account;
pub mod functions;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use client::Payload;
use types::{AppEui, AppId, AppKey, ComponentId, DevEui, DevId, Username};

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
        command: Option<User>,
    },
    /// Manage applications and their payload functions
    #[command(visible_alias = "application")]
    Applications {
        /// What to do
        #[command(subcommand)]
        command: Applications,
    },
    /// Manage the devices of an application
    #[command(visible_alias = "device")]
    Devices {
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID")]
        app_id: Option<AppId>,
        /// What to do
        #[command(subcommand)]
        command: Devices,
    },
    /// Check, try and measure payload functions on this machine, without a network
    #[command(visible_alias = "function")]
    Functions {
        /// What to do
        #[command(subcommand)]
        command: functions::Functions,
    },
    /// Show uplinks of an application as they arrive
    Subscribe(Subscribe),
    /// Manage users, OAuth clients, components and keys in the store of this server, without a network
    ///
    /// With the embedded store no service may run meanwhile; with Redis they may.
    Account {
        /// What to do
        #[command(subcommand)]
        command: account::Account,
    },
    /// Show the settings
    Config {
        /// What to do
        #[command(subcommand)]
        command: Config,
    },
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

/// `airlock user …`.
#[derive(Debug, Subcommand)]
pub enum User {
    /// Register a new user; asks for a password
    Register {
        /// Name to log in with
        username: Username,
        /// E-mail address
        email: String,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Log in; asks for the password
    Login {
        /// Name to log in with
        username: Username,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Forget the login
    Logout,
}

/// Where a password comes from.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Password {
    /// Read the password from the first line of standard input instead of asking
    #[arg(long)]
    pub password_stdin: bool,
}

/// `airlock applications …`.
#[derive(Debug, Subcommand)]
pub enum Applications {
    /// Create an application, register it with the handler, and select it
    Add {
        /// Id of the application
        app_id: AppId,
        /// What it is, for people
        description: String,
        /// EUI to reach it at [default: a new one]
        #[arg(long, value_name = "EUI")]
        app_eui: Vec<AppEui>,
        /// Do not register it with the handler
        #[arg(long)]
        skip_register: bool,
        /// Do not select it; also implies --skip-register
        #[arg(long)]
        skip_select: bool,
    },
    /// List your applications
    #[command(visible_alias = "ls")]
    List,
    /// Show an application
    Info {
        /// Application [default: the selected one]
        app_id: Option<AppId>,
    },
    /// Choose the application that further commands mean
    Select {
        /// Application
        app_id: AppId,
    },
    /// Register the selected application with the handler
    Register,
    /// Print an access key, for other MQTT clients
    Key {
        /// Application [default: the selected one]
        app_id: Option<AppId>,
        /// Name of the key [default: the first that may read messages]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Show or set the payload functions of the selected application
    Pf {
        /// What to do; without it, shows them
        #[command(subcommand)]
        command: Option<PayloadFunctions>,
    },
}

/// `airlock applications pf …`.
#[derive(Debug, Subcommand)]
pub enum PayloadFunctions {
    /// Set one function, or the payload format
    Set {
        /// A function (decoder, converter, validator, encoder), or the payload format: whose functions count where a text
        /// follows several styles (custom: the first of ts013, v2, chirpstack3), or none (cayennelpp)
        what: PayloadFormat,
        /// File with the function; `-` is standard input [default: -]
        file: Option<PathBuf>,
    },
}

/// What `pf set` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PayloadFormat {
    /// Bytes to fields
    Decoder,
    /// Fields to fields
    Converter,
    /// Fields to yes or no
    Validator,
    /// Fields to bytes
    Encoder,
    /// Functions of any style
    Custom,
    /// Functions of LoRa Alliance TS013
    Ts013,
    /// Functions of The Things Network 2
    V2,
    /// Functions of ChirpStack 3
    #[value(name = "chirpstack3")]
    ChirpStack3,
    /// Cayenne Low Power Payload, without functions
    #[value(name = "cayennelpp")]
    CayenneLpp,
}

/// `airlock devices …`.
#[derive(Debug, Subcommand)]
pub enum Devices {
    /// Register a device
    Register {
        /// Id of the device
        dev_id: DevId,
        /// EUI of the device [default: random]
        dev_eui: Option<DevEui>,
        /// Key with which it joins [default: random]
        app_key: Option<AppKey>,
    },
    /// List the devices
    #[command(visible_alias = "ls")]
    List,
    /// Show a device
    Info {
        /// Id of the device
        dev_id: DevId,
    },
    /// Send an uplink as if the device had sent it
    Simulate {
        /// Id of the device
        dev_id: DevId,
        /// Payload in hexadecimal
        payload: Payload,
        /// Port
        #[arg(long, default_value_t = 1)]
        port: u32,
    },
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
