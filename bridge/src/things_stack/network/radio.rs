//! `rx_metadata` and `settings`: how a frame was received, in the words of v2.

use serde::Deserialize;
use types::{GatewayMetadata, Metadata, Timestamp};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RxMetadata {
    gateway_ids: GatewayIds,
    time: Option<Timestamp>,
    timestamp: u32,
    rssi: f32,
    snr: f32,
    channel_index: u32,
    location: Location,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GatewayIds {
    gateway_id: String,
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
pub(super) struct Settings {
    data_rate: DataRate,
    /// In Hz.
    frequency: String,
    /// Where versions before 3.20 have it.
    coding_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DataRate {
    lora: Option<Lora>,
    fsk: Option<Fsk>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lora {
    /// In Hz.
    bandwidth: u32,
    spreading_factor: u32,
    coding_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fsk {
    /// In bit/s.
    bit_rate: u32,
}

/// How an uplink was received; `airtime` is such as `0.056576s`. Its time is elsewhere.
pub(super) fn metadata(settings: &Settings, received: Vec<RxMetadata>, airtime: &str) -> Metadata {
    let DataRate { lora, fsk } = &settings.data_rate;
    let coding_rate = lora.as_ref().map(|lora| lora.coding_rate.as_str()).filter(|rate| !rate.is_empty());
    Metadata {
        frequency: (settings.frequency.parse().unwrap_or(0.0) / 1e6) as f32,
        modulation: modulation(&settings.data_rate).to_owned(),
        data_rate: lora.as_ref().map(data_rate).unwrap_or_default(),
        bit_rate: fsk.as_ref().map_or(0, |fsk| fsk.bit_rate),
        airtime: nanoseconds(airtime).unwrap_or(0),
        coding_rate: coding_rate.unwrap_or(&settings.coding_rate).to_owned(),
        gateways: received.into_iter().map(gateway).collect(),
        ..Metadata::default()
    }
}

fn gateway(received: RxMetadata) -> GatewayMetadata {
    let RxMetadata { gateway_ids, time, timestamp, rssi, snr, channel_index, location } = received;
    GatewayMetadata {
        gtw_id: gateway_ids.gateway_id,
        timestamp,
        time: time.map(Timestamp::to_rfc3339).unwrap_or_default(),
        channel: channel_index,
        rssi,
        snr,
        latitude: location.latitude,
        longitude: location.longitude,
        altitude: location.altitude as i32,
        ..GatewayMetadata::default()
    }
}

fn modulation(data_rate: &DataRate) -> &'static str {
    match data_rate {
        DataRate { lora: Some(_), .. } => "LORA",
        DataRate { fsk: Some(_), .. } => "FSK",
        _ => "",
    }
}

fn data_rate(lora: &Lora) -> String {
    format!("SF{}BW{}", lora.spreading_factor, lora.bandwidth / 1000)
}

/// A duration in JSON, such as `0.056576s`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.strip_suffix('s').map(|text| text.split_once('.').unwrap_or((text, "")))?;
    let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_become_nanoseconds() {
        for (text, expected) in [
            ("0.056576s", Some(56_576_000)),
            ("2s", Some(2_000_000_000)),
            ("0.0000000019s", Some(1)),
            ("", None),
            ("1", None),
            ("-1s", None),
            ("1.xs", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
