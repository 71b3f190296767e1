//! Hostile functions, seen from outside: what their application observes, and that they harm no other.
//!
//! The cases are those of `runtime/tests/it/hostile/README.md` that involve more than the sandbox.

use api::handler::{Application, DryDownlinkMessage, DryUplinkMessage};
use serde_json::{Value, json};
use tonic::Code;

use crate::harness::{Network, Owner, next};

const GOOD: &str = "function Decoder(bytes) { return { n: bytes[0] }; }";
const BOMB: &str = "var a = []; while (true) a.push(new ArrayBuffer(65536));";

/// The case, the decoder, converter and validator, and the text of the event.
const ACTS: &[(&str, [&str; 3], &str)] = &[
    ("SBX-001", ["function Decoder() { while (true) {} }", "", ""], "the decoder used up its fuel"),
    ("SBX-002", [GOOD, "function Converter() { while (true) {} }", ""], "the converter used up its fuel"),
    ("SBX-002", [GOOD, "", "function Validator() { while (true) {} }"], "the validator used up its fuel"),
    ("SBX-022", ["function Decoder() { var a = []; while (true) a.push(new ArrayBuffer(65536)); }", "", ""], "memory"),
    ("SBX-029", ["function Decoder() { return Decoder(); }", "", ""], "the decoder called itself too deeply"),
    ("SBX-016", ["async function Decoder() { return {}; }", "", ""], "not a promise"),
    ("SBX-033", ["function Decoder() { var a = {}; a.a = a; return a; }", "", ""], "contains itself"),
    ("SBX-048", ["function Decoder() { return { a: 'x'.repeat(20000) }; }", "", ""], "more than 16"),
    ("SBX-050", ["function Decoder() { throw null; }", "", ""], "the decoder failed (line 1, column 22): null"),
    ("SBX-050", ["function Decoder() { throw { toString: 1 }; }", "", ""], "the decoder failed (line 1, column 22): {"),
    ("SBX-052", ["function Decoder() {\n\n  null.x;\n}", "", ""], "the decoder failed (line 3, column"),
    ("SBX-042", [GOOD, "", "function Validator() { return 'true'; }"], "the validator must return a boolean"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_function_loses_only_its_own_fields() {
    let network = Network::start().await;
    let (hostile, innocent) = (network.owner("hostile").await, network.owner("innocent").await);
    let mut heard = hostile.listen(&network).await;
    let mut heard_elsewhere = innocent.listen(&network).await;
    hostile.add_device("dev-1").await;
    innocent.add_device("dev-1").await;
    innocent.set_functions([GOOD, "", ""]).await.unwrap();
    for (case, functions, told) in ACTS {
        hostile.set_functions(*functions).await.unwrap();
        hostile.simulate("dev-1", &[1, 2], 1).await.unwrap();
        let (topic, uplink) = next(&mut heard).await;
        assert_eq!((topic.as_str(), &uplink["payload_raw"]), ("dev-1/up", &json!("AQI=")), "{case}");
        assert_eq!(uplink["payload_fields"], Value::Null, "{case}");
        let (topic, event) = next(&mut heard).await;
        assert_eq!(topic, "dev-1/events/up/errors", "{case}: {event}");
        let error = event["error"].as_str().unwrap();
        assert!(error.starts_with("Unable to decode payload fields: ") && error.contains(told), "{case}: {error}");
        assert!(error.len() < 1200 && !error.contains(['/', '\n']), "{case}: {error}");

        innocent.simulate("dev-1", &[7], 1).await.unwrap();
        assert_eq!(next(&mut heard_elsewhere).await.1["payload_fields"], json!({"n": 7}), "after {case}");
    }
    // SBX-074: the failures have no consequences for the application.
    hostile.set_functions([GOOD, "", ""]).await.unwrap();
    hostile.simulate("dev-1", &[9], 1).await.unwrap();
    assert_eq!(next(&mut heard).await.1["payload_fields"], json!({"n": 9}));
    network.stack.stop().await;
}

/// SBX-003, SBX-006, SBX-020, SBX-022, SBX-029, SBX-060
#[tokio::test(flavor = "multi_thread")]
async fn refuses_functions_that_cannot_be_loaded() {
    let network = Network::start().await;
    let owner = network.owner("refused").await;
    owner.set_functions([GOOD, "", ""]).await.unwrap();
    // Two bytes each, so that counting characters would accept it.
    let long = format!("{GOOD}//{}", "é".repeat(262_144));
    for (case, text, told) in [
        ("SBX-003", format!("while (true) {{}} {GOOD}"), "used up its fuel"),
        ("SBX-006", format!("/^(a+)+$/.test('a'.repeat(40) + '!'); {GOOD}"), "used up its fuel"),
        ("SBX-022", format!("{BOMB} {GOOD}"), "memory"),
        ("SBX-029", format!("(function f() {{ f(); }})(); {GOOD}"), "called itself too deeply"),
        ("SBX-060", format!("import fs from 'fs'; {GOOD}"), "cannot import 'fs': only 'buffer' can be imported"),
        ("SBX-020", long, "524288 are allowed"),
    ] {
        let mut manager = network.manager().await;
        for application in [
            Application { decoder: text.clone(), ..application(&owner) },
            Application { decoder: GOOD.to_owned(), encoder: text, ..application(&owner) },
        ] {
            let status = manager.set_application(owner.sign(application)).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{case}: {status}");
            assert!(status.message().contains(told), "{case}: {status}");
        }
    }
    assert_eq!(owner.handler.get_application(&owner.app_id).await.unwrap().decoder, GOOD);
    network.stack.stop().await;
}

/// SBX-004
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_have_the_same_limits() {
    let network = Network::start().await;
    let owner = network.owner("dry").await;
    let mut manager = network.manager().await;
    for (body, told) in [
        ("while (true) {}", "used up its fuel"),
        (BOMB, "memory"),
        ("(function f() { f(); })();", "called itself too deeply"),
        ("throw new Error('mine');", "failed (line 1, column"),
        ("return 1;", "must return"),
    ] {
        let up = Application { decoder: format!("function Decoder() {{ {body} }}"), ..application(&owner) };
        let up = DryUplinkMessage { payload: vec![1], app: Some(up), port: 1, ..Default::default() };
        let status = manager.dry_uplink(owner.sign(up)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{body}: {status}");
        assert!(status.message().contains("decoder") && status.message().contains(told), "{body}: {status}");

        let status = manager.dry_downlink(owner.sign(downlink(&owner, body, "{}"))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{body}: {status}");
        assert!(status.message().contains("encoder") && status.message().contains(told), "{body}: {status}");
    }
    let good = manager.dry_downlink(owner.sign(downlink(&owner, "return [1];", "{}"))).await.unwrap();
    assert_eq!(good.into_inner().payload, [1]);
    network.stack.stop().await;
}

/// SBX-034
#[tokio::test(flavor = "multi_thread")]
async fn refuses_fields_that_are_too_deep_or_too_long() {
    let network = Network::start().await;
    let owner = network.owner("deep").await;
    let mut manager = network.manager().await;
    let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(20_000));
    for fields in [nested(32), nested(127), nested(100_000), long, "[]".to_owned(), "{".to_owned()] {
        let asked = owner.sign(downlink(&owner, "return [1];", &fields));
        let status = manager.dry_downlink(asked).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    let asked = owner.sign(downlink(&owner, "return [1];", &nested(31)));
    assert_eq!(manager.dry_downlink(asked).await.unwrap().into_inner().payload, [1]);
    network.stack.stop().await;
}

/// SBX-045, SBX-047, SBX-075
// Conformance: A dry run behaves like a live message
#[tokio::test(flavor = "multi_thread")]
async fn messages_and_dry_runs_return_the_same_fields() {
    let network = Network::start().await;
    let owner = network.owner("same").await;
    owner.add_device("dev-1").await;
    let mut manager = network.manager().await;
    let mut heard = owner.listen(&network).await;
    let decoder = "function Decoder(bytes) {
        bytes[0] = 255; bytes.push(1);
        return { a: 9007199254740993, b: -0, c: 1e308, d: 5e-324, e: 0.1 + 0.2, f: 1e21, g: [NaN] };
    }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    let asked = Application { decoder: decoder.to_owned(), ..application(&owner) };
    let asked = DryUplinkMessage { payload: vec![1, 2], app: Some(asked), port: 1, ..Default::default() };
    let dry = manager.dry_uplink(owner.sign(asked)).await.unwrap().into_inner();
    assert_eq!(dry.payload, [1, 2], "what the function does to its array is its own affair");
    let dry: Value = serde_json::from_str(&dry.fields).unwrap();
    assert_eq!((&dry["a"], &dry["d"], &dry["g"]), (&json!(9_007_199_254_740_992_u64), &json!(5e-324), &json!([null])));

    owner.simulate("dev-1", &[1, 2], 1).await.unwrap();
    let (_, uplink) = next(&mut heard).await;
    assert_eq!((&uplink["payload_fields"], &uplink["payload_raw"]), (&dry, &json!("AQI=")));
    let (topic, event) = next(&mut heard).await;
    assert_eq!(topic, "dev-1/events/up/errors");
    assert!(event["error"].as_str().unwrap().contains("`g[0]` is NaN"), "{event}");
    network.stack.stop().await;
}

/// SBX-077
#[tokio::test(flavor = "multi_thread")]
async fn payloads_of_every_length_and_every_port_are_delivered() {
    let network = Network::start().await;
    let owner = network.owner("sizes").await;
    owner.add_device("dev-1").await;
    owner.set_functions(["function Decoder(b, p) { return { l: b.length, p: p }; }", "", ""]).await.unwrap();
    let mut heard = owner.listen(&network).await;
    for (length, port) in [(0, 1), (1, 1), (242, 223), (255, 255)] {
        owner.simulate("dev-1", &vec![9; length], port).await.unwrap();
        let (_, uplink) = next(&mut heard).await;
        assert_eq!((&uplink["payload_fields"], &uplink["port"]), (&json!({"l": length, "p": port}), &json!(port)));
    }
    // Port 0 is reserved for MAC commands, which are not a payload.
    owner.simulate("dev-1", &[9], 0).await.unwrap();
    let (_, uplink) = next(&mut heard).await;
    assert_eq!((&uplink["payload_fields"], &uplink["payload_raw"]), (&json!({"l": 0, "p": 0}), &Value::Null));
    for (length, port) in [(256, 1), (1, 256)] {
        owner.simulate("dev-1", &vec![9; length], port).await.unwrap_err();
    }
    network.stack.stop().await;
}

/// SBX-021
#[tokio::test(flavor = "multi_thread")]
async fn saving_a_bomb_delays_no_other_application() {
    let network = Network::start().await;
    let (hostile, innocent) = (network.owner("hostile").await, network.owner("innocent").await);
    innocent.add_device("dev-1").await;
    let mut heard = innocent.listen(&network).await;
    let manager = network.manager().await;
    let saves: Vec<_> = (0..100)
        .map(|number| {
            let decoder = format!("while (true) {{}} {GOOD} // {number}");
            let asked = hostile.sign(Application { decoder, ..application(&hostile) });
            let mut manager = manager.clone();
            tokio::spawn(async move { manager.set_application(asked).await.unwrap_err().code() })
        })
        .collect();
    for number in 0..20 {
        innocent.set_functions([&format!("{GOOD} // {number}"), "", ""]).await.unwrap();
        innocent.simulate("dev-1", &[number], 1).await.unwrap();
        assert_eq!(next(&mut heard).await.1["payload_fields"], json!({"n": number}));
    }
    // While others call, few of them run at once; the rest waits for its turn, and is refused if that takes too long.
    for save in saves {
        let code = save.await.unwrap();
        assert!(matches!(code, Code::InvalidArgument | Code::Unavailable), "{code:?}");
    }
    network.stack.stop().await;
}

fn application(owner: &Owner) -> Application {
    Application { app_id: owner.app_id.to_string(), payload_format: "custom".to_owned(), ..Application::default() }
}

fn downlink(owner: &Owner, body: &str, fields: &str) -> DryDownlinkMessage {
    let encoder = format!("function Encoder() {{ {body} }}");
    let app = Application { encoder, ..application(owner) };
    DryDownlinkMessage { payload: Vec::new(), fields: fields.to_owned(), app: Some(app), port: 1 }
}
