//! `airlock applications …`: the arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use types::{AppEui, AppId, ApplicationRight, Username};

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
        /// Application [default: your only one, or the one that you choose from a list]
        app_id: Option<AppId>,
        /// EUI that its devices get [default: its first one]
        app_eui: Option<AppEui>,
    },
    /// Delete an application for everybody; its id stays taken
    Delete {
        /// Application [default: the selected one]
        app_id: Option<AppId>,
        /// Without a question
        #[command(flatten)]
        sure: Sure,
    },
    /// Register the selected application with the handler
    Register,
    /// Remove the selected application from the handler, with its functions and devices
    Unregister {
        /// Without a question
        #[command(flatten)]
        sure: Sure,
    },
    /// Print an access key, for other MQTT clients
    Key {
        /// Application [default: the selected one]
        app_id: Option<AppId>,
        /// Name of the key [default: the first that may read messages]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Say who else may work with an application
    #[command(visible_alias = "collaborator")]
    Collaborators {
        /// What to do
        #[command(subcommand)]
        command: Collaborators,
    },
    /// Show or set the payload functions of the selected application
    Pf {
        /// What to do; without it, shows them
        #[command(subcommand)]
        command: Option<PayloadFunctions>,
    },
}

/// Whether to ask before something is done that cannot be taken back.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Sure {
    /// Do not ask whether you are sure
    #[arg(long, short)]
    pub yes: bool,
}

/// `airlock applications collaborators …`.
#[derive(Debug, Subcommand)]
pub enum Collaborators {
    /// Give a user rights, in place of those they have
    Add {
        /// Application
        app_id: AppId,
        /// User
        username: Username,
        /// Rights: settings, delete, collaborators, devices, messages:up:r, messages:up:w, messages:down:w [default: yours]
        rights: Vec<ApplicationRight>,
    },
    /// Take every right from a user
    #[command(visible_alias = "remove")]
    Delete {
        /// Application
        app_id: AppId,
        /// User
        username: Username,
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
        /// File with the function; `-` is standard input, which must not be empty
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Do not offer to try the functions first, as is done at a terminal
        #[arg(long)]
        skip_test: bool,
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
