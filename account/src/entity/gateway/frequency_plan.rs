//! Frequency plans: the channels that gateways in a region listen on.
//!
//! `plans.json` follows the LoRaWAN regional parameters, with frequencies in Hz. Of a region with 64 channels it has
//! the one sub-band that public networks use.

mod forwarder;

use serde::Deserialize;

use crate::{Error, Result};

const PLANS: &str = include_str!("frequency_plan/plans.json");

#[derive(Clone, Debug)]
pub(crate) struct FrequencyPlans(Vec<FrequencyPlan>);

/// The channels of one region. Frequencies and bandwidths are in Hz, data rates in bits per second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrequencyPlan {
    pub(crate) id: String,
    /// Short names from the help text of v2's command line, such as `EU`.
    aliases: Vec<String>,
    pub(crate) name: String,
    pub(crate) description: String,
    /// The nominal frequency band of the hardware, in MHz.
    pub(crate) base_freq: u32,
    /// The center frequencies of the two radios.
    radios: [u32; 2],
    /// The lowest and highest frequency for transmissions.
    tx: [u32; 2],
    /// Multi-SF LoRa channels of 125 kHz, at most 8.
    channels: Vec<u32>,
    #[serde(default)]
    lora: Option<LoraChannel>,
    #[serde(default)]
    fsk: Option<FskChannel>,
}

/// A LoRa channel with a fixed bandwidth and spreading factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoraChannel {
    freq: u32,
    bandwidth: u32,
    spread_factor: u8,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FskChannel {
    freq: u32,
    datarate: u32,
}

impl FrequencyPlans {
    /// Parses the plans compiled into this program.
    pub(crate) fn read() -> Result<Self> {
        serde_json::from_str(PLANS).map(Self).map_err(Error::FrequencyPlans)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FrequencyPlan> {
        self.0.iter()
    }

    pub(crate) fn get(&self, id: &str) -> Result<&FrequencyPlan> {
        let found = self.0.iter().find(|plan| plan.id == id);
        found.ok_or_else(|| Error::NotFound { what: "frequency plan", id: id.escape_debug().to_string() })
    }

    /// The id of the plan with this id or short name, such as `EU`.
    pub(crate) fn id_of(&self, text: &str) -> Result<&str> {
        let found = self.0.iter().find(|plan| plan.id == text || plan.aliases.iter().any(|alias| alias == text));
        let unknown = Error::Invalid { what: "frequency_plan", must: "must be an id from /api/v2/frequency-plans" };
        found.map(|plan| plan.id.as_str()).ok_or(unknown)
    }
}
