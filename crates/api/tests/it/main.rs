//! The bytes on the wire, byte by byte: a field that moves breaks every client in the field.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the functions that are exempt")]

use airlock_api::{broker, discovery, gateway, handler, lorawan, networkserver, protocol};
use prost::Message;

/// Compares a message with its bytes in hexadecimal, both ways; spaces are for the reader.
fn check<M: Message + Default + PartialEq + std::fmt::Debug>(message: &M, wire: &str) {
    let digits: Vec<u8> = wire.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!(M::decode(bytes.as_slice()).unwrap(), *message);
}

// Conformance: `app_id`, the four functions, `payload_format` stored verbatim
#[test]
fn an_application_has_the_original_field_numbers() {
    let application = handler::Application {
        app_id: "a1".into(),
        decoder: "d".into(),
        converter: "c".into(),
        validator: "v".into(),
        encoder: "e".into(),
        payload_format: "custom".into(),
        register_on_join_access_key: "k".into(),
    };
    check(&application, "0a02 6131  1201 64  1a01 63  2201 76  2a01 65  3206 637573746f6d  3a01 6b");
}

// Conformance: Every field, in gRPC and JSON
#[test]
fn a_device_has_its_lorawan_part_in_a_oneof() {
    let lorawan = lorawan::Device { app_id: "a1".into(), f_cnt_up: 300, last_seen: 1, ..Default::default() };
    let device = handler::Device {
        app_id: "a1".into(),
        dev_id: "d1".into(),
        device: Some(handler::device::Device::LorawanDevice(lorawan)),
        latitude: 1.0,
        longitude: -1.0,
        altitude: 5,
        attributes: [("k".to_owned(), "v".to_owned())].into(),
        description: "x".into(),
    };
    check(
        &device,
        "0a02 6131  1202 6431  1a0a 1a026131 48ac02 a80101  550000803f  5d000080bf  6005  6a06 0a016b 120176  a20101 78",
    );
}

#[test]
fn lorawan_keys_and_addresses_are_raw_bytes() {
    let device = lorawan::Device {
        app_eui: vec![0x70; 8],
        dev_eui: vec![0; 8],
        dev_addr: vec![0x26, 1, 2, 3],
        nwk_s_key: vec![1; 16],
        app_s_key: vec![2; 16],
        app_key: vec![3; 16],
        disable_f_cnt_check: true,
        uses32_bit_f_cnt: true,
        activation_constraints: "abp".into(),
        ..Default::default()
    };
    let wire = [
        "0a08 7070707070707070",
        "1208 0000000000000000",
        "2a04 26010203",
        &format!("3210 {}", "01".repeat(16)),
        &format!("3a10 {}", "02".repeat(16)),
        &format!("4210 {}", "03".repeat(16)),
        "5801",
        "6001",
        "6a03 616270",
    ];
    check(&device, &wire.concat());
}

#[test]
fn simulated_uplinks_and_dry_runs_have_different_port_numbers() {
    let simulated =
        handler::SimulatedUplinkMessage { app_id: "a1".into(), dev_id: "d1".into(), payload: vec![9], port: 2 };
    check(&simulated, "0a02 6131  1202 6431  1a01 09  2002");
    let uplink = handler::DryUplinkMessage { payload: vec![9], port: 2, ..Default::default() };
    check(&uplink, "0a01 09  1802");
    check(&handler::DryDownlinkMessage { fields: "{}".into(), port: 2, ..Default::default() }, "1202 7b7d  2002");
}

// Conformance: Announcement: every field, and every form of address
#[test]
fn an_announcement_has_the_original_field_numbers() {
    let announcement = discovery::Announcement {
        id: "i1".into(),
        service_name: "handler".into(),
        public: true,
        net_address: "n".into(),
        public_key: "k".into(),
        certificate: "c".into(),
        api_address: "a".into(),
        mqtt_address: "m".into(),
        amqp_address: "q".into(),
        metadata: vec![discovery::Metadata { metadata: Some(discovery::metadata::Metadata::AppId("a1".into())) }],
        ..Default::default()
    };
    check(
        &announcement,
        "0a02 6931  1207 68616e646c6572  3001  5a01 6e  6201 6b  6a01 63  7201 61  7a01 6d  820101 71  b20105 f2010261 31",
    );
}

#[test]
fn metadata_requests_have_the_original_field_numbers() {
    use discovery::metadata::Metadata as Served;
    let metadata = |served| discovery::Metadata { metadata: Some(served) };
    check(&metadata(Served::GatewayId("g1".into())), "5202 6731");
    check(&metadata(Served::DevAddrPrefix(vec![7, 0x26, 0, 0, 0])), "a20105 0726000000");
    check(&metadata(Served::AppEui(vec![1; 8])), "fa0108 0101010101010101");
    check(&discovery::GetByAppIdRequest { app_id: "a1".into() }, "f20102 6131");
    check(&discovery::GetByGatewayIdRequest { gateway_id: "g1".into() }, "f20102 6731");
    let request = discovery::MetadataRequest {
        id: "i1".into(),
        service_name: "s".into(),
        metadata: Some(metadata(Served::AppId("a1".into()))),
    };
    check(&request, "0a02 6931  1201 73  6205 f201026131");
}

#[test]
fn an_uplink_from_the_network_broker_nests_its_protocols() {
    let uplink = broker::DeduplicatedUplinkMessage {
        payload: vec![0x40],
        app_id: "a1".into(),
        protocol_metadata: Some(protocol::RxMetadata {
            protocol: Some(protocol::rx_metadata::Protocol::Lorawan(lorawan::Metadata {
                data_rate: "SF7BW125".into(),
                f_cnt: 1,
                ..Default::default()
            })),
        }),
        gateway_metadata: vec![gateway::RxMetadata { gateway_id: "g1".into(), rssi: -1.0, ..Default::default() }],
        server_time: 1,
        ..Default::default()
    };
    check(&uplink, "0a01 40  6a02 6131  aa010e 0a0c 6208 5346374257313235 7801  b2010a 0a026731 8502000080bf  b80101");
}

#[test]
fn services_have_their_full_names() {
    let services = [
        handler::application_manager_server::SERVICE_NAME,
        handler::handler_manager_server::SERVICE_NAME,
        handler::handler_server::SERVICE_NAME,
        lorawan::dev_addr_manager_server::SERVICE_NAME,
        lorawan::device_manager_server::SERVICE_NAME,
        broker::broker_server::SERVICE_NAME,
        broker::broker_manager_server::SERVICE_NAME,
        discovery::discovery_server::SERVICE_NAME,
        networkserver::network_server_server::SERVICE_NAME,
    ];
    let expected = [
        "handler.ApplicationManager",
        "handler.HandlerManager",
        "handler.Handler",
        "lorawan.DevAddrManager",
        "lorawan.DeviceManager",
        "broker.Broker",
        "broker.BrokerManager",
        "discovery.Discovery",
        "networkserver.NetworkServer",
    ];
    assert_eq!(services, expected);
}
