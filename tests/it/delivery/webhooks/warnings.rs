//! Warnings of payload functions, as webhooks get them.

use serde_json::json;

use super::{receiver::Receiver, set, start};

/// As many as a message may have.
const WARNINGS: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn all_warnings_of_an_uplink_are_one_event() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("warned").await;
    let decoder = "function decodeUplink(input) {
        const warnings = Array.from({ length: input.bytes[0] }, (_, n) => `warning ${n}`);
        return { data: { n: input.bytes[0] }, warnings };
    }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    set(&network, &owner, "my-hook", json!({"url": receiver.url(), "events": ["up", "up/errors"]})).await;
    for warnings in [40, 1, 0] {
        owner.simulate("dev-1", &[warnings], 1).await.unwrap();
    }
    let mut events = Vec::new();
    while events.len() < 5 {
        let request = receiver.next().await;
        let (event, mut body) = (request.header("airlock-event").to_owned(), request.json());
        body.as_object_mut().unwrap().remove("time");
        events.push((event, body));
    }
    assert_eq!(Vec::from_iter(events.iter().map(|(event, _)| event)), ["up", "up/errors", "up", "up/errors", "up"]);
    let errors = Vec::from_iter((0..WARNINGS).map(|number| format!("warning {number}")));
    assert_eq!(events[1].1, json!({"error": "warning 0", "errors": errors, "functions_version": 1}));
    assert_eq!(events[3].1, json!({"error": "warning 0", "functions_version": 1}), "a single one has no list");
    network.stack.stop().await;
}
