//! Shadow mode compares with what The Things Stack decoded.

use bridge::{Observation, ObservedResult, Running};
use serde_json::{Value, json};
use testing::{soon, things_stack_uplink};
use things_stack::ThingsStackShadow;
use tokio::sync::mpsc;

use crate::{
    environment::environment,
    harness::{Network, topic},
};

#[tokio::test]
async fn both_results_are_observed_and_nothing_is_published() {
    let Some(network) = Network::start().await else { return };
    let script =
        "function decodeUplink(input) { if (input.bytes[0] > 1) throw new Error('no'); return {data: {n: 1}} }";
    network.default_script(script, "");
    network.device("dev1");
    let (sender, mut observed) = mpsc::unbounded_channel();
    let observe = move |observation: Observation| sender.send(observation).unwrap();
    // It needs no broker for applications.
    let mut settings = network.settings.clone();
    settings.to.url = String::new();
    let shadow = ThingsStackShadow::start(&settings, environment(network.dir.path(), "shadow"), observe).await.unwrap();
    soon("the shadow", shadow.ready()).await;
    let (mut things_stack, mut application) = (network.things_stack().await, network.application().await);
    let mut counter = 0;
    for (payload, theirs) in [("AQ==", json!({"n": 1.0})), ("AQ==", Value::Null), ("Ag==", json!({"n": 2.0}))] {
        counter += 1;
        let mut uplink = things_stack_uplink("dev1", counter, payload);
        uplink["uplink_message"]["decoded_payload"] = theirs.clone();
        things_stack.publish(&topic("dev1", "up"), uplink.to_string()).await;
        let found = soon("an observation", observed.recv()).await.unwrap();
        assert!(found.profile_name.contains("sensors@lab"), "{}", found.profile_name);
        assert_eq!(found.application.id, "sensors@lab");
        match (&found.theirs, theirs.is_null()) {
            (ObservedResult::Object(object), false) => {
                assert_eq!(serde_json::from_str::<Value>(object.get()).unwrap(), theirs);
            }
            (ObservedResult::Nothing, true) => {}
            other => panic!("{other:?}"),
        }
        match (payload, &found.ours) {
            ("AQ==", ObservedResult::Object(object)) => assert_eq!(object.get(), r#"{"n":1}"#),
            ("Ag==", ObservedResult::Failed(reason)) => assert!(reason.contains("no"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    // Nothing of it was published: this comes first.
    application.publish(&topic("dev1", "join"), "{}").await;
    assert_eq!(application.next().await.topic, topic("dev1", "join"));
    shadow.stop().await;
}
