//! Frequency plans: which channels gateways of a region listen on.
//!
//! `plans.json` holds what the regional parameters of LoRaWAN say, with frequencies in Hz. A plan with 64 channels
//! has one sub-band here, the one that public networks agreed on.

mod forwarder;

use serde::Deserialize;

use crate::{Error, Result};

/// The plans, as data.
const PLANS: &str = include_str!("frequency_plan/plans.json");

/// All plans that there are.
#[derive(Clone, Debug)]
pub(crate) struct FrequencyPlans(Vec<FrequencyPlan>);

/// The channels of one region. Frequencies, bandwidths and data rates are in Hz and bits each second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrequencyPlan {
    pub(crate) id: String,
    /// What the old command line's help calls it.
    aliases: Vec<String>,
    pub(crate) name: String,
    pub(crate) description: String,
    /// The band that the hardware is made for, in MHz.
    pub(crate) base_freq: u32,
    /// What the two radios are tuned to.
    radios: [u32; 2],
    /// Between which frequencies a gateway may send.
    tx: [u32; 2],
    /// LoRa with 125 kHz and every spreading factor; at most 8.
    channels: Vec<u32>,
    #[serde(default)]
    lora: Option<LoraChannel>,
    #[serde(default)]
    fsk: Option<FskChannel>,
}

/// The channel for one fast setting of LoRa.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoraChannel {
    freq: u32,
    bandwidth: u32,
    spread_factor: u8,
}

/// The channel for FSK.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FskChannel {
    freq: u32,
    datarate: u32,
}

impl FrequencyPlans {
    /// Reads the plans that this program was built with.
    pub(crate) fn read() -> Result<Self> {
        serde_json::from_str(PLANS).map(Self).map_err(Error::FrequencyPlans)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FrequencyPlan> {
        self.0.iter()
    }

    /// The plan with this id.
    pub(crate) fn get(&self, id: &str) -> Result<&FrequencyPlan> {
        let found = self.0.iter().find(|plan| plan.id == id);
        found.ok_or_else(|| Error::NotFound { what: "frequency plan", id: id.escape_debug().to_string() })
    }

    /// The id of the plan that is meant by an id or a short name such as `EU`.
    pub(crate) fn id_of(&self, text: &str) -> Result<&str> {
        let found = self.0.iter().find(|plan| plan.id == text || plan.aliases.iter().any(|alias| alias == text));
        let unknown = Error::Invalid { what: "frequency_plan", must: "must be an id from /api/v2/frequency-plans" };
        found.map(|plan| plan.id.as_str()).ok_or(unknown)
    }
}
