//! Frequency plans: the channels that gateways of a region listen on.
//!
//! `plans.json` has the LoRaWAN regional parameters, with frequencies in Hz. Plans with 64 channels are reduced to the
//! sub-band that public networks use.

mod forwarder;

use serde::Deserialize;

use crate::{Error, Result};

/// The plans, as JSON.
const PLANS: &str = include_str!("frequency_plan/plans.json");

/// All plans.
#[derive(Clone, Debug)]
pub(crate) struct FrequencyPlans(Vec<FrequencyPlan>);

/// The channels of one region. Frequencies and bandwidths are in Hz, data rates in bit/s.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrequencyPlan {
    pub(crate) id: String,
    /// Short names in the help of v2's command line.
    aliases: Vec<String>,
    pub(crate) name: String,
    pub(crate) description: String,
    /// The band for which the hardware is made, in MHz.
    pub(crate) base_freq: u32,
    /// The centre frequencies of the two radios.
    radios: [u32; 2],
    /// The frequency range for transmission.
    tx: [u32; 2],
    /// LoRa channels with 125 kHz and every spreading factor; at most 8.
    channels: Vec<u32>,
    #[serde(default)]
    lora: Option<LoraChannel>,
    #[serde(default)]
    fsk: Option<FskChannel>,
}

/// The channel for one fast LoRa setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoraChannel {
    freq: u32,
    bandwidth: u32,
    spread_factor: u8,
}

/// The FSK channel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FskChannel {
    freq: u32,
    datarate: u32,
}

impl FrequencyPlans {
    /// Loads the plans that are compiled in.
    pub(crate) fn read() -> Result<Self> {
        serde_json::from_str(PLANS).map(Self).map_err(Error::FrequencyPlans)
    }

    /// Iterates over all plans.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FrequencyPlan> {
        self.0.iter()
    }

    /// Returns a plan by id.
    pub(crate) fn get(&self, id: &str) -> Result<&FrequencyPlan> {
        let found = self.0.iter().find(|plan| plan.id == id);
        found.ok_or_else(|| Error::NotFound { what: "frequency plan", id: id.escape_debug().to_string() })
    }

    /// Returns the id of the plan with this id or short name, such as `EU`.
    pub(crate) fn id_of(&self, text: &str) -> Result<&str> {
        let found = self.0.iter().find(|plan| plan.id == text || plan.aliases.iter().any(|alias| alias == text));
        let unknown = Error::Invalid { what: "frequency_plan", must: "must be an id from /api/v2/frequency-plans" };
        found.map(|plan| plan.id.as_str()).ok_or(unknown)
    }
}
