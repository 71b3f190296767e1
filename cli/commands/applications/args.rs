//! The arguments of `airlock applications …`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, builder::RangedI64ValueParser, value_parser};
use client::HexBytes;
use types::{AppEui, AppId, ApplicationRight, Username};

use super::{euis::Euis, keys::Keys, percent::Percent, silence};
use crate::{
    terminal::Confirmation,
    values::{completion, json_object::JsonObject},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Applications {
    /// Create an application, register it with the handler, and select it
    #[command(visible_alias = "create")]
    #[command(after_help = "Example:\n  airlock applications add my-app \"My application\"")]
    Add {
        /// Id of the application
        app_id: AppId,
        /// Description
        description: String,
        /// Application EUI; may be repeated [default: a generated one]
        #[arg(long, value_name = "EUI")]
        app_eui: Vec<AppEui>,
        /// Do not register it with the handler
        #[arg(long)]
        skip_register: bool,
        /// Do not select it; implies --skip-register
        #[arg(long)]
        skip_select: bool,
    },
    /// List your applications
    #[command(visible_alias = "ls")]
    #[command(after_help = "Examples:\n  airlock applications list\n  airlock applications list --output csv")]
    List {
        /// List those that were deleted and can be restored
        #[arg(long)]
        deleted: bool,
    },
    /// Show an application
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock applications info my-app")]
    Info {
        /// Application [default: the selected one]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
    },
    /// Select the application that other commands use by default
    #[command(after_help = "Example:\n  airlock applications select my-app")]
    Select {
        /// Application [default: your only one; if there are several, asks which]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
        /// Application EUI for its devices [default: the application's first]
        app_eui: Option<AppEui>,
    },
    /// Show which application, user and services the commands use
    #[command(after_help = "Example:\n  airlock applications config")]
    Config,
    /// Change the description of an application, or hand it over; its id does not change
    #[command(visible_alias = "update")]
    #[command(
        after_help = "Examples:\n  airlock applications set my-app --description \"My application\"\n  airlock applications set my-app --owner bob"
    )]
    Set {
        /// Application [default: the selected one]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
        #[command(flatten)]
        change: ApplicationChange,
    },
    /// Delete an application for all of its collaborators; its id cannot be used again
    #[command(after_help = "Example:\n  airlock applications delete my-app")]
    Delete {
        /// Application [default: the selected one]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Restore an application that was deleted, or an older version of the payload functions, as a new version
    #[command(
        group = ArgGroup::new("label").args(["note", "link"]).multiple(true).requires("version"),
        after_help = "Examples:\n  airlock applications list --deleted\n  airlock applications restore my-app\n  airlock applications restore --version 3 --note \"The new sensors are late\""
    )]
    Restore {
        /// Application [default, with --version: the selected one]
        #[arg(required_unless_present = "version", add = completion::applications())]
        app_id: Option<AppId>,
        /// Number of the version to make live again
        #[arg(long, value_name = "N", value_parser = version())]
        version: Option<u32>,
        #[command(flatten)]
        label: LabelOptions,
    },
    /// List the versions of the payload functions that are kept, the newest first
    #[command(after_help = "Example:\n  airlock applications versions")]
    Versions {
        /// Application [default: the selected one]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
    },
    /// Show what changed between two versions of the payload functions
    #[command(after_help = "Examples:\n  airlock applications diff 3\n  airlock applications diff 3 5")]
    Diff {
        /// Number of the older version
        #[arg(value_parser = version())]
        from: u32,
        /// Number of the newer version [default: the one that is live]
        #[arg(value_parser = version())]
        to: Option<u32>,
        /// Application [default: the selected one]
        #[arg(long, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
    },
    /// Change the note or the link of a version of the payload functions
    #[command(
        group = ArgGroup::new("text").args(["note", "link"]).required(true).multiple(true),
        after_help = "Example:\n  airlock applications label 3 --note \"Supports firmware 2\" --link https://example.com/changes/3"
    )]
    Label {
        /// Number of the version
        #[arg(value_parser = version())]
        version: u32,
        #[command(flatten)]
        label: LabelOptions,
        /// Application [default: the selected one]
        #[arg(long, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
    },
    /// Register the selected application with the handler
    #[command(after_help = "Example:\n  airlock applications register")]
    Register,
    /// Remove the selected application from the handler, with its functions and devices
    #[command(after_help = "Example:\n  airlock applications unregister")]
    Unregister {
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Print an access key, for use with other MQTT clients
    #[command(
        after_help = "Examples:\n  airlock applications key --name dashboard\n  airlock applications key my-app --output json"
    )]
    Key {
        /// Application [default: the selected one]
        #[arg(add = completion::applications())]
        app_id: Option<AppId>,
        /// The same, as other commands take it
        #[arg(long = "app-id", value_name = "ID", conflicts_with = "app_id", add = completion::applications())]
        named: Option<AppId>,
        /// Name of the key [default: the first with the right to read messages]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Manage the access keys of an application
    Keys {
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        #[command(subcommand)]
        command: Keys,
    },
    /// Manage the EUIs of an application
    #[command(visible_alias = "eui")]
    Euis {
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        #[command(subcommand)]
        command: Euis,
    },
    /// Manage the collaborators of an application
    #[command(visible_alias = "collaborator")]
    Collaborators {
        #[command(subcommand)]
        command: ApplicationCollaborators,
    },
    /// Show or set the time without an uplink after which devices count as silent
    #[command(
        after_help = "Examples:\n  airlock applications silence\n  airlock applications silence 2h\n  airlock applications silence off"
    )]
    Silence {
        /// Such as 90m, 2h or 7d, from 1m to 366d; or `off` [default: show it]
        time: Option<silence::Time>,
        /// Application [default: the selected one]
        #[arg(long, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
    },
    /// Show or set the payload functions of an application
    Pf {
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        #[command(subcommand)]
        command: Option<PayloadFunctions>,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct ApplicationChange {
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Username of its new owner, who must be a collaborator with all rights
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<Username>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApplicationCollaborators {
    /// Add a collaborator, or replace the rights of one
    #[command(visible_aliases = ["create", "set", "update"])]
    #[command(after_help = "Example:\n  airlock applications collaborators add my-app bob settings devices")]
    Add {
        /// Application
        #[arg(add = completion::applications())]
        app_id: AppId,
        /// User
        username: Username,
        /// Rights: settings, delete, collaborators, devices, messages:up:r, messages:up:w, messages:down:w [default:
        /// all of yours]
        rights: Vec<ApplicationRight>,
    },
    /// Remove a collaborator
    #[command(visible_alias = "remove")]
    #[command(after_help = "Example:\n  airlock applications collaborators delete my-app bob")]
    Delete {
        /// Application
        #[arg(add = completion::applications())]
        app_id: AppId,
        /// User
        username: Username,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PayloadFunctions {
    /// Print the payload functions
    #[command(
        after_help = "Examples:\n  airlock applications pf get\n  airlock applications pf get --version 3 --app-id my-app"
    )]
    Get {
        /// Number of an older version [default: the functions that are live]
        #[arg(long, value_name = "N", value_parser = version())]
        version: Option<u32>,
    },
    /// Set a payload function or the payload format
    #[command(visible_alias = "update")]
    #[command(
        after_help = "Examples:\n  airlock applications pf set decoder decoder.js --payload 095C\n  airlock applications pf set encoder encoder.js --fields '{\"led\": true}'\n  airlock applications pf set decoder decoder.js --share 5%\n  airlock applications pf set cayennelpp"
    )]
    Set(SetFunction),
    /// Compare the version that a share of the devices has with the live one, or change the share
    #[command(
        after_help = "Examples:\n  airlock applications pf share\n  airlock applications pf share 20%\n  airlock applications pf share --margin 1%"
    )]
    Share(ShareChange),
    /// Make the version that a share of the devices has live for all
    #[command(after_help = "Example:\n  airlock applications pf promote")]
    Promote,
    /// Give the devices that have another version the live one again
    #[command(after_help = "Example:\n  airlock applications pf abandon")]
    Abandon,
}

/// The note and the link of a version.
#[derive(Debug, Args)]
pub(crate) struct LabelOptions {
    /// Note about the version, on one line
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Link to more about the version, which begins with https
    #[arg(long, value_name = "URL")]
    pub(crate) link: Option<String>,
}

fn version() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..)
}

#[derive(Debug, Args)]
pub(crate) struct SetFunction {
    /// A function (decoder, converter, validator, encoder) or a payload format: custom uses the first of the
    /// dialects ts013, v2 and chirpstack3 that the functions follow; ts013, v2 or chirpstack3 uses that one;
    /// cayennelpp needs no functions
    pub(crate) what: FunctionOrFormat,
    /// File with the function; `-` is standard input, which must not be empty
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Do not offer to test the functions first
    #[arg(long)]
    pub(crate) skip_test: bool,
    /// Payload to test the functions with, in hexadecimal; if they fail, nothing is changed
    #[arg(long, value_name = "HEX", conflicts_with = "skip_test")]
    pub(crate) payload: Option<HexBytes>,
    /// JSON object to test the encoder with; if it fails, nothing is changed
    #[arg(long, value_name = "JSON", conflicts_with_all = ["skip_test", "payload"])]
    pub(crate) fields: Option<JsonObject>,
    /// Port of the test
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) port: u32,
    /// Id of a stored uplink to test the functions with, as `airlock history list` shows it: they get its payload, port,
    /// time and random numbers; if they fail, nothing is changed
    #[arg(long, value_name = "ID", conflicts_with_all = ["skip_test", "payload", "fields", "port"])]
    pub(crate) record: Option<String>,
    /// Only show what would change, on the last uplinks of each device [default: 10]; exit code 1 if any newly fail
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        conflicts_with_all = ["skip_test", "payload", "fields", "record", "note", "link"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) preview: Option<u32>,
    #[command(flatten)]
    pub(crate) label: LabelOptions,
    #[command(flatten)]
    pub(crate) share: NewShare,
}

/// Which devices get new functions.
#[derive(Debug, Args)]
pub(crate) struct NewShare {
    /// Give the function only to this share of the devices, beside the functions that are live
    #[arg(long, value_name = "PERCENT", conflicts_with = "preview", value_parser = Percent::share)]
    pub(crate) share: Option<Percent>,
    /// Take it from them when it fails on more of their uplinks than the live one does, by more than this [default: 5%]
    #[arg(long, value_name = "PERCENT", requires = "share")]
    pub(crate) margin: Option<Percent>,
    /// But only after this many uplinks of both [default: 20]
    #[arg(long, value_name = "N", requires = "share", value_parser = value_parser!(u32).range(1..))]
    pub(crate) uplinks_min: Option<u32>,
}

/// Changes to the version that a share of the devices has.
#[derive(Debug, Args)]
pub(crate) struct ShareChange {
    /// New share of the devices; a larger one keeps those that have it
    #[arg(value_parser = Percent::share)]
    pub(crate) share: Option<Percent>,
    /// Abandon the version when it fails on more uplinks than the live one does, by more than this
    #[arg(long, value_name = "PERCENT")]
    pub(crate) margin: Option<Percent>,
    /// But only after this many uplinks of both
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) uplinks_min: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FunctionOrFormat {
    /// Converts bytes to fields
    Decoder,
    /// Converts decoded fields
    Converter,
    /// Decides by the fields whether a message is valid
    Validator,
    /// Converts fields to bytes
    Encoder,
    /// Functions of any dialect
    Custom,
    /// LoRa Alliance TS013 functions
    Ts013,
    /// The Things Network v2 functions
    V2,
    /// ChirpStack 3 functions
    #[value(name = "chirpstack3")]
    ChirpStack3,
    /// Cayenne Low Power Payload, without functions
    #[value(name = "cayennelpp")]
    CayenneLpp,
}
