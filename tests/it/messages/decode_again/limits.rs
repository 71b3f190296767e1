//! Stored uplinks run again within the limits that they had, whichever the operator has set since.

use airlock::{serve::Stack, settings::Settings};
use client::{Trust, handler::HandlerClient};
use serde_json::{Value, json};

use super::{records, report};
use crate::harness::{Network, Owner, environment};

/// Uses the more fuel the greater the first byte is.
const BUSY: &str = "function Decoder(bytes) { for (var i = 0; i < bytes[0] * 200; i++) {} return { turns: i }; }";

/// Gives the functions of the application so much fuel for each uplink.
fn set_fuel(settings: &mut Settings, fuel: u64) {
    let limits = serde_json::from_value(json!({ "fuel": fuel })).unwrap();
    settings.handler.sandbox_limits.insert("past-app".parse().unwrap(), limits);
}

/// Starts the services again, after the operator has set other limits.
async fn restart(network: Network, owner: Owner, fuel: u64) -> (Network, Owner) {
    let Network { stack, dir } = network;
    let mut settings = stack.settings().clone();
    stack.stop().await;
    set_fuel(&mut settings, fuel);
    let network = Network { stack: Stack::start(settings, None, environment()).await.unwrap(), dir };
    let address = network.stack.handler_http_address().unwrap().to_string();
    let handler = HandlerClient::connect_to(&address, &Trust::Plaintext, owner.token.clone()).unwrap();
    (network, Owner { handler, ..owner })
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test(flavor = "multi_thread")]
async fn uplinks_run_again_within_the_limits_that_they_had() {
    let network = Network::with(|settings| set_fuel(settings, 200_000)).await;
    let owner = network.owner("past").await;
    owner.add_device("warm").await;
    owner.set_functions([BUSY, "", ""]).await.unwrap();
    owner.simulate("warm", &[1], 1).await.unwrap();
    owner.simulate("warm", &[200], 1).await.unwrap();

    let (network, owner) = restart(network, owner, 200_000_000).await;
    assert_eq!(report(&network, &owner, json!({"verify": true})).await, json!({"examined": 2, "equal": 2}));
    let seen = report(&network, &owner, json!({"recorded_limits": true})).await;
    assert_eq!(seen, json!({"examined": 2, "equal": 1, "still_failing": 1}));
    // A preview compares what both functions do within the limits of now.
    let preview = report(&network, &owner, json!({"compare_live": true})).await;
    assert_eq!(preview, json!({"examined": 2, "equal": 2}));
    let corrected = report(&network, &owner, json!({"write": true})).await;
    assert_eq!(corrected, json!({"examined": 2, "equal": 1, "newly_decoded": 1, "written": 1}));
    let again = report(&network, &owner, json!({"recorded_limits": true})).await;
    assert_eq!(again, seen, "it is compared with what came, not with a correction within other limits");
    owner.simulate("warm", &[200], 1).await.unwrap();
    limits_are_shown(&network, &owner).await;

    let (network, owner) = restart(network, owner, 300_000).await;
    let lower = json!({"fuel": {"count": 1, "then": 200_000_000, "now": 300_000}});
    let expected = json!({"examined": 3, "equal": 2, "not_repeatable": 1, "limited": 1, "lower_limits": lower});
    assert_eq!(report(&network, &owner, json!({"verify": true})).await, expected);
    network.stack.stop().await;
}

/// Records have the limits of their functions, and versions those of when they were made.
async fn limits_are_shown(network: &Network, owner: &Owner) {
    let shown = async |path: &str| {
        let url = format!("{}/applications/{}/{path}", network.handler_http(), owner.app_id);
        let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let records = records(network, owner).await;
    // The third is the correction of the second.
    for (record, fuel) in [(&records[0], 200_000), (&records[2], 200_000_000), (&records[3], 200_000_000)] {
        let whole = shown(&format!("history/{}", record["id"].as_str().unwrap())).await;
        assert_eq!((&whole["limits"]["fuel"], &record["limits"]), (&json!(fuel), &Value::Null), "{whole}");
    }
    for path in ["versions/1", "versions"] {
        let version = shown(path).await;
        let version = version["versions"].get(0).unwrap_or(&version);
        assert_eq!((&version["limits"]["fuel"], &version["dialect"]), (&json!(200_000), &json!("v2")), "{version}");
        assert_eq!(version["limits"]["heap_bytes_max"], 12 << 20, "and all others");
    }
}
