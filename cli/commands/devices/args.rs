//! The arguments of `airlock devices …`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use types::{AppEui, AppKey, AppSKey, DevAddr, DevEui, DevId, NwkSKey};

use super::{export::Export, import::Import, moves::MoveDevices, simulate::Simulate};
use crate::{
    terminal::Confirmation,
    values::{completion, location::Location},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Devices {
    /// Register a device, or let devices register themselves when they join
    #[command(visible_alias = "create")]
    #[command(
        after_help = "Examples:\n  airlock devices register my-device\n  airlock devices register my-device 0102030405060708 2B7E151628AED2A6ABF7158809CF4F3C 52.37,4.89\n  airlock devices register on-join my-prefix"
    )]
    Register(Register),
    /// List the devices
    #[command(visible_alias = "ls")]
    #[command(after_help = "Examples:\n  airlock devices list --app-id my-app\n  airlock devices list --output csv")]
    List,
    /// Show a device
    #[command(visible_alias = "get")]
    #[command(
        after_help = "Examples:\n  airlock devices info my-device\n  airlock devices info my-device --format msb"
    )]
    Info {
        /// Id of the device
        #[arg(add = completion::devices())]
        dev_id: DevId,
        /// Format of EUIs, keys and the address
        #[arg(long, value_enum, default_value_t = BytesFormat::Hex)]
        format: BytesFormat,
    },
    /// Personalize a device (ABP): set an address and session keys, so that it does not need to join
    #[command(after_help = "Example:\n  airlock devices personalize my-device")]
    Personalize {
        /// Id of the device
        #[arg(add = completion::devices())]
        dev_id: DevId,
        /// Network session key [default: random]
        nwk_s_key: Option<NwkSKey>,
        /// Application session key [default: random]
        app_s_key: Option<AppSKey>,
    },
    /// Update a device; only the given options change
    #[command(visible_alias = "update")]
    #[command(
        after_help = "Examples:\n  airlock devices set my-device --description \"By the door\" --attr-set floor:3\n  airlock devices set my-device --dev-addr 26000001 --override"
    )]
    Set {
        /// Id of the device
        #[arg(add = completion::devices())]
        dev_id: DevId,
        #[command(flatten)]
        change: Box<DeviceChange>,
    },
    /// Send an uplink as if a device had sent it, and show what the functions make of it
    ///
    /// The fields, warnings, log and cost are those of the uplink that was published. It is published without fields if a
    /// function fails, which is an error here, and not at all if the validator returns false.
    #[command(
        after_help = "Examples:\n  airlock devices simulate my-device 095C --port 2\n  airlock devices simulate --batch uplinks.jsonl"
    )]
    Simulate(Simulate),
    /// Register and update devices from a file, after all of them were checked
    ///
    /// The file is CSV or JSON: what `devices export` writes, an export of The Things Stack, or any table whose columns
    /// have the names of Airlock, The Things Stack or ChirpStack. What a file does not say stays as it is.
    #[command(
        after_help = "Examples:\n  airlock devices import devices.csv --dry-run\n  airlock devices import end_devices.json --app-id my-app"
    )]
    Import(Import),
    /// Write the devices to a file that can be imported
    #[command(
        after_help = "Examples:\n  airlock devices export devices.csv\n  airlock devices export --format json --with-keys"
    )]
    Export(Export),
    /// Show the downlinks that wait for a device
    #[command(
        after_help = "Examples:\n  airlock devices downlinks my-device\n  airlock devices downlinks my-device --clear --yes"
    )]
    Downlinks {
        /// Id of the device
        #[arg(add = completion::devices())]
        dev_id: DevId,
        /// Remove them
        #[arg(long)]
        clear: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Move devices to another application, with their keys, session and counters
    ///
    /// Their messages stay in the history of the old application, and downlinks that wait for them are dropped.
    #[command(
        after_help = "Examples:\n  airlock devices move my-device --to my-other-app\n  airlock devices move --match trial- --to my-other-app --yes"
    )]
    Move(MoveDevices),
    /// Delete a device
    #[command(after_help = "Example:\n  airlock devices delete my-device")]
    Delete {
        /// Id of the device
        #[arg(add = completion::devices())]
        dev_id: DevId,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Register {
    #[command(subcommand)]
    pub(crate) command: Option<RegisterCommand>,
    /// Id of the device
    #[arg(required = true)]
    pub(crate) dev_id: Option<DevId>,
    /// EUI of the device [default: random]
    pub(crate) dev_eui: Option<DevEui>,
    /// Application key (AppKey) [default: random]
    pub(crate) app_key: Option<AppKey>,
    /// Location in degrees
    #[arg(value_name = "LAT,LONG", allow_hyphen_values = true)]
    pub(crate) location: Option<Location>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegisterCommand {
    /// Let devices register themselves when they join; all of them share one AppKey
    #[command(after_help = "Example:\n  airlock devices register on-join sensor 2B7E151628AED2A6ABF7158809CF4F3C")]
    OnJoin {
        /// Prefix of their device ids; the DevEUI follows it
        #[arg(value_name = "DEV_ID_PREFIX", value_parser = prefix)]
        prefix: DevId,
        /// AppKey of these devices [default: random]
        app_key: Option<AppKey>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BytesFormat {
    /// Hexadecimal digits
    Hex,
    /// An array in C, most significant byte first
    Msb,
    /// An array in C, least significant byte first
    Lsb,
}

#[derive(Clone, Debug, Default, PartialEq, ClapArgs)]
pub(crate) struct DeviceChange {
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// EUI of the device; needs --override
    #[arg(long, value_name = "EUI")]
    pub(crate) dev_eui: Option<DevEui>,
    /// Device address; needs --override
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dev_addr: Option<DevAddr>,
    /// Application key
    #[arg(long, value_name = "KEY")]
    pub(crate) app_key: Option<AppKey>,
    /// Application session key
    #[arg(long, value_name = "KEY")]
    pub(crate) app_s_key: Option<AppSKey>,
    /// Network session key
    #[arg(long, value_name = "KEY")]
    pub(crate) nwk_s_key: Option<NwkSKey>,
    /// Uplink frame counter; -1 keeps it
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true, value_parser = counter())]
    pub(crate) fcnt_up: i64,
    /// Downlink frame counter; -1 keeps it
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true, value_parser = counter())]
    pub(crate) fcnt_down: i64,
    /// Use 16-bit frame counters
    #[arg(long = "16-bit-fcnt", conflicts_with = "fcnt_32_bit")]
    pub(crate) fcnt_16_bit: bool,
    /// Use 32-bit frame counters
    #[arg(long = "32-bit-fcnt")]
    pub(crate) fcnt_32_bit: bool,
    /// Accept frames whose counter does not increase
    #[arg(long, conflicts_with = "enable_fcnt_check")]
    pub(crate) disable_fcnt_check: bool,
    /// Refuse frames whose counter does not increase
    #[arg(long)]
    pub(crate) enable_fcnt_check: bool,
    /// Latitude in degrees
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true, value_parser = degrees::<90>)]
    pub(crate) latitude: Option<f32>,
    /// Longitude in degrees
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true, value_parser = degrees::<180>)]
    pub(crate) longitude: Option<f32>,
    /// Altitude in metres
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    pub(crate) altitude: Option<i32>,
    /// Attribute to set; may be repeated
    #[arg(long, value_name = "KEY:VALUE", value_parser = attribute)]
    pub(crate) attr_set: Vec<(String, String)>,
    /// Attribute to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    pub(crate) attr_remove: Vec<String>,
    /// Allow changes to EUIs and address, which break the connection to a running device
    #[arg(long = "override")]
    pub(crate) is_override: bool,
    /// Application EUI, from the option that all device commands share; here it needs --override.
    #[arg(skip)]
    pub(crate) app_eui: Option<AppEui>,
}

/// Maximum length of a prefix: a device id has 36 characters at most, of which a dash and a DevEUI take 17.
const PREFIX_CHARS_MAX: usize = 19;

fn prefix(text: &str) -> Result<DevId, String> {
    if text.len() > PREFIX_CHARS_MAX {
        return Err(format!("a prefix has at most {PREFIX_CHARS_MAX} characters: a dash and a DevEUI follow it"));
    }
    text.parse().map_err(|error: types::IdError| error.to_string())
}

fn counter() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(-1..=i64::from(u32::MAX))
}

fn degrees<const MOST: i16>(text: &str) -> Result<f32, String> {
    let degrees: Option<f32> = text.parse().ok();
    let degrees = degrees.filter(|degrees| degrees.abs() <= f32::from(MOST));
    degrees.ok_or_else(|| format!("must be a number of degrees from -{MOST} to {MOST}, as in 52.37"))
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once(':').ok_or("an attribute has the form key:value")?;
    Ok((key.to_owned(), value.to_owned()))
}
