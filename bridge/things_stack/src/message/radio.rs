//! Radio metadata of an uplink, from `rx_metadata` and `settings`, in the words of v2.

use bridge::message::radio::{Location, Modulation, lenient};
use serde::Deserialize;
use types::{GatewayMetadata, Metadata, Timestamp};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RxMetadata {
    #[serde(deserialize_with = "lenient")]
    gateway_ids: GatewayIds,
    #[serde(deserialize_with = "lenient")]
    time: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    timestamp: u32,
    #[serde(deserialize_with = "lenient")]
    rssi: f32,
    #[serde(deserialize_with = "lenient")]
    snr: f32,
    #[serde(deserialize_with = "lenient")]
    channel_index: u32,
    #[serde(deserialize_with = "lenient")]
    location: Location,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GatewayIds {
    #[serde(deserialize_with = "lenient")]
    gateway_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    #[serde(deserialize_with = "lenient")]
    data_rate: DataRate,
    /// In Hz.
    #[serde(deserialize_with = "lenient")]
    frequency: String,
    /// The coding rate as versions before 3.20 have it.
    #[serde(deserialize_with = "lenient")]
    coding_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DataRate {
    #[serde(deserialize_with = "lenient")]
    lora: Option<Lora>,
    #[serde(deserialize_with = "lenient")]
    fsk: Option<Fsk>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lora {
    /// In Hz.
    #[serde(deserialize_with = "lenient")]
    bandwidth: u32,
    #[serde(deserialize_with = "lenient")]
    spreading_factor: u32,
    #[serde(deserialize_with = "lenient")]
    coding_rate: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fsk {
    /// In bit/s.
    #[serde(deserialize_with = "lenient")]
    bit_rate: u32,
}

/// Returns the radio metadata of an uplink, without its time. `airtime` is such as `0.056576s`.
pub(crate) fn metadata(settings: &Settings, received: Vec<RxMetadata>, airtime: &str) -> Metadata {
    let Modulation { name, data_rate, bit_rate } = modulation(&settings.data_rate);
    let lora = settings.data_rate.lora.as_ref();
    let coding_rate = lora.map(|lora| lora.coding_rate.as_str()).filter(|rate| !rate.is_empty());
    Metadata {
        frequency: (settings.frequency.parse().unwrap_or(0.0) / 1e6) as f32,
        modulation: name,
        data_rate,
        bit_rate,
        airtime: nanoseconds(airtime).unwrap_or(0),
        coding_rate: coding_rate.unwrap_or(&settings.coding_rate).to_owned(),
        gateways: received.into_iter().map(gateway).collect(),
        ..Metadata::default()
    }
}

fn gateway(received: RxMetadata) -> GatewayMetadata {
    let RxMetadata { gateway_ids, time, timestamp, rssi, snr, channel_index, location } = received;
    location.of(GatewayMetadata {
        gtw_id: gateway_ids.gateway_id,
        timestamp,
        time: time.map(Timestamp::to_rfc3339).unwrap_or_default(),
        channel: channel_index,
        rssi,
        snr,
        ..GatewayMetadata::default()
    })
}

fn modulation(data_rate: &DataRate) -> Modulation {
    match data_rate {
        DataRate { lora: Some(lora), .. } => Modulation::lora(lora.spreading_factor, lora.bandwidth),
        DataRate { fsk: Some(fsk), .. } => Modulation::fsk(fsk.bit_rate),
        _ => Modulation::default(),
    }
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
    fn what_cannot_be_read_of_a_gateway_is_left_out() {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Uplink {
            #[serde(deserialize_with = "bridge::message::radio::lenient_list")]
            rx_metadata: Vec<RxMetadata>,
            #[serde(deserialize_with = "lenient")]
            settings: Settings,
        }
        let read = |text: &str| {
            let Uplink { rx_metadata, settings } = serde_json::from_str(text).unwrap();
            metadata(&settings, rx_metadata, "")
        };
        let found = read(
            r#"{"rx_metadata": [
                {"gateway_ids": {"gateway_id": "a"}, "time": "yesterday", "timestamp": 5000000000, "rssi": -35},
                "no gateway", {"gateway_ids": 1, "snr": 2.5, "location": {"latitude": "x", "longitude": 13}}
            ], "settings": {"frequency": 868300000, "data_rate": {"lora": {"bandwidth": 125000, "spreading_factor": 7}}}}"#,
        );
        let [first, second] = &found.gateways[..] else { panic!("{found:?}") };
        assert_eq!((&*first.gtw_id, &*first.time, first.timestamp, first.rssi), ("a", "", 0, -35.0));
        assert_eq!((&*second.gtw_id, second.snr, second.latitude, second.longitude), ("", 2.5, 0.0, 13.0));
        assert_eq!((&*found.data_rate, found.frequency), ("SF7BW125", 0.0));
        for text in [r#"{"rx_metadata": null, "settings": null}"#, r#"{"rx_metadata": {}, "settings": []}"#, "{}"] {
            assert_eq!(read(text), Metadata::default(), "{text}");
        }
    }

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
