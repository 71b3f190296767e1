//! A network broker that runs on code that The Things Network generated.

use std::{path::Path, process::Stdio};

use api::discovery::Announcement;
use serde_json::json;
use server::identity::Identity;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::python_sdk::{PROGRAMS, full_key, python};
use crate::{
    devices::joins::{self, APP_KEY, network_broker::component_token},
    harness::{MESSAGE_TIMEOUT, Network, next},
    networks::network_brokers::messages::{APP_EUI, DEV_EUI, Kind, add_device, frame},
};

const BROKER: &str = "broker-1";
const JOIN_EUI: &str = "0004A30B001C0599";

// Conformance: A network broker on the code that v2 generated
// Conformance: An access key without issuer is one of the only account service that is trusted
#[tokio::test(flavor = "multi_thread")]
async fn a_network_broker_with_the_generated_code_of_v2_works() {
    let Some(python) = python() else { return };
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("broker-user").await;
    let handler = network.announcement().await;
    let private_key = network.dir.path().join("broker.pem");
    let identity = Identity::load_or_create(&private_key).unwrap();
    let mut command = tokio::process::Command::from(python.command(&Path::new(PROGRAMS).join("broker.py")));
    command.envs([
        ("HANDLER", network.stack.handler_http_address().unwrap().to_string()),
        ("HANDLER_ID", handler.id.clone()),
        ("HANDLER_PUBLIC_KEY", handler.public_key.clone()),
        ("BROKER_ID", BROKER.to_owned()),
        ("PRIVATE_KEY", private_key.display().to_string()),
        ("APP_ID", owner.app_id.to_string()),
        ("ACCESS_KEY", String::from(full_key(&network, &owner).await)),
        ("UPLINK", hex::encode(frame(Kind::Confirmed, 3))),
        ("TEMPLATE", "60F17DBE492014000100000000".to_owned()),
        ("APP_EUI", APP_EUI.to_owned()),
        ("DEV_EUI", DEV_EUI.to_owned()),
        ("JOIN_EUI", JOIN_EUI.to_owned()),
    ]);
    let mut broker = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut printed = BufReader::new(broker.stdout.take().unwrap()).lines();
    let mut line = async || {
        let line = tokio::time::timeout(MESSAGE_TIMEOUT, printed.next_line()).await.expect("it goes on");
        line.unwrap().expect("it does not fail")
    };

    let net_address = format!("127.0.0.1:{}", line().await);
    // Nothing listens there as a device manager, so devices come before the announcement.
    add_device(&owner, "dev-1").await;
    joins::set(&owner, "joiner", JOIN_EUI, APP_KEY).await;
    let token = component_token(&network, "broker-user", "brokers", &BROKER.parse().unwrap()).await;
    let announcement = Announcement {
        id: BROKER.to_owned(),
        service_name: "broker".to_owned(),
        net_address,
        public_key: identity.public_key_pem().to_owned(),
        ..Announcement::default()
    };
    network.discovery().announce(&token, announcement).await.unwrap();
    assert_eq!(line().await, "subscribed");

    let mut listener = owner.listen(&network).await;
    let downlink = json!({"port": 5, "payload_raw": "Zmlyc3Q="}).to_string();
    listener.publish(&format!("{}/devices/dev-1/down", owner.app_id), downlink.as_bytes()).await;
    while next(&mut listener).await.0 != "dev-1/events/down/scheduled" {}
    broker.stdin.take().unwrap().write_all(b"go\n").await.unwrap();
    let (topic, message) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &message["payload_raw"]), ("dev-1/up", &json!("dXAz")));
    assert_eq!(&line().await[..18], "60F17DBE4920140005");
    assert_eq!(line().await, "joined");
    while next(&mut listener).await.0 != "joiner/events/activations" {}
    assert_eq!(line().await, "done");
    assert!(broker.wait().await.unwrap().success());
    network.stack.stop().await;
}
