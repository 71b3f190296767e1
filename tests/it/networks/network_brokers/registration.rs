//! Registration of applications and devices at network servers.

use std::{collections::BTreeSet, time::Duration};

use api::{handler, lorawan::Device};
use client::handler::HandlerClient;
use server::system::SystemClock;
use types::{ApplicationRight, Clock, Credential, DevEui, Kind, Kinded};

use super::{
    BROKER,
    fake_broker::{FakeBroker, Told},
    linked,
    messages::{APP_EUI, DEV_EUI, add_device},
};
use crate::{
    devices::joins::{
        self, APP_KEY,
        network_broker::NetworkBroker,
        set,
        templates::{make_key, set_key},
    },
    harness::{MESSAGE_TIMEOUT, Network, Owner, device},
};

/// The device of [`add_device`], as the network server sees it.
pub(super) fn device_1(app_id: &str) -> Device {
    Device {
        app_eui: hex::decode(APP_EUI).unwrap(),
        dev_eui: hex::decode(DEV_EUI).unwrap(),
        app_id: app_id.to_owned(),
        dev_id: "dev-1".to_owned(),
        dev_addr: hex::decode("49BE7DF1").unwrap(),
        nwk_s_key: hex::decode("44024241ED4CE9A68C6A8BC055233FD3").unwrap(),
        activation_constraints: "local".to_owned(),
        ..Device::default()
    }
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn the_network_server_learns_of_devices_before_the_handler_keeps_them() {
    let (network, owner, broker) = linked("teller").await;
    assert_eq!(
        broker.told().await,
        Told::Set(Box::new(device_1(owner.app_id.as_str()))),
        "without the keys of payloads"
    );
    // An update that leaves the session out keeps it, and one with other EUIs deletes the old ones.
    let mut changed = device(&owner.app_id, "dev-1");
    let lorawan = changed.lorawan_device.as_mut().unwrap();
    (lorawan.app_eui, lorawan.dev_eui) = (APP_EUI.parse().unwrap(), "0004A30B001C0531".parse().unwrap());
    owner.handler.set_device(changed.into()).await.unwrap();
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    let moved = Device { dev_eui: hex::decode("0004A30B001C0531").unwrap(), ..device_1(owner.app_id.as_str()) };
    assert_eq!(broker.told().await, Told::Set(Box::new(moved)));
    owner.handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    assert_eq!(broker.told().await, Told::Deleted(hex::decode("0004A30B001C0531").unwrap()));
    network.stack.stop().await;
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn an_access_key_is_exchanged_for_a_token() {
    let (network, owner, broker) = linked("exchanger").await;
    broker.told().await;
    let key = crate::delivery::third_party_clients::python_sdk::full_key(&network, &owner).await;
    let handler = HandlerClient::connect(&network.announcement().await, Credential::Key(key)).unwrap();
    handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    network.stack.stop().await;
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_the_network_server_refuses_is_not_kept() {
    let (network, owner, broker) = linked("refused-there").await;
    broker.refuse_devices("the EUIs are of another application").await;
    let error = owner.handler.set_device(device(&owner.app_id, "dev-2").into()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    assert!(error.to_string().contains("network broker `broker-1` did not change the device"), "{error}");
    let missing = owner.handler.get_device(&owner.app_id, &"dev-2".parse().unwrap()).await.unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    network.stack.stop().await;
}

/// A device with the EUIs of [`add_device`].
fn double(owner: &Owner, dev_id: &str) -> handler::Device {
    let mut device = device(&owner.app_id, dev_id);
    let lorawan = device.lorawan_device.as_mut().unwrap();
    (lorawan.app_eui, lorawan.dev_eui) = (APP_EUI.parse().unwrap(), DEV_EUI.parse().unwrap());
    device.into()
}

// Conformance: A refused device changes nothing in the network server
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_device_changes_nothing_in_the_network_server() {
    let (network, owner, broker) = linked("victim").await;
    broker.told().await;
    let intruder = network.owner("intruder").await;
    assert_eq!(broker.told().await, Told::Application(intruder.app_id.to_string()));
    for other in [&intruder, &owner] {
        let error = other.handler.set_device(double(other, "dup")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::AlreadyExists, "{error}");
        assert!(!error.to_string().contains("victim"), "{error}");
    }
    // An update to the EUIs of another is refused as well, before the old ones are deleted.
    let mut moved = device(&intruder.app_id, "mover");
    moved.lorawan_device.as_mut().unwrap().dev_eui = "0004A30B001C0532".parse().unwrap();
    intruder.handler.set_device(moved.into()).await.unwrap();
    let Told::Set(told) = broker.told().await else { panic!("a device is set") };
    assert_eq!(told.dev_id, "mover");
    intruder.handler.set_device(double(&intruder, "mover")).await.unwrap_err();
    owner.handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()), "and nothing before");
    network.stack.stop().await;
}

// Conformance: A refused device changes nothing in the network server
#[tokio::test(flavor = "multi_thread")]
async fn what_one_network_server_refuses_is_put_back_in_the_others() {
    let brokers = [BROKER, "broker-2"].map(|id| id.parse().unwrap()).to_vec();
    let network = Network::with(move |settings| settings.handler.network_brokers = brokers).await;
    let owner = network.owner("undoer").await;
    let first = FakeBroker::start(&network, "undoer", BROKER).await;
    let second = FakeBroker::start(&network, "undoer", "broker-2").await;
    add_device(&owner, "dev-1").await;
    let set = || Told::Set(Box::new(device_1(owner.app_id.as_str())));
    assert_eq!((first.told().await, second.told().await), (set(), set()));
    second.refuse_devices("they are of application somebody-else").await;
    let mut changed = device(&owner.app_id, "dev-1");
    let moved: DevEui = "0004A30B001C0531".parse().unwrap();
    let lorawan = changed.lorawan_device.as_mut().unwrap();
    (lorawan.app_eui, lorawan.dev_eui) = (APP_EUI.parse().unwrap(), moved);
    let error = owner.handler.set_device(changed.clone().into()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    assert!(!error.to_string().contains("somebody-else"), "it names nobody: {error}");
    // The first deleted the old EUIs and set the new ones; then it is told what the handler has.
    assert_eq!(first.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    let Told::Set(told) = first.told().await else { panic!("a device is set") };
    assert_eq!(told.dev_eui, moved.as_bytes());
    let mut back = [first.told().await, first.told().await];
    back.sort_by_key(|told| matches!(told, Told::Set(_)));
    assert_eq!(back, [Told::Deleted(moved.as_bytes().to_vec()), set()]);
    // A deletion that one refuses is undone as well.
    owner.handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap_err();
    assert_eq!(first.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    assert_eq!(first.told().await, set());
    // The EUIs that were claimed for it are free again.
    second.refuse_devices("").await;
    let other = network.owner("other").await;
    let mut taken = device(&other.app_id, "dev-1");
    let lorawan = taken.lorawan_device.as_mut().unwrap();
    (lorawan.app_eui, lorawan.dev_eui) = (APP_EUI.parse().unwrap(), moved);
    other.handler.set_device(taken.into()).await.unwrap();
    network.stack.stop().await;
}

// Conformance: Deleting an application deletes its devices at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn the_devices_of_a_deleted_application_are_deleted_there_first() {
    let (network, owner, broker) = linked("leaver").await;
    broker.told().await;
    broker.refuse_devices("not now").await;
    assert_eq!(owner.handler.delete_application(&owner.app_id).await.unwrap_err().kind(), Kind::Denied);
    owner.handler.get_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    broker.refuse_devices("").await;
    owner.handler.delete_application(&owner.app_id).await.unwrap();
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    let missing = owner.handler.get_application(&owner.app_id).await.unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    network.stack.stop().await;
}

// Conformance: A call beyond the broker's rate limit, five per second, is repeated
#[tokio::test(flavor = "multi_thread")]
async fn a_call_beyond_the_rate_limit_of_a_network_broker_is_repeated() {
    let (network, owner, broker) = linked("hasty").await;
    broker.told().await;
    broker.limit_calls(2);
    let mut joining = device(&owner.app_id, "dev-2");
    joining.lorawan_device.as_mut().unwrap().dev_eui = "0004A30B001C0532".parse().unwrap();
    owner.handler.set_device(joining.into()).await.unwrap();
    let Told::Set(told) = broker.told().await else { panic!("a device is set") };
    assert_eq!(told.dev_id, "dev-2");
    broker.limit_calls(u32::MAX);
    let error = owner.handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Exhausted, "{error}");
    network.stack.stop().await;
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_kept_although_its_client_hangs_up() {
    let (network, owner, broker) = linked("impatient").await;
    broker.told().await;
    // The call is made again later, when the client has gone.
    broker.limit_calls(1);
    let mut setting = device(&owner.app_id, "dev-2");
    setting.lorawan_device.as_mut().unwrap().dev_eui = "0004A30B001C0532".parse().unwrap();
    tokio::select! {
        set = owner.handler.set_device(setting.into()) => panic!("{set:?}: the network broker refuses first"),
        () = broker.has_refused() => {}
    }
    let Told::Set(told) = broker.told().await else { panic!("a device is set") };
    assert_eq!(told.dev_id, "dev-2");
    let kept = async {
        while owner.handler.get_device(&owner.app_id, &"dev-2".parse().unwrap()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, kept).await.expect("the handler keeps it, too");
    network.stack.stop().await;
}

// Conformance: A call beyond the broker's rate limit, five per second, is repeated
#[tokio::test(flavor = "multi_thread")]
async fn the_devices_of_an_application_are_told_one_after_the_other() {
    let (network, owner, broker) = linked("importer").await;
    let set = |number: u8| {
        let mut device = device(&owner.app_id, &format!("dev-{number}"));
        device.lorawan_device.as_mut().unwrap().dev_eui = DevEui::new([1, 2, 3, 4, 5, 6, 7, number]);
        owner.handler.set_device(device.into())
    };
    futures::future::try_join_all((2..12).map(set)).await.unwrap();
    assert_eq!(broker.calls_at_once(), 1);
    network.stack.stop().await;
}

// Conformance: A call beyond the broker's rate limit, five per second, is repeated
#[tokio::test(flavor = "multi_thread")]
async fn of_several_changes_of_euis_at_once_one_stays() {
    let (network, owner, broker) = linked("mover").await;
    broker.told().await;
    let set = |number: u8| {
        let mut device = device(&owner.app_id, "dev-1");
        let lorawan = device.lorawan_device.as_mut().unwrap();
        (lorawan.app_eui, lorawan.dev_eui) = (APP_EUI.parse().unwrap(), DevEui::new([1, 2, 3, 4, 5, 6, 7, number]));
        owner.handler.set_device(device.into())
    };
    futures::future::try_join_all((0..5).map(set)).await.unwrap();
    let mut known = BTreeSet::from([hex::decode(DEV_EUI).unwrap()]);
    // Each of them deletes the EUIs before, and sets its own.
    for _ in 0..10 {
        match broker.told().await {
            Told::Set(device) => known.insert(device.dev_eui),
            Told::Deleted(dev_eui) => known.remove(&dev_eui),
            Told::Application(app_id) => panic!("{app_id}"),
        };
    }
    assert_eq!(known, BTreeSet::from([joins::get(&owner, "dev-1").await.dev_eui]));
    network.stack.stop().await;
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_registers_on_join_is_registered_there_too() {
    let (network, owner, broker) = linked("planter").await;
    set(&owner, "sensor", "", APP_KEY).await;
    set_key(&owner, Some(make_key(&network, &owner, "planting", &[ApplicationRight::Devices]).await)).await;
    let token = broker.identity.token(&BROKER.parse().unwrap(), SystemClock.now());
    NetworkBroker::new(&network, token).await.join(&owner.app_id, "sensor", "0004A30B001C0599", 1).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        let Told::Set(device) = broker.told().await else { panic!("devices are set") };
        told.push((device.dev_id.clone(), hex::encode_upper(&device.dev_eui)));
    }
    let expected =
        [("dev-1", DEV_EUI), ("sensor", "0000000000000000"), ("sensor-0004a30b001c0599", "0004A30B001C0599")];
    assert_eq!(told, expected.map(|(dev_id, dev_eui)| (dev_id.to_owned(), dev_eui.to_owned())));
    network.stack.stop().await;
}

// Conformance: SetDevice, DeleteDevice and RegisterApplicationHandler at the network broker
#[tokio::test(flavor = "multi_thread")]
async fn the_network_broker_learns_of_applications() {
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let first = network.owner("first").await;
    let broker = FakeBroker::start(&network, "first", BROKER).await;
    let second = network.owner("second").await;
    assert_eq!(broker.told().await, Told::Application(second.app_id.to_string()));
    add_device(&first, "dev-1").await;
    assert_eq!(broker.told().await, Told::Set(Box::new(device_1(first.app_id.as_str()))));
    network.stack.stop().await;
}
