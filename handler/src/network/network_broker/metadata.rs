//! Converts the metadata of network brokers about the reception and the transmission of frames.

use api::{
    broker::DownlinkOption,
    gateway::{RxMetadata, location_metadata::LocationSource, rx_metadata::Antenna},
    lorawan::{self, Modulation},
    protocol::{self, rx_metadata, tx_configuration},
};
use types::{DownlinkConfig, GatewayMetadata, Metadata, Timestamp};

use crate::network::lorawan::airtime;

/// Maximum number of gateways that a message names.
const GATEWAYS_MAX: usize = 100;

/// Returns the metadata of a received frame in the form of v2. `length` is that of the whole frame, in bytes.
pub(crate) fn metadata(
    received: Option<&protocol::RxMetadata>,
    gateways: &[RxMetadata],
    server_time: i64,
    length: usize,
) -> Metadata {
    let metadata = Metadata {
        time: time(server_time),
        frequency: gateways.first().map_or(0.0, |gateway| (gateway.frequency as f64 / 1e6) as f32),
        gateways: gateways.iter().flat_map(receptions).take(GATEWAYS_MAX).collect(),
        ..Metadata::default()
    };
    let Some(lorawan) = lorawan(received) else { return metadata };
    Metadata {
        modulation: name(lorawan.modulation()).to_owned(),
        data_rate: lorawan.data_rate.clone(),
        bit_rate: lorawan.bit_rate,
        coding_rate: lorawan.coding_rate.clone(),
        airtime: match lorawan.modulation() {
            Modulation::Lora => airtime::of_lora(length, &lorawan.data_rate, &lorawan.coding_rate),
            Modulation::Fsk => airtime::of_fsk(length, lorawan.bit_rate),
        },
        ..metadata
    }
}

/// The LoRaWAN part of how a frame was received.
pub(super) fn lorawan(received: Option<&protocol::RxMetadata>) -> Option<&lorawan::Metadata> {
    let rx_metadata::Protocol::Lorawan(lorawan) = received?.protocol.as_ref()?;
    Some(lorawan)
}

/// Returns the transmission parameters of a frame of this length in bytes.
pub(super) fn config(option: &DownlinkOption, f_cnt: u32, length: usize) -> DownlinkConfig {
    let gateway = option.gateway_configuration.unwrap_or_default();
    let config =
        DownlinkConfig { counter: f_cnt, frequency: gateway.frequency, power: gateway.power, ..Default::default() };
    let Some(lorawan) = configuration(option) else { return config };
    DownlinkConfig {
        modulation: name(lorawan.modulation()).to_owned(),
        data_rate: lorawan.data_rate.clone(),
        bit_rate: lorawan.bit_rate,
        airtime: match lorawan.modulation() {
            Modulation::Lora => airtime::of_lora(length, &lorawan.data_rate, &lorawan.coding_rate),
            Modulation::Fsk => airtime::of_fsk(length, lorawan.bit_rate),
        },
        ..config
    }
}

/// The LoRaWAN part of how a frame is sent.
pub(super) fn configuration(option: &DownlinkOption) -> Option<&lorawan::TxConfiguration> {
    let tx_configuration::Protocol::Lorawan(lorawan) = option.protocol_configuration.as_ref()?.protocol.as_ref()?;
    Some(lorawan)
}

fn name(modulation: Modulation) -> &'static str {
    match modulation {
        Modulation::Lora => "LORA",
        Modulation::Fsk => "FSK",
    }
}

/// Returns the receptions of the frame by a gateway, one per antenna.
fn receptions(gateway: &RxMetadata) -> Vec<GatewayMetadata> {
    let whole = reception(gateway);
    let of_antenna = |antenna: &Antenna| GatewayMetadata {
        antenna: antenna.antenna,
        fine_timestamp: u64::try_from(antenna.fine_time).unwrap_or_default(),
        fine_timestamp_encrypted: Some(antenna.encrypted_time.clone()).filter(|time| !time.is_empty()),
        channel: antenna.channel,
        rssi: antenna.rssi,
        snr: antenna.snr,
        ..whole.clone()
    };
    if gateway.antennas.is_empty() { vec![whole] } else { gateway.antennas.iter().map(of_antenna).collect() }
}

fn reception(gateway: &RxMetadata) -> GatewayMetadata {
    let location = gateway.location.unwrap_or_default();
    let source = match location.source() {
        LocationSource::Unknown => "",
        LocationSource::Gps => "gps",
        LocationSource::Config => "config",
        LocationSource::Registry => "registry",
        LocationSource::IpGeolocation => "ip_geolocation",
    };
    GatewayMetadata {
        gtw_id: gateway.gateway_id.clone(),
        gtw_trusted: gateway.gateway_trusted,
        timestamp: gateway.timestamp,
        time: time(gateway.time),
        channel: gateway.channel,
        rssi: gateway.rssi,
        snr: gateway.snr,
        rf_chain: gateway.rf_chain,
        latitude: location.latitude,
        longitude: location.longitude,
        altitude: location.altitude,
        location_accuracy: location.accuracy,
        location_source: source.to_owned(),
        ..GatewayMetadata::default()
    }
}

/// Nanoseconds since 1970 as text; empty for zero, which means unknown.
fn time(nanos: i64) -> String {
    if nanos == 0 { String::new() } else { Timestamp::from_nanos(nanos).to_rfc3339() }
}
