//! Devices that are brought to network servers without them, and released ones that are deleted there.

use api::lorawan::Device;
use testing::RedisProcess;

use super::{
    BROKER,
    fake_broker::{FakeBroker, Told},
    messages::{APP_EUI, DEV_EUI, add_device},
    registration::device_1,
};
use crate::harness::{Network, airlock, printed, run};

// Conformance: Devices are brought to network servers without them
#[tokio::test(flavor = "multi_thread")]
async fn devices_that_were_there_first_are_brought_to_a_network_broker_that_appears() {
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("early").await;
    add_device(&owner, "dev-1").await;
    let broker = FakeBroker::start(&network, "early", BROKER).await;
    broker.wait_for_handler().await;
    assert_eq!(broker.told().await, Told::Set(Box::new(device_1(owner.app_id.as_str()))));
    network.stack.stop().await;
}

// Conformance: Devices are brought to network servers without them
#[tokio::test(flavor = "multi_thread")]
async fn devices_are_brought_again_after_the_network_server_lost_them() {
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("loser").await;
    let app_id = owner.app_id.as_str();
    add_device(&owner, "dev-1").await;
    let broker = FakeBroker::start(&network, "loser", BROKER).await;
    broker.wait_for_handler().await;
    broker.asked().await;
    assert_eq!(broker.told().await, Told::Set(Box::new(device_1(app_id))));
    // One that it still has keeps its counter, and one of another application is left alone.
    let counting = Device { f_cnt_up: 7, ..device_1(app_id) };
    let foreign = Device { app_id: "somebody-else".to_owned(), ..device_1(app_id) };
    for kept in [counting, foreign] {
        broker.keep_devices(&[kept]).await;
        broker.restart().await;
        broker.wait_for_handler().await;
        broker.asked().await;
    }
    // An earlier session is replaced, other settings keep the counter, and a lost device is brought.
    let earlier = Device { dev_addr: vec![0x26, 0, 0, 1], f_cnt_up: 7, ..device_1(app_id) };
    let unchecked = Device { disable_f_cnt_check: true, f_cnt_up: 7, ..device_1(app_id) };
    let counting = Device { f_cnt_up: 7, ..device_1(app_id) };
    for (kept, brought) in [(vec![earlier], device_1(app_id)), (vec![unchecked], counting), (vec![], device_1(app_id))]
    {
        broker.keep_devices(&kept).await;
        broker.restart().await;
        broker.wait_for_handler().await;
        broker.asked().await;
        assert_eq!(broker.told().await, Told::Set(Box::new(brought)));
    }
    broker.restart().await;
    broker.wait_for_handler().await;
    broker.asked().await;
    assert!(broker.was_told_nothing().await, "only one was missing");
    network.stack.stop().await;
}

// Conformance: Devices are brought to network servers without them
#[tokio::test(flavor = "multi_thread")]
async fn euis_that_the_operator_releases_are_deleted_in_the_network_server() {
    let Some(redis) = RedisProcess::start() else { return };
    let network =
        Network::on(&redis, |settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("releaser").await;
    let broker = FakeBroker::start(&network, "releaser", BROKER).await;
    add_device(&owner, "dev-1").await;
    broker.wait_for_handler().await;
    assert_eq!(broker.told().await, Told::Set(Box::new(device_1(owner.app_id.as_str()))));
    let mut command = airlock(network.dir.path());
    command.args(["handler", "euis", "release", APP_EUI, DEV_EUI, "--yes"]);
    command.env("AIRLOCK_STORE__REDIS__URLS", format!("[{:?}]", redis.url()));
    command.env("AIRLOCK_HANDLER__BROKERS", format!("[{BROKER:?}]"));
    let said = printed(&run(&mut command, ""));
    assert!(said.contains("deletes it in the network servers"), "{said}");
    broker.restart().await;
    broker.wait_for_handler().await;
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    network.stack.stop().await;
}
