//! `airlock devices …`: the arguments.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use client::Payload;
use types::{AppEui, AppKey, AppSKey, DevAddr, DevEui, DevId, NwkSKey};

use crate::commands::{applications::args::Sure, location::Location};

/// `airlock devices …`.
#[derive(Debug, Subcommand)]
pub enum Devices {
    /// Register a device, or what devices register themselves from
    Register(Register),
    /// List the devices
    #[command(visible_alias = "ls")]
    List,
    /// Show a device
    Info {
        /// Id of the device
        dev_id: DevId,
        /// How EUIs, keys and the address are written
        #[arg(long, value_enum, default_value_t = BytesFormat::Hex)]
        format: BytesFormat,
    },
    /// Give a device an address and session keys, so that it need not join
    Personalize {
        /// Id of the device
        dev_id: DevId,
        /// Key that authenticates frames [default: random]
        nwk_s_key: Option<NwkSKey>,
        /// Key that encrypts payloads [default: random]
        app_s_key: Option<AppSKey>,
    },
    /// Change a device; what is not named stays
    Set {
        /// Id of the device
        dev_id: DevId,
        /// What to change
        #[command(flatten)]
        change: Box<DeviceChange>,
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
    /// Delete a device
    Delete {
        /// Id of the device
        dev_id: DevId,
        /// Without a question
        #[command(flatten)]
        sure: Sure,
    },
}

/// `airlock devices register …`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Register {
    /// What else can be registered
    #[command(subcommand)]
    pub command: Option<RegisterCommand>,
    /// Id of the device
    #[arg(required = true)]
    pub dev_id: Option<DevId>,
    /// EUI of the device [default: random]
    pub dev_eui: Option<DevEui>,
    /// Key with which it joins [default: random]
    pub app_key: Option<AppKey>,
    /// Where it is, in degrees
    #[arg(value_name = "LAT,LONG", allow_hyphen_values = true)]
    pub location: Option<Location>,
}

/// `airlock devices register on-join`.
#[derive(Debug, Subcommand)]
pub enum RegisterCommand {
    /// Let devices that know the key register themselves when they join; all of them share it, so mind who knows it
    OnJoin {
        /// What the ids of such devices begin with; an id has the EUI of its device behind it
        #[arg(value_name = "DEV_ID_PREFIX", value_parser = prefix)]
        prefix: DevId,
        /// Key with which they join [default: random]
        app_key: Option<AppKey>,
    },
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BytesFormat {
    /// Hexadecimal digits
    Hex,
    /// An array in C, most significant byte first
    Msb,
    /// An array in C, least significant byte first
    Lsb,
}

/// What `airlock devices set` changes.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct DeviceChange {
    /// What people call it
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// EUI of the device; needs --override
    #[arg(long, value_name = "EUI")]
    pub dev_eui: Option<DevEui>,
    /// Address during the session; needs --override
    #[arg(long, value_name = "ADDRESS")]
    pub dev_addr: Option<DevAddr>,
    /// Key with which it joins
    #[arg(long, value_name = "KEY")]
    pub app_key: Option<AppKey>,
    /// Key that encrypts payloads
    #[arg(long, value_name = "KEY")]
    pub app_s_key: Option<AppSKey>,
    /// Key that authenticates frames
    #[arg(long, value_name = "KEY")]
    pub nwk_s_key: Option<NwkSKey>,
    /// Counter of uplinks; -1 leaves it
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true, value_parser = counter())]
    pub fcnt_up: i64,
    /// Counter of downlinks; -1 leaves it
    #[arg(long, value_name = "N", default_value_t = -1, allow_negative_numbers = true, value_parser = counter())]
    pub fcnt_down: i64,
    /// Frame counters have 16 bits
    #[arg(long = "16-bit-fcnt", conflicts_with = "fcnt_32_bit")]
    pub fcnt_16_bit: bool,
    /// Frame counters have 32 bits
    #[arg(long = "32-bit-fcnt")]
    pub fcnt_32_bit: bool,
    /// Take frames whose counter does not grow
    #[arg(long, conflicts_with = "enable_fcnt_check")]
    pub disable_fcnt_check: bool,
    /// Refuse frames whose counter does not grow
    #[arg(long)]
    pub enable_fcnt_check: bool,
    /// Degrees north
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub latitude: Option<f32>,
    /// Degrees east
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub longitude: Option<f32>,
    /// Metres above the sea
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    pub altitude: Option<i32>,
    /// Attribute to set; may be repeated
    #[arg(long, value_name = "KEY:VALUE", value_parser = attribute)]
    pub attr_set: Vec<(String, String)>,
    /// Attribute to take away; may be repeated
    #[arg(long, value_name = "KEY")]
    pub attr_remove: Vec<String>,
    /// Change what the device cannot be told: its EUIs and its address
    #[arg(long = "override")]
    pub is_override: bool,
    /// EUI of the application: the option of all commands for devices, which here needs --override
    #[arg(skip)]
    pub app_eui: Option<AppEui>,
}

/// The most characters of a prefix: a dash and an EUI have to fit behind it.
const PREFIX_MAX: usize = 19;

fn prefix(text: &str) -> Result<DevId, String> {
    if text.len() > PREFIX_MAX {
        return Err(format!("a prefix has {PREFIX_MAX} characters at most: a dash and an EUI follow it"));
    }
    text.parse().map_err(|error: types::IdError| error.to_string())
}

fn counter() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(-1..=i64::from(u32::MAX))
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once(':').ok_or("an attribute is written as key:value")?;
    Ok((key.to_owned(), value.to_owned()))
}
