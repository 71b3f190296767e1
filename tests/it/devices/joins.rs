//! Joins: who may forward them, their responses and events, and that nonces cannot be reused.

mod concurrency;
pub(crate) mod network_broker;
pub(crate) mod templates;

use api::rest::handler::LorawanDevice;
use serde_json::json;
use tonic::Code;
use types::{Credential, Secret};

use self::network_broker::{APP_EUI, BROKER, DEV_ADDR, DEV_EUI, NetworkBroker, bytes, message, told};
use crate::harness::{Network, Owner, device, next};

pub(crate) const APP_KEY: &str = "B6B53F4A168A7A88BDF7EA135CE9CFCA";

async fn network() -> Network {
    Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await
}

/// Creates a device that joins; without a device EUI it is a template.
pub(crate) async fn set(owner: &Owner, dev_id: &str, dev_eui: &str, app_key: &str) {
    let mut device = device(&owner.app_id, dev_id);
    let lorawan = device.lorawan_device.take().unwrap();
    let (app_eui, dev_eui) = (APP_EUI.parse().unwrap(), dev_eui.parse().unwrap());
    let app_key = Some(app_key.parse().unwrap());
    device.lorawan_device = Some(LorawanDevice { app_eui, dev_eui, app_key, f_cnt_up: 9, ..lorawan });
    owner.handler.set_device(device.into()).await.unwrap();
}

pub(crate) async fn get(owner: &Owner, dev_id: &str) -> api::lorawan::Device {
    let device = owner.handler.get_device(&owner.app_id, &dev_id.parse().unwrap()).await.unwrap();
    let Some(api::handler::device::Device::LorawanDevice(lorawan)) = device.device else { panic!("{dev_id}") };
    lorawan
}

// Conformance: ActivationChallenge, Activate, and their responses
#[tokio::test(flavor = "multi_thread")]
async fn a_device_joins_and_events_are_published() {
    let network = network().await;
    let owner = network.owner("joiner").await;
    let broker = NetworkBroker::of(&network, "joiner", "brokers", BROKER).await;
    set(&owner, "dev-1", DEV_EUI, APP_KEY).await;
    let mut listener = owner.listen(&network).await;
    // The same as lora-packet computes for this request.
    let request = broker.challenge(&owner.app_id, "dev-1", DEV_EUI, 0xCC85).await.unwrap();
    assert_eq!(hex::encode_upper(&request), "00EA0D00D07ED5B37030051C000BA3040085CCC6EBD142");

    let response = broker.activate(message(&owner.app_id, "dev-1", DEV_EUI, request)).await.unwrap();
    assert_eq!((response.payload[0], response.payload.len()), (0x20, 17));
    assert_eq!(response.downlink_option.as_ref().unwrap().identifier, "option");
    let told = told(&response);
    let kept = get(&owner, "dev-1").await;
    assert_eq!((&told.nwk_s_key, &told.dev_addr), (&kept.nwk_s_key, &kept.dev_addr));
    assert_eq!((told.rx_delay, told.rx2_dr), (1, 3), "what the network said stays");
    assert_eq!((kept.dev_addr, kept.f_cnt_up), (bytes(DEV_ADDR), 0));
    assert!(kept.app_s_key != [0; 16] && kept.app_s_key != kept.nwk_s_key);
    let gateway = json!({"gtw_id": "gateway-1", "time": "", "channel": 0, "rssi": 0.0, "snr": 0.0, "rf_chain": 0});
    let metadata = json!({
        "time": "2017-01-17T14:47:09.74Z", "frequency": 868.1, "modulation": "LORA", "data_rate": "SF7BW125",
        "airtime": 61_696_000, "coding_rate": "4/5", "gateways": [gateway],
    });
    let expected = json!({"app_eui": APP_EUI, "dev_eui": DEV_EUI, "dev_addr": DEV_ADDR, "metadata": metadata});
    assert_eq!(next(&mut listener).await, ("dev-1/events/activations".to_owned(), expected));
    network.stack.stop().await;
}

// Conformance: Only trusted network brokers can forward joins
#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_network_brokers_may_activate_devices() {
    let network = network().await;
    let owner = network.owner("wary").await;
    set(&owner, "dev-1", DEV_EUI, APP_KEY).await;
    let trusted = NetworkBroker::of(&network, "wary", "brokers", BROKER).await;
    let handler = std::fs::read_to_string(network.dir.path().join("handler.token")).unwrap();
    let Credential::Token(user) = &owner.token else { panic!("owners have tokens") };
    for (who, broker, code) in [
        ("nobody", NetworkBroker::new(&network, None).await, Code::Unauthenticated),
        ("a user", NetworkBroker::new(&network, Some(user.clone())).await, Code::PermissionDenied),
        ("no token", NetworkBroker::new(&network, Some(Secret::new("a.b.c"))).await, Code::Unauthenticated),
        ("the handler", NetworkBroker::new(&network, Some(Secret::new(handler.trim()))).await, Code::PermissionDenied),
        ("a broker", NetworkBroker::of(&network, "wary", "brokers", "broker-2").await, Code::PermissionDenied),
        ("a router", NetworkBroker::of(&network, "wary", "routers", "router-1").await, Code::PermissionDenied),
    ] {
        let status = broker.challenge(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap_err();
        assert_eq!(status.code(), code, "{who} asks for a challenge: {status}");
        let request = trusted.challenge(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap();
        let status = broker.activate(message(&owner.app_id, "dev-1", DEV_EUI, request)).await.unwrap_err();
        assert_eq!(status.code(), code, "{who} brings a join: {status}");
    }
    trusted.join(&owner.app_id, "dev-1", DEV_EUI, 1).await.expect("nobody used the nonce");
    network.stack.stop().await;
}

// Conformance: Error messages of v2, and the events `activations`
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_join_names_the_reason_and_changes_nothing() {
    let network = network().await;
    let owner = network.owner("strict").await;
    let broker = NetworkBroker::of(&network, "strict", "brokers", BROKER).await;
    set(&owner, "dev-1", DEV_EUI, APP_KEY).await;
    set(&owner, "keyless", "0004A30B001C0531", "").await;
    broker.join(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap();
    let before = get(&owner, "dev-1").await;
    let mut listener = owner.listen(&network).await;

    let good = broker.challenge(&owner.app_id, "dev-1", DEV_EUI, 2).await.unwrap();
    let message = |change: &dyn Fn(&mut api::broker::DeduplicatedDeviceActivationRequest)| {
        let mut message = message(&owner.app_id, "dev-1", DEV_EUI, good.clone());
        change(&mut message);
        message
    };
    let used = broker.challenge(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap();
    let other = broker.challenge(&owner.app_id, "dev-1", "0004A30B001C0532", 2).await.unwrap();
    let cases = [
        (
            message(&|it| it.payload = used.clone()),
            (Code::InvalidArgument, "Activation DevNonce not valid: already used"),
            true,
        ),
        (message(&|it| it.payload[22] ^= 1), (Code::NotFound, "device that validates MIC not found"), true),
        (
            message(&|it| it.response_template = None),
            (Code::InvalidArgument, "Activation not valid: No gateways available for downlink"),
            true,
        ),
        (
            message(&|it| it.response_template.as_mut().unwrap().downlink_option = None),
            (Code::InvalidArgument, "Activation not valid: No gateways available for downlink"),
            true,
        ),
        (
            message(&|it| {
                it.payload = other.clone();
                it.dev_eui = bytes("0004A30B001C0532");
            }),
            (Code::InvalidArgument, "Activation not valid: AppEUI and DevEUI are not those of the device"),
            true,
        ),
        (
            message(&|it| it.dev_id = "keyless".to_owned()),
            (Code::NotFound, "AppKey for device keyless not found"),
            true,
        ),
        (message(&|it| it.dev_id = "nobody".to_owned()), (Code::NotFound, "Device strict-app:nobody not found"), true),
        (
            message(&|it| it.dev_eui = bytes("0004A30B001C0532")),
            (Code::InvalidArgument, "Activation not valid: AppEUI and DevEUI are not those of the payload"),
            false,
        ),
        (
            message(&|it| it.payload.truncate(22)),
            (Code::InvalidArgument, "Activation not valid: the payload is no join request of LoRaWAN 1.0"),
            false,
        ),
        (
            message(&|it| it.response_template.as_mut().unwrap().payload.truncate(16)),
            (Code::InvalidArgument, "Activation not valid: the response template is no join accept of LoRaWAN 1.0"),
            false,
        ),
        (
            message(&|it| it.dev_id = "No Device".to_owned()),
            (Code::InvalidArgument, "DevID not valid: must have 2 to 36 characters"),
            false,
        ),
    ];
    for (message, (code, text), is_published) in cases {
        let dev_id = message.dev_id.clone();
        let status = broker.activate(message).await.unwrap_err();
        assert_eq!(status.code(), code, "{text}: {status}");
        assert!(status.message().starts_with(text), "{text}: {status}");
        if is_published {
            let (topic, event) = next(&mut listener).await;
            assert_eq!(topic, format!("{dev_id}/events/activations/errors"));
            assert_eq!(event["error"], status.message());
            assert_eq!((&event["dev_addr"], &event["metadata"]), (&json!(""), &json!({"time": ""})));
        }
    }
    assert_eq!(get(&owner, "dev-1").await, before);
    broker.join(&owner.app_id, "dev-1", DEV_EUI, 2).await.expect("the nonce was not used");
    // Each nonce is accepted once per key.
    set(&owner, "dev-1", DEV_EUI, "00112233445566778899AABBCCDDEEFF").await;
    broker.join(&owner.app_id, "dev-1", DEV_EUI, 1).await.expect("a new key has used none");
    network.stack.stop().await;
}
