//! Radio metadata of frames, from `rxInfo` and `txInfo` of both forms of events, in the words of v2.

use api::chirpstack_events::gw::{self, modulation::Parameters};
use bridge::message::radio::{self, Location, lenient};
use serde::Deserialize;
use types::{DownlinkConfig, GatewayMetadata, Metadata, Timestamp};

use super::forms::timestamp;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RxInfo {
    #[serde(deserialize_with = "lenient")]
    gateway_id: String,
    #[serde(deserialize_with = "lenient")]
    gw_time: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    ns_time: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    rssi: f32,
    #[serde(deserialize_with = "lenient")]
    snr: f32,
    #[serde(deserialize_with = "lenient")]
    channel: u32,
    #[serde(deserialize_with = "lenient")]
    rf_chain: u32,
    #[serde(deserialize_with = "lenient")]
    location: Location,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TxInfo {
    /// In Hz.
    #[serde(deserialize_with = "lenient")]
    frequency: u32,
    #[serde(deserialize_with = "lenient")]
    power: i32,
    #[serde(deserialize_with = "lenient")]
    modulation: Modulation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Modulation {
    #[serde(deserialize_with = "lenient")]
    lora: Option<Lora>,
    #[serde(deserialize_with = "lenient")]
    fsk: Option<Fsk>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lora {
    /// In Hz.
    #[serde(deserialize_with = "lenient")]
    bandwidth: u32,
    #[serde(deserialize_with = "lenient")]
    spreading_factor: u32,
    /// Such as `CR_4_5`.
    #[serde(deserialize_with = "lenient")]
    code_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fsk {
    /// In bit/s.
    #[serde(deserialize_with = "lenient")]
    datarate: u32,
}

impl From<gw::UplinkRxInfo> for RxInfo {
    fn from(rx: gw::UplinkRxInfo) -> Self {
        let location = rx.location.map(|place| Location::new(place.latitude, place.longitude, place.altitude));
        Self {
            gateway_id: rx.gateway_id,
            gw_time: rx.gw_time.map(timestamp),
            ns_time: rx.ns_time.map(timestamp),
            rssi: rx.rssi as f32,
            snr: rx.snr,
            channel: rx.channel,
            rf_chain: rx.rf_chain,
            location: location.unwrap_or_default(),
        }
    }
}

impl From<gw::UplinkTxInfo> for TxInfo {
    fn from(tx: gw::UplinkTxInfo) -> Self {
        let (lora, fsk) = match tx.modulation.and_then(|modulation| modulation.parameters) {
            Some(Parameters::Lora(lora)) => (Some(lora.into()), None),
            Some(Parameters::Fsk(fsk)) => (None, Some(Fsk { datarate: fsk.datarate })),
            Some(Parameters::LrFhss(_)) | None => (None, None),
        };
        Self { frequency: tx.frequency, power: 0, modulation: Modulation { lora, fsk } }
    }
}

impl From<gw::LoraModulationInfo> for Lora {
    fn from(lora: gw::LoraModulationInfo) -> Self {
        let code_rate = match lora.code_rate() {
            gw::CodeRate::CrUndefined => String::new(),
            code_rate => code_rate.as_str_name().to_owned(),
        };
        Self { bandwidth: lora.bandwidth, spreading_factor: lora.spreading_factor, code_rate }
    }
}

/// Returns the radio metadata of an uplink, without its time.
pub(crate) fn metadata(tx: &TxInfo, rx: &[RxInfo]) -> Metadata {
    let radio::Modulation { name, data_rate, bit_rate } = modulation(&tx.modulation);
    let code_rate = tx.modulation.lora.as_ref().map(|lora| coding_rate(&lora.code_rate));
    Metadata {
        frequency: (f64::from(tx.frequency) / 1e6) as f32,
        modulation: name,
        data_rate,
        bit_rate,
        coding_rate: code_rate.unwrap_or_default(),
        gateways: rx.iter().map(gateway).collect(),
        ..Metadata::default()
    }
}

/// Returns the transmission parameters of a downlink.
pub(crate) fn config(tx: &TxInfo) -> DownlinkConfig {
    let radio::Modulation { name, data_rate, bit_rate } = modulation(&tx.modulation);
    DownlinkConfig {
        modulation: name,
        data_rate,
        bit_rate,
        frequency: tx.frequency.into(),
        power: tx.power,
        ..DownlinkConfig::default()
    }
}

/// The id that v2 gives a gateway that has only an EUI.
pub(crate) fn gateway_id(eui: &str) -> String {
    if eui.is_empty() { String::new() } else { format!("eui-{eui}") }
}

fn gateway(rx: &RxInfo) -> GatewayMetadata {
    rx.location.of(GatewayMetadata {
        gtw_id: gateway_id(&rx.gateway_id),
        time: rx.gw_time.or(rx.ns_time).map(Timestamp::to_rfc3339).unwrap_or_default(),
        channel: rx.channel,
        rssi: rx.rssi,
        snr: rx.snr,
        rf_chain: rx.rf_chain,
        ..GatewayMetadata::default()
    })
}

fn modulation(modulation: &Modulation) -> radio::Modulation {
    match modulation {
        Modulation { lora: Some(lora), .. } => radio::Modulation::lora(lora.spreading_factor, lora.bandwidth),
        Modulation { fsk: Some(fsk), .. } => radio::Modulation::fsk(fsk.datarate),
        _ => radio::Modulation::default(),
    }
}

/// `CR_4_5` becomes `4/5`.
fn coding_rate(name: &str) -> String {
    name.trim_start_matches("CR_").replace('_', "/")
}
