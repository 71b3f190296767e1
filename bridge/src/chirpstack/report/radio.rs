//! `rxInfo` and `txInfo`: how a frame was received or sent, in the words of v2.

use serde::Deserialize;
use types::{DownlinkConfig, GatewayMetadata, Metadata, Timestamp};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RxInfo {
    gateway_id: String,
    gw_time: Option<Timestamp>,
    ns_time: Option<Timestamp>,
    rssi: f32,
    snr: f32,
    channel: u32,
    rf_chain: u32,
    location: Location,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Location {
    latitude: f32,
    longitude: f32,
    altitude: f32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TxInfo {
    /// In Hz.
    frequency: u32,
    power: i32,
    modulation: Modulation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Modulation {
    lora: Option<Lora>,
    fsk: Option<Fsk>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lora {
    /// In Hz.
    bandwidth: u32,
    spreading_factor: u32,
    /// Such as `CR_4_5`.
    code_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fsk {
    /// In bit/s.
    datarate: u32,
}

/// How an uplink was received. Its time is elsewhere.
pub(super) fn metadata(tx: &TxInfo, rx: &[RxInfo]) -> Metadata {
    let Modulation { lora, fsk } = &tx.modulation;
    Metadata {
        frequency: (f64::from(tx.frequency) / 1e6) as f32,
        modulation: name(&tx.modulation),
        data_rate: lora.as_ref().map(data_rate).unwrap_or_default(),
        bit_rate: fsk.as_ref().map_or(0, |fsk| fsk.datarate),
        coding_rate: lora.as_ref().map(|lora| coding_rate(&lora.code_rate)).unwrap_or_default(),
        gateways: rx.iter().map(gateway).collect(),
        ..Metadata::default()
    }
}

/// How a downlink was sent.
pub(super) fn config(tx: &TxInfo) -> DownlinkConfig {
    let Modulation { lora, fsk } = &tx.modulation;
    DownlinkConfig {
        modulation: name(&tx.modulation),
        data_rate: lora.as_ref().map(data_rate).unwrap_or_default(),
        bit_rate: fsk.as_ref().map_or(0, |fsk| fsk.datarate),
        frequency: tx.frequency.into(),
        power: tx.power,
        ..DownlinkConfig::default()
    }
}

/// The id that v2 gives a gateway that has only an EUI.
pub(super) fn gateway_id(eui: &str) -> String {
    if eui.is_empty() { String::new() } else { format!("eui-{eui}") }
}

fn gateway(rx: &RxInfo) -> GatewayMetadata {
    GatewayMetadata {
        gtw_id: gateway_id(&rx.gateway_id),
        time: rx.gw_time.or(rx.ns_time).map(Timestamp::to_rfc3339).unwrap_or_default(),
        channel: rx.channel,
        rssi: rx.rssi,
        snr: rx.snr,
        rf_chain: rx.rf_chain,
        latitude: rx.location.latitude,
        longitude: rx.location.longitude,
        altitude: rx.location.altitude as i32,
        ..GatewayMetadata::default()
    }
}

fn name(modulation: &Modulation) -> String {
    match modulation {
        Modulation { lora: Some(_), .. } => "LORA".to_owned(),
        Modulation { fsk: Some(_), .. } => "FSK".to_owned(),
        _ => String::new(),
    }
}

fn data_rate(lora: &Lora) -> String {
    format!("SF{}BW{}", lora.spreading_factor, lora.bandwidth / 1000)
}

/// `CR_4_5` becomes `4/5`.
fn coding_rate(name: &str) -> String {
    name.trim_start_matches("CR_").replace('_', "/")
}
