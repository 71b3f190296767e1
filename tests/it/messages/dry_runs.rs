//! Dry runs and simulated uplinks over gRPC and HTTP.

use api::{
    handler::{Application, DryDownlinkMessage, DryUplinkMessage, FunctionFailure},
    history::{Query, Record},
    status::detail,
};
use client::handler::HandlerClient;
use serde_json::{Value, json};
use tonic::Code;
use types::{Credential, Kind, Kinded};

use crate::harness::{Network, Owner, next};

const DECODER: &str =
    "function Decoder(bytes, port) {\n  console.log('got', bytes.length);\n  return { n: bytes[0] };\n}";
const THROWS: &str = "function Decoder(bytes) {\n  console.log('before');\n  throw new Error('no sensor');\n}";

async fn post(network: &Network, owner: &Owner, path: &str, body: Value) -> (u16, Value) {
    owner.ask(&network.handler_http(), "POST", path, body).await
}

/// Removes the cost, which differs between machines, and returns whether there was one.
fn take_cost(response: &mut Value) -> bool {
    let members = response.as_object_mut().unwrap();
    let cost = ["fuel", "microseconds"].map(|name| members.remove(name));
    cost.iter().all(|number| number.as_ref().and_then(Value::as_str).is_some_and(|text| text.parse::<u64>().is_ok()))
}

// Conformance: Dry runs of downlinks; device addresses are assigned
// Conformance: DryUplink, DryDownlink, SimulateUplink over gRPC and HTTP
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_over_http_store_nothing() {
    let network = Network::start().await;
    let owner = network.owner("trying").await;
    let invalid = "function Validator() { return false; }";
    for (app, expected) in [
        (json!({ "decoder": DECODER }), json!({"fields": "{\"n\":7}", "valid": true})),
        (json!({ "decoder": DECODER, "validator": invalid }), json!({"fields": "{\"n\":7}"})),
    ] {
        let (status, mut response) =
            post(&network, &owner, "/dry-uplink", json!({"payload": "Bwg=", "port": 1, "app": app})).await;
        assert_eq!(status, 200, "{response}");
        assert!(take_cost(&mut response), "{response}");
        let mut expected = expected;
        expected["payload"] = "Bwg=".into();
        expected["logs"] = json!([{"function": "Decoder", "fields": ["\"got\"", "2"]}]);
        assert_eq!(response, expected);
    }
    let normalizing = "function decodeUplink(input) { return { data: { t: input.bytes[0] } }; }
        function normalizeUplink(input) { return { data: [{ air: { temperature: input.data.t } }] }; }";
    let body = json!({"payload": "Bw==", "port": 1, "app": {"decoder": normalizing}});
    let (status, response) = post(&network, &owner, "/dry-uplink", body).await;
    let normalized = response["normalized"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    assert_eq!((status, normalized), (200, Some(json!([{"air": {"temperature": 7}}]))), "{response}");
    let encoder = "function Encoder(fields) { return [fields.n, 2]; }";
    let body = json!({"fields": "{\"n\":7}", "port": 1, "app": {"encoder": encoder}});
    let (status, mut response) = post(&network, &owner, "/dry-downlink", body).await;
    assert!(status == 200 && take_cost(&mut response), "{status} {response}");
    assert_eq!(response, json!({"payload": "BwI="}));
    assert_eq!(owner.handler.get_application(&owner.app_id).await.unwrap().decoder, "");
    network.stack.stop().await;
}

// Conformance: DryUplink, DryDownlink, SimulateUplink over gRPC and HTTP
#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_uplink_returns_what_was_published() {
    let network = Network::start().await;
    let owner = network.owner("simulating").await;
    owner.add_device("dev-1").await;
    // What depends on the time differs between two runs.
    let decoder = "function decodeUplink(input) {
  console.log('port', input.fPort);
  if (!input.bytes[0]) throw new Error('no sensor');
  return { data: { now: Date.now() }, warnings: ['low'] };
}";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    let mut listener = owner.listen(&network).await;
    let uplink = |payload: &str| json!({"payload": payload, "port": 3});
    let (status, mut response) = post(&network, &owner, "/devices/dev-1/simulate", uplink("AQ==")).await;
    assert!(status == 200 && take_cost(&mut response), "{status} {response}");
    let (topic, published) = next(&mut listener).await;
    let fields: Value = serde_json::from_str(response["outcome"]["fields"].as_str().unwrap()).unwrap();
    assert_eq!((topic.as_str(), &published["payload_fields"]), ("dev-1/up", &fields));
    let logs = json!([{"function": "Decoder", "fields": ["\"port\"", "3"]}]);
    assert_eq!((&response["outcome"]["logs"], &response["outcome"]["warnings"]), (&logs, &json!(["low"])));

    let (status, response) = post(&network, &owner, "/devices/dev-1/simulate", uplink("AA==")).await;
    let failure = response["outcome"]["failure"].as_str().unwrap_or_default();
    assert!(status == 200 && failure.contains("no sensor") && failure.contains("\n3 |"), "{response}");
    assert_eq!(response["outcome"]["fields"], Value::Null);

    // A key of the application may publish, but not read the functions.
    let key = Owner { token: Credential::Key(owner.key_with(&network, "messages:up:w").await), ..owner };
    let (status, mut response) = post(&network, &key, "/devices/dev-1/simulate", uplink("AQ==")).await;
    assert!(status == 200 && take_cost(&mut response), "{status} {response}");
    assert_eq!(response, json!({}));
    network.stack.stop().await;
}

// Conformance: A dry run of a stored uplink gets its time, random numbers and bytes
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_uplink_runs_again_with_its_time_and_its_random_numbers() {
    let network = Network::start().await;
    let owner = network.owner("again").await;
    owner.add_device("dev-1").await;
    let decoder = "function Decoder(bytes, port) {
  return { now: Date.now(), random: Math.random(), sum: bytes[0] + port };
}";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    owner.simulate("dev-1", &[7, 8], 3).await.unwrap();
    let stored = newest(&owner, "up").await;

    let body = json!({"record": stored.id, "app": {"decoder": decoder}});
    let (status, response) = post(&network, &owner, "/dry-uplink", body).await;
    assert_eq!((status, &response["fields"]), (200, &json!(stored.fields)), "{response}");
    assert_eq!((&response["payload"], &response["fuel"]), (&json!("Bwg="), &json!(stored.fuel.to_string())));

    let app = Application { app_id: owner.app_id.to_string(), decoder: decoder.to_owned(), ..Default::default() };
    let again = DryUplinkMessage { app: Some(app), record: stored.id.clone(), ..Default::default() };
    let result = owner.handler.dry_uplink(again.clone()).await.unwrap();
    assert_eq!((result.fields, result.fuel, result.payload), (stored.fields.clone(), stored.fuel, vec![7, 8]));

    // The bytes alone do not say which random numbers there were.
    let alone = DryUplinkMessage { payload: vec![7, 8], port: 3, record: String::new(), ..again };
    let alone = owner.handler.dry_uplink(alone).await.unwrap().fields;
    let [before, alone] = [stored.fields, alone].map(|fields| serde_json::from_str::<Value>(&fields).unwrap());
    assert_eq!(before["sum"], alone["sum"]);
    assert_ne!(before["random"], alone["random"]);
    network.stack.stop().await;
}

// Conformance: A dry run of a stored uplink gets its time, random numbers and bytes
#[tokio::test(flavor = "multi_thread")]
async fn only_uplinks_run_again_and_for_those_who_may_read_them() {
    let network = Network::start().await;
    let (owner, stranger) = (network.owner("keeper").await, network.owner("curious").await);
    owner.add_device("dev-1").await;
    owner.simulate("dev-1", &[7], 1).await.unwrap();
    let (uplink, event) = (newest(&owner, "up").await.id, newest(&owner, "create").await.id);
    for (mut body, status, text) in [
        (json!({"record": uplink, "payload": "AQ=="}), 400, "send no others"),
        (json!({"record": uplink, "port": 1}), 400, "send no others"),
        (json!({"record": event}), 400, "the event create"),
        (json!({"record": "first"}), 400, "28 hexadecimal digits"),
        (json!({"record": "0196f3c2a1b40000002a00000001"}), 404, "not found"),
    ] {
        body["app"] = json!({ "decoder": DECODER });
        let (told, response) = post(&network, &owner, "/dry-uplink", body.clone()).await;
        let error = response["error"].as_str().unwrap_or_default();
        assert!(told == status && error.contains(text), "{body}: {told} {response}");
    }
    let body = json!({"record": uplink, "app": {"decoder": DECODER}});
    assert_eq!(post(&network, &stranger, "/dry-uplink", body.clone()).await.0, 404, "it is of another application");

    let announcement = network.announcement().await;
    let app = Application { app_id: owner.app_id.to_string(), decoder: DECODER.to_owned(), ..Default::default() };
    for (right, missing) in [("settings", "messages:up:r"), ("messages:up:r", "settings")] {
        let key = Credential::Key(owner.key_with(&network, right).await);
        let handler = HandlerClient::connect(&announcement, key).unwrap();
        let again = DryUplinkMessage { app: Some(app.clone()), record: uplink.clone(), ..Default::default() };
        let error = handler.dry_uplink(again).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Denied, "{right}: {error}");
        assert!(error.to_string().contains(missing), "{right}: {error}");
    }
    network.stack.stop().await;
}

async fn newest(owner: &Owner, kind: &str) -> Record {
    let query = Query { app_id: owner.app_id.to_string(), kind: kind.to_owned(), ..Query::default() };
    owner.handler.list_records(query).await.unwrap().records.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn lone_surrogates_survive_dry_runs_in_both_directions() {
    let network = Network::start().await;
    let owner = network.owner("surrogates").await;
    let fields = r#"{"\ud800":"\udfff"}"#;
    let decoder = r"function Decoder() { console.log('\udbff'); return { '\ud800': '\udfff' }; }";
    let body = json!({"payload": "AQ==", "app": {"decoder": decoder}});
    let (status, response) = post(&network, &owner, "/dry-uplink", body).await;
    assert_eq!((status, &response["fields"]), (200, &json!(fields)), "{response}");
    assert_eq!(response["logs"][0]["fields"], json!([r#""\udbff""#]));

    let encoder =
        r"function Encoder(fields) { var unit = fields['\ud800'].charCodeAt(0); return [unit >> 8, unit & 255]; }";
    let body = json!({"fields": fields, "port": 1, "app": {"encoder": encoder}});
    let (status, response) = post(&network, &owner, "/dry-downlink", body).await;
    assert_eq!((status, &response["payload"]), (200, &json!("3/8=")), "{response}");
    network.stack.stop().await;
}

// Conformance: A failing dry run reports function, line, kind, logs and cost
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_dry_run_returns_logs_line_kind_and_cost() {
    let network = Network::start().await;
    let owner = network.owner("failing").await;
    let body = json!({"payload": "AQ==", "app": {"decoder": THROWS}});
    let (status, mut response) = post(&network, &owner, "/dry-uplink", body).await;
    assert!(status == 400 && take_cost(&mut response), "{status} {response}");
    let text = response["error"].as_str().unwrap();
    assert!(text.contains("no sensor") && response["message"] == text && response["code"] == 3, "{response}");
    for (member, expected) in [
        ("function", json!("decoder")),
        ("kind", json!("thrown")),
        ("line", json!(3)),
        ("logs", json!([{"function": "Decoder", "fields": ["\"before\""]}])),
    ] {
        assert_eq!(response[member], expected, "{member}: {response}");
    }
    assert!(response["excerpt"].as_str().unwrap().starts_with("3 |   throw new Error('no sensor');"), "{response}");

    let mut stub = network.manager().await;
    let app = |decoder: &str| Application {
        app_id: owner.app_id.to_string(),
        decoder: decoder.to_owned(),
        ..Default::default()
    };
    let noisy = |character: char| {
        let text = THROWS
            .replace("'before'", &format!("'{character}'.repeat(500)"))
            .replace("no sensor", &character.to_string().repeat(400));
        text.replace("console", "for (let n = 0; n < 9; n++) console")
    };
    let (noisy, noisy_in_three_bytes) = (noisy('x'), noisy('温'));
    for (decoder, kind, line, logs) in [
        (THROWS, "thrown", 3, 1),
        ("function Decoder() {\n  while (true) {}\n}", "fuel", 2, 0),
        ("function Decoder( {", "syntax", 1, 0),
        // Not all logs fit into the header.
        (&noisy, "thrown", 3, 2),
        (&noisy_in_three_bytes, "thrown", 3, 1),
    ] {
        let message = DryUplinkMessage { payload: vec![1], app: Some(app(decoder)), port: 1, ..Default::default() };
        let status = stub.dry_uplink(owner.sign(message)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let failure: FunctionFailure = detail(&status).unwrap();
        let told = (failure.function.as_str(), failure.kind.as_str(), failure.line, failure.logs.len());
        assert_eq!(told, ("decoder", kind, line, logs), "{failure:?}");
        assert_eq!(failure.fuel > 0, kind != "syntax", "{failure:?}");
    }
    network.stack.stop().await;
}

// Conformance: DryUplink, DryDownlink, SimulateUplink over gRPC and HTTP
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_check_credentials_and_input() {
    let network = Network::start().await;
    let (owner, stranger) = (network.owner("owner").await, network.owner("stranger").await);
    for (path, body, text) in [
        ("/dry-uplink", json!({"payload": "AQ==", "app": {"app_id": "stranger-app"}}), "the path says"),
        ("/dry-uplink", json!({"payload": "AQ", "app": {}}), "base64"),
        ("/dry-uplink", json!({"payload": "AQ==", "port": 256, "app": {}}), "0 to 255"),
        ("/dry-uplink", json!({"payload": "AQ==", "app": {"payload_format": "morse"}}), "unknown payload format"),
        ("/dry-downlink", json!({"app": {}}), "Neither Fields nor Payload"),
        ("/dry-downlink", json!({"app": {}, "fields": "{}", "payload": "AQ=="}), "Both Fields and Payload"),
        ("/dry-downlink", json!({"app": {}, "fields": "{"}), "Fields not valid"),
    ] {
        let (status, response) = post(&network, &owner, path, body.clone()).await;
        assert!(
            status == 400 && response["error"].as_str().unwrap().contains(text),
            "{path} {body}: {status} {response}"
        );
    }
    let app = Application { app_id: owner.app_id.to_string(), decoder: DECODER.to_owned(), ..Default::default() };
    let uplink = DryUplinkMessage { payload: vec![1], app: Some(app.clone()), port: 1, ..Default::default() };
    let downlink = DryDownlinkMessage { payload: vec![1], app: Some(app), ..Default::default() };
    let mut stub = network.manager().await;
    let codes = [
        stub.dry_uplink(uplink.clone()).await.unwrap_err().code(),
        stub.dry_uplink(stranger.sign(uplink)).await.unwrap_err().code(),
        stub.dry_downlink(downlink.clone()).await.unwrap_err().code(),
        stub.dry_downlink(stranger.sign(downlink)).await.unwrap_err().code(),
    ];
    use Code::{PermissionDenied, Unauthenticated};
    assert_eq!(codes, [Unauthenticated, PermissionDenied, Unauthenticated, PermissionDenied]);
    network.stack.stop().await;
}
