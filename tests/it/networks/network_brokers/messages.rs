//! Uplinks of one device, as a network broker forwards them with the network server's template for the response.

use api::{
    broker::{DeduplicatedUplinkMessage, DownlinkMessage, DownlinkOption},
    gateway::{self, LocationMetadata, RxMetadata, rx_metadata::Antenna},
    lorawan::{self, Metadata, TxConfiguration},
    protocol::{self, rx_metadata, tx_configuration},
    rest::handler::LorawanDevice,
    trace::Trace,
};
use types::{AppId, Timestamp};

use crate::harness::{Owner, device};

pub(crate) const APP_EUI: &str = "70B3D57ED0000DEA";
pub(crate) const DEV_EUI: &str = "0004A30B001C0530";

/// Uplinks on port 1 with the payload `up` and their counter, unconfirmed, acknowledging, and confirmed. Made with
/// lora-packet 0.9.3, with the keys of the example in its documentation.
const UPLINKS: [[&str; 3]; 11] = [
    ["40F17DBE490003000150C125CF160EBC", "40F17DBE492003000150C125CBD7625E", "80F17DBE490003000150C125F0A9204F"],
    ["40F17DBE4900040001742B7CD0683DDB", "40F17DBE4920040001742B7C7A26CA45", "80F17DBE4900040001742B7CB350DDDF"],
    ["40F17DBE4900050001903E1B2A5DC1D4", "40F17DBE4920050001903E1B19D8EEB8", "80F17DBE4900050001903E1B9E3A39ED"],
    ["40F17DBE4900060001816C2C575604D5", "40F17DBE4920060001816C2CDDC23174", "80F17DBE4900060001816C2C9B14FEB1"],
    ["40F17DBE4900070001EF4312315DC3D9", "40F17DBE4920070001EF43125FD913F9", "80F17DBE4900070001EF431214C5E370"],
    ["40F17DBE49000800016EB71A6216D6BC", "40F17DBE49200800016EB71AFB1E979D", "80F17DBE49000800016EB71A17648FE4"],
    ["40F17DBE4900090001C5D930ABFCFD0C", "40F17DBE4920090001C5D930A5A7FBDF", "80F17DBE4900090001C5D930ACCAEADD"],
    ["40F17DBE49000A000185163198C183E51E", "40F17DBE49200A0001851631985C10085C", "80F17DBE49000A000185163198C8F26B99"],
    ["40F17DBE49000B00014C12AD59C623A762", "40F17DBE49200B00014C12AD59BB0FA201", "80F17DBE49000B00014C12AD59175D989F"],
    ["40F17DBE49000C000190BBE0BA8E339B5D", "40F17DBE49200C000190BBE0BA994A6F12", "80F17DBE49000C000190BBE0BA084AFDAA"],
    ["40F17DBE49000D000181E1E1EEBE176AC9", "40F17DBE49200D000181E1E1EE9FF933BE", "80F17DBE49000D000181E1E1EECDE5DC70"],
];

/// A frame with the counter 65539, the port 2 and the payload `wide`.
pub(crate) const WIDE: &str = "40F17DBE4900030002BFDFF313863BC583";

/// Time at which the gateway received an uplink, by its own clock, in microseconds.
const RECEIVED_MICROS: u32 = 12;

/// Contents of an uplink beyond its payload.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Unconfirmed,
    Acknowledging,
    Confirmed,
}

/// A frame with this counter, from 3 to 13.
pub(crate) fn frame(kind: Kind, f_cnt: u32) -> Vec<u8> {
    hex::decode(UPLINKS[f_cnt as usize - 3][kind as usize]).unwrap()
}

/// Registers the device that sends these frames, activated by personalization.
pub(crate) async fn add_device(owner: &Owner, dev_id: &str) {
    let mut device = device(&owner.app_id, dev_id);
    let lorawan = device.lorawan_device.take().unwrap();
    device.lorawan_device = Some(LorawanDevice {
        app_eui: APP_EUI.parse().unwrap(),
        dev_eui: DEV_EUI.parse().unwrap(),
        dev_addr: Some("49BE7DF1".parse().unwrap()),
        nwk_s_key: Some("44024241ED4CE9A68C6A8BC055233FD3".parse().unwrap()),
        app_s_key: Some("EC925802AE430CA77FD3DD73CB2CC588".parse().unwrap()),
        ..lorawan
    });
    owner.handler.set_device(device.into()).await.unwrap();
}

/// An uplink as a network broker forwards it, without a template.
pub(crate) fn uplink(app_id: &AppId, dev_id: &str, payload: Vec<u8>, f_cnt: u32) -> DeduplicatedUplinkMessage {
    let antenna = |antenna, rssi| Antenna { antenna, channel: 3, rssi, snr: 7.5, ..Antenna::default() };
    let location = LocationMetadata { latitude: 52.5, longitude: 13.25, source: 2, ..Default::default() };
    let gateway = RxMetadata {
        gateway_id: "gateway-1".to_owned(),
        gateway_trusted: true,
        timestamp: RECEIVED_MICROS,
        frequency: 868_100_000,
        antennas: vec![antenna(0, -50.0), antenna(1, -60.0)],
        location: Some(location),
        ..RxMetadata::default()
    };
    let received =
        Metadata { data_rate: "SF7BW125".to_owned(), coding_rate: "4/5".to_owned(), f_cnt, ..Metadata::default() };
    DeduplicatedUplinkMessage {
        payload,
        app_id: app_id.to_string(),
        dev_id: dev_id.to_owned(),
        app_eui: hex::decode(APP_EUI).unwrap(),
        dev_eui: hex::decode(DEV_EUI).unwrap(),
        protocol_metadata: Some(protocol::RxMetadata { protocol: Some(rx_metadata::Protocol::Lorawan(received)) }),
        gateway_metadata: vec![gateway],
        server_time: 1_484_664_429_740_000_000,
        ..Default::default()
    }
}

/// The same with a template for the response.
pub(crate) fn with_template(
    uplink: DeduplicatedUplinkMessage,
    template: &str,
    f_cnt: u32,
) -> DeduplicatedUplinkMessage {
    let sent = TxConfiguration {
        data_rate: "SF9BW125".to_owned(),
        coding_rate: "4/5".to_owned(),
        f_cnt,
        ..TxConfiguration::default()
    };
    let option = DownlinkOption {
        identifier: "router-1:option".to_owned(),
        gateway_id: "gateway-1".to_owned(),
        deadline: 99,
        protocol_configuration: Some(protocol::TxConfiguration {
            protocol: Some(tx_configuration::Protocol::Lorawan(sent)),
        }),
        gateway_configuration: Some(gateway::TxConfiguration {
            timestamp: RECEIVED_MICROS + 1_000_000,
            frequency: 869_525_000,
            power: 27,
            ..Default::default()
        }),
        ..DownlinkOption::default()
    };
    let template = DownlinkMessage {
        payload: hex::decode(template).unwrap(),
        app_id: uplink.app_id.clone(),
        dev_id: uplink.dev_id.clone(),
        app_eui: uplink.app_eui.clone(),
        dev_eui: uplink.dev_eui.clone(),
        downlink_option: Some(option),
        // v2 sends the fields beside the bytes.
        message: Some(protocol::Message {
            protocol: Some(protocol::message::Protocol::Lorawan(lorawan::Message::default())),
        }),
        ..DownlinkMessage::default()
    };
    DeduplicatedUplinkMessage { response_template: Some(template), ..uplink }
}

/// The same from a router that received it at this time.
pub(crate) fn routed(uplink: DeduplicatedUplinkMessage, at: Timestamp) -> DeduplicatedUplinkMessage {
    let step = |service_name: &str, parents| Trace {
        service_name: service_name.to_owned(),
        event: "receive".to_owned(),
        time: at.as_nanos(),
        parents,
        ..Trace::default()
    };
    DeduplicatedUplinkMessage { trace: Some(step("broker", vec![step("router", Vec::new())])), ..uplink }
}
