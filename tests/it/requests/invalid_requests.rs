//! Invalid requests to the handler: the error has the right status and explains the problem, and nothing changes.

use api::handler::{ApplicationIdentifier, Device, DeviceIdentifier};
use serde_json::{Value, json};
use tonic::Code;
use types::Credential;

use crate::harness::{Network, Owner, device};

/// A request (method, path below the application, body) and its response (status, gRPC code, part of the error).
type Case = (&'static str, &'static str, &'static str, (u16, i64, &'static str));

const CASES: &[Case] = &[
    ("PUT", "", "{", (400, 3, "Body not valid")),
    ("PUT", "", "", (400, 3, "JSON object")),
    ("PUT", "", "[]", (400, 3, "JSON object")),
    ("PUT", "", r#"{"decoder": 1}"#, (400, 3, "Body not valid")),
    ("PUT", "", r#"{"app_id": "another-app"}"#, (400, 3, "the path says")),
    ("PUT", "", r#"{"decoder": "function Decoder(bytes) { return {; }"}"#, (400, 3, "line 1, column 35")),
    ("PUT", "", r#"{"decoder": "var nothing = 1;"}"#, (400, 3, "decoder")),
    ("PUT", "", r#"{"register_on_join_access_key": "nodot"}"#, (400, 3, "one dot")),
    ("GET", "/devices/no-such-device", "", (404, 5, "not found")),
    ("DELETE", "/devices/no-such-device", "", (404, 5, "not found")),
    ("GET", "/devices/UPPER", "", (400, 3, "lowercase letters")),
    ("GET", "/devices?limit=many", "", (400, 3, "whole numbers")),
    ("PUT", "/devices/dev-2", "{}", (400, 3, "lorawan_device is missing")),
    ("PUT", "/devices/dev-2", r#"{"dev_id": "dev-3", "lorawan_device": {}}"#, (400, 3, "the path says")),
    ("PUT", "/devices/dev-2", r#"{"lorawan_device": {"dev_id": "dev-3"}}"#, (400, 3, "must be those of the device")),
    ("PUT", "/devices/dev-2", r#"{"lorawan_device": {"dev_eui": "0102"}}"#, (400, 3, "16 hexadecimal digits")),
    ("PUT", "/devices/dev-2", r#"{"lorawan_device": {"dev_eui": "010203040506070G"}}"#, (400, 3, "16 hexadecimal")),
    ("PUT", "/devices/dev-2", r#"{"lorawan_device": {"app_key": "00"}}"#, (400, 3, "32 hexadecimal digits")),
    ("PUT", "/devices", r#"{"lorawan_device": {}}"#, (400, 3, "DevID not valid: can not be empty")),
    (
        "PUT",
        "/devices",
        r#"{"dev_id": "dev-2", "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-3"}}"#,
        (400, 3, "must be those of the device"),
    ),
    (
        "POST",
        "/devices",
        r#"{"dev_id": "dev-2", "lorawan_device": {"app_id": "other-app", "dev_id": "dev-2"}}"#,
        (400, 3, "must be those of the device"),
    ),
    (
        "POST",
        "/devices/dev-2",
        r#"{"lorawan_device": {"app_id": "careful-app", "dev_id": "Dev-2"}}"#,
        (400, 3, "must be those of the device"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        "{\"lorawan_device\": {\"app_id\": \"careful-app\", \"dev_id\": \"d\u{435}v-2\"}}",
        (400, 3, "must be those of the device"),
    ),
    ("PUT", "/devices", r#"{"app_id": "other-app", "dev_id": "dev-2"}"#, (400, 3, "the path says")),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"latitude": "NaN", "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#,
        (400, 3, "-90 to 90"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"latitude": 91, "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#,
        (400, 3, "-90 to 90"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"longitude": -181, "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#,
        (400, 3, "-180 to 180"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"altitude": 40000001, "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#,
        (400, 3, "-12,000 to 40,000,000"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2", "activation_constraints": "local,lunar"}}"#,
        (400, 3, "world, local"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        r#"{"attributes": {"": "x"}, "lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#,
        (400, 3, "keys have 1 to 64"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        concat!(
            r#"{"attributes": {"silent-after": "often"}, "#,
            r#""lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#
        ),
        (400, 3, "`silent-after` may be `off`; otherwise a time from 1m to 366d is needed"),
    ),
    (
        "PUT",
        "/devices/dev-2",
        concat!(
            r#"{"attributes": {"a": "", "b": "", "c": "", "d": "", "e": "", "f": ""}, "#,
            r#""lorawan_device": {"app_id": "careful-app", "dev_id": "dev-2"}}"#
        ),
        (400, 3, "at most 5"),
    ),
    ("POST", "/devices/dev-2/move", "{}", (400, 3, "AppID not valid: can not be empty")),
    ("POST", "/devices/dev-2/move", r#"{"app_id": "UPPER"}"#, (400, 3, "lowercase letters")),
    ("POST", "/devices/dev-2/move", r#"{"app_id": 7}"#, (400, 3, "Body not valid")),
    ("POST", "/devices/dev-2/move", r#"{"app_id": "other-app", "dev_id": "Dev-2"}"#, (400, 3, "lowercase letters")),
    ("POST", "/devices/dev-2/move", r#"{"app_id": "careful-app"}"#, (400, 3, "name another one")),
    ("POST", "/devices/dev-2/move", r#"{"app_id": "other-app"}"#, (403, 7, "right to application other-app")),
    ("GET", "/find-devices?limit=1001", "", (400, 3, "at most 1000")),
    ("GET", "/find-devices?order=battery", "", (400, 3, "must be id or last_seen")),
    ("GET", "/find-devices?after=dev-1", "", (400, 3, "`next` of the page before")),
    ("GET", "/find-devices?not_seen_since=24h", "", (400, 3, "Query not valid")),
    ("POST", "/change-devices", r#"{"dev_ids": ["DEV"], "key": "room"}"#, (400, 3, "lowercase letters")),
    ("POST", "/change-devices", r#"{"dev_ids": "dev-1", "key": "room"}"#, (400, 3, "Body not valid")),
    ("GET", "/newest-uplinks", "", (400, 3, "can not be empty")),
    ("GET", "/newest-uplinks?dev_ids=dev-1&limit=21", "", (400, 3, "at most 20")),
    ("PUT", "/webhooks/my-hook", "{}", (400, 3, "missing field `url`")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "example.com"}"#, (400, 3, "https://example.com/uplinks")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "https://{dev_id}.example.com"}"#, (400, 3, "URL not valid")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "http://169.254.169.254/"}"#, (400, 3, "no public address")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "https://example.com/{device}"}"#, (400, 3, "{dev_id}")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "https://example.com", "events": ["uplink"]}"#, (400, 3, "there are up")),
    ("PUT", "/webhooks/my-hook", r#"{"url": "https://example.com", "secret": "x"}"#, (400, 3, "openssl rand")),
    (
        "PUT",
        "/webhooks/my-hook",
        r#"{"url": "https://example.com", "headers": {"Host": "x"}}"#,
        (400, 3, "set by the server"),
    ),
    ("PUT", "/webhooks/my-hook", r#"{"url": "https://example.com", "headers": {"a": "b\nc"}}"#, (400, 3, "one line")),
    (
        "PUT",
        "/webhooks/my-hook",
        r#"{"url": "https://example.com", "headers": {"a": "b", "A": "b"}}"#,
        (400, 3, "`a` is named twice"),
    ),
    ("PUT", "/webhooks/UPPER", r#"{"url": "https://example.com"}"#, (400, 3, "lowercase letters")),
    ("PATCH", "/webhooks/my-hook", r#"{"uri": "https://example.com"}"#, (400, 3, "unknown field `uri`")),
    ("PATCH", "/webhooks/my-hook", "[]", (400, 3, "must be a JSON object")),
    ("PATCH", "/webhooks/my-hook", r#"{"revision": null}"#, (400, 3, "expected a string")),
    ("PATCH", "/webhooks/no-such-hook", "{}", (404, 5, "Webhook no-such-hook not found")),
    ("GET", "/webhooks/no-such-hook", "", (404, 5, "Webhook no-such-hook not found")),
    ("DELETE", "/webhooks/no-such-hook", "", (404, 5, "not found")),
    ("POST", "/webhooks/no-such-hook/test", "", (404, 5, "not found")),
    ("GET", "/webhooks/no-such-hook/deliveries", "", (404, 5, "not found")),
    ("GET", "/webhooks/no-such-hook/dead-letters", "", (404, 5, "not found")),
    ("POST", "/webhooks/no-such-hook/dead-letters/resend", "{}", (404, 5, "not found")),
    ("GET", "/history?since=yesterday", "", (400, 3, "Query not valid")),
    ("GET", "/history?port=256", "", (400, 3, "Port not valid")),
    ("GET", "/history?field=temperature", "", (400, 3, "Field not valid")),
    ("GET", "/history?kind=down%2Fsend", "", (400, 3, "Kind not valid: `down/send` is unknown")),
    ("GET", "/history/export/csv?kind=uplink", "", (400, 3, "Kind not valid")),
    ("POST", "/history/replay", r#"{"kind": "log"}"#, (400, 3, "Kind not valid")),
    ("GET", "/history?limit=1001", "", (400, 3, "at most 1000")),
    ("GET", "/history?before=x", "", (400, 3, "28 hexadecimal digits")),
    ("GET", "/history?colour=red", "", (400, 3, "unknown field `colour`")),
    ("GET", "/history/chart", "", (400, 3, "can not be empty")),
    ("GET", "/history/chart?dev_id=dev-1&points=1001", "", (400, 3, "at most 1000")),
    (
        "GET",
        "/history/chart?dev_id=dev-1&until=2000-01-01T00:00:00Z&since=2000-01-01T00:00:00Z",
        "",
        (400, 3, "before"),
    ),
    ("GET", "/history/chart?dev_id=dev-1&colour=red", "", (400, 3, "unknown field `colour`")),
    ("GET", "/history/first", "", (400, 3, "28 hexadecimal digits")),
    ("GET", "/history/first/deliveries", "", (400, 3, "28 hexadecimal digits")),
    ("GET", "/history/0000000000000000000000000001", "", (404, 5, "Record 0000000000000000000000000001 not found")),
    ("GET", "/versions/no-number", "", (400, 3, "a number from 1 up")),
    ("GET", "/versions/7", "", (404, 5, "it has no versions")),
    ("GET", "/versions/7/diff", "", (404, 5, "it has no versions")),
    ("PUT", "/versions/7", r#"{"note": 1}"#, (400, 3, "expected a string")),
    ("POST", "/versions/7/restore", "{}", (404, 5, "it has no versions")),
    ("POST", "/versions", "{}", (400, 3, "needs a function or a payload format")),
    ("POST", "/versions", r#"{"payload_format": "cayennelpp", "link": "/changes"}"#, (400, 3, "https://example.com")),
    ("GET", "/candidate", "", (404, 5, "no version for a share of its devices")),
    ("POST", "/candidate", r#"{"payload_format": "custom"}"#, (400, 3, "Share not valid: it must be from 0.01% to")),
    ("POST", "/candidate", r#"{"share_percent": 5, "decoder": ""}"#, (400, 3, "unknown field `decoder`")),
    ("POST", "/candidate", r#"{"share_percent": 5}"#, (400, 3, "needs a function or a payload format")),
    ("PUT", "/candidate", r#"{"share_percent": 5, "margin_percent": 101}"#, (400, 3, "Margin not valid: it must be")),
    ("PUT", "/candidate", r#"{"share_percent": 5, "uplinks_min": 0}"#, (400, 3, "a number from 1 up")),
    ("PUT", "/candidate", r#"{"share_percent": 5}"#, (404, 5, "--share 5%")),
    ("DELETE", "/candidate", "", (404, 5, "no version for a share")),
    ("PUT", "/silence", r#"{"silent_after_s": 59}"#, (400, 3, "SilentAfter not valid: a time from 1m to 366d")),
    ("PUT", "/silence", r#"{"silent_after": "1h"}"#, (400, 3, "unknown field `silent_after`")),
    ("POST", "/candidate/promote", "{}", (404, 5, "no version for a share")),
    ("POST", "/devices/dev-1/simulate", "[]", (400, 3, "JSON object")),
    ("POST", "/devices/dev-1/simulate", r#"{"payload": "%%%"}"#, (400, 3, "base64")),
    ("POST", "/devices/dev-1/simulate", r#"{"port": "seven"}"#, (400, 3, "Body not valid")),
    ("POST", "/devices/dev-1/simulate", r#"{"port": 256}"#, (400, 3, "0 to 255")),
    ("POST", "/devices/no-such-device/simulate", r#"{"port": 1}"#, (404, 5, "not found")),
    // Each line has its own answer.
    ("POST", "/uplinks", "[]", (200, 3, "JSON object")),
    ("POST", "/uplinks", r#"{"dev_id": "dev-1", "payload": "%%%"}"#, (200, 3, "base64")),
    ("POST", "/uplinks", r#"{"dev_id": "no-such-device", "port": 1}"#, (200, 5, "not found")),
];

// Conformance: Register, get, set, delete over gRPC and HTTP
// Conformance: Validation of ids, keys, attributes and constraints
#[tokio::test(flavor = "multi_thread")]
async fn rest_names_the_error_and_changes_nothing() {
    let network = Network::start().await;
    let owner = network.owner("careful").await;
    owner.add_device("dev-1").await;
    let before = state(&owner).await;
    for (method, path, body, (status, code, text)) in CASES {
        let (found, response) = request(&network, &owner, method, path, body).await;
        assert_eq!((found, response["code"].as_i64()), (*status, Some(*code)), "{method} {path} {body}: {response}");
        assert!(
            response["error"].as_str().is_some_and(|error| error.contains(text)),
            "{method} {path} {body}: {response}"
        );
        assert_eq!(response["error"], response["message"]);
    }
    assert_eq!(state(&owner).await, before);
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_size_of_payloads_and_functions() {
    let network = Network::start().await;
    let owner = network.owner("large").await;
    owner.add_device("dev-1").await;
    owner.simulate("dev-1", &[0; 255], 1).await.unwrap();
    let error = owner.simulate("dev-1", &[0; 256], 1).await.unwrap_err();
    assert!(error.to_string().contains("at most 255 bytes"), "{error}");
    let function = |bytes: usize| format!("function Decoder() {{ return {{}} }}//{}", "x".repeat(bytes));
    owner.set_functions([&function(400_000), "", ""]).await.unwrap();
    let error = owner.set_functions([&function(600_000), "", ""]).await.unwrap_err();
    assert!(error.to_string().contains("524288"), "{error}");
    assert!(owner.handler.get_application(&owner.app_id).await.unwrap().decoder.len() < 524_288);
    network.stack.stop().await;
}

// Conformance: Bodies that are too large, too deeply nested, or not text
#[tokio::test(flavor = "multi_thread")]
async fn refuses_bodies_that_are_binary_too_deep_or_too_large() {
    let network = Network::start().await;
    let owner = network.owner("strange").await;
    let large = format!(r#"{{"description": "{}"}}"#, "x".repeat(3 << 20));
    for (body, status, what) in [
        (b"{\"description\": \"\xff\xfe\"}".to_vec(), 400, "bytes that are no UTF-8"),
        (format!("{{\"unknown\": {}", "[".repeat(100_000)).into_bytes(), 400, "a hundred thousand lists in each other"),
        (large.into_bytes(), 413, "three megabytes"),
    ] {
        let url = format!("{}/applications/{}/devices/dev-1", network.handler_http(), owner.app_id);
        let request = reqwest::Client::new().put(url).body(body).header("authorization", owner.token.to_header());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{what}");
        assert!(response.json::<Value>().await.unwrap()["error"].is_string(), "{what}");
    }
    let mut large: Device = device(&owner.app_id, "dev-1").into();
    large.description = "x".repeat(5 << 20);
    let status = network.manager().await.set_device(owner.sign(large)).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert_eq!(state(&owner).await.1, []);
    network.stack.stop().await;
}

// Conformance: Handler and MQTT clients take a token or an access key
#[tokio::test(flavor = "multi_thread")]
async fn a_device_needs_a_registered_application_and_the_right_to_it() {
    let network = Network::start().await;
    let (owner, stranger) = (network.owner("owner").await, network.owner("stranger").await);
    owner.add_device("dev-1").await;
    let path = "/devices/dev-1";
    let (status, response) = request(&network, &owner, "PUT", path, "").await;
    assert_eq!(status, 400, "{response}");
    owner.handler.delete_application(&owner.app_id).await.unwrap();
    for (method, path) in [("GET", ""), ("GET", "/devices"), ("GET", path), ("DELETE", path)] {
        let (status, response) = request(&network, &owner, method, path, "").await;
        assert_eq!((status, &response["code"]), (404, &json!(5)), "{method} {path}: {response}");
    }
    let error = owner.handler.set_device(device(&owner.app_id, "dev-1").into()).await.unwrap_err();
    assert!(error.to_string().contains("not found"), "{error}");

    // A key that reads messages may not manage devices, and another user may do nothing.
    for (token, expected) in
        [(stranger.token.clone(), 403), (Credential::Key(stranger.key.clone()), 401), (bad_token(), 401)]
    {
        let url = format!("{}/applications/{}", network.handler_http(), owner.app_id);
        let response = reqwest::Client::new().get(url).header("authorization", token.to_header()).send().await.unwrap();
        assert_eq!(response.status().as_u16(), expected);
    }
    network.stack.stop().await;
}

// Conformance: Validation of ids, keys, attributes and constraints
#[tokio::test(flavor = "multi_thread")]
async fn grpc_errors_have_the_fitting_code() {
    let network = Network::start().await;
    let owner = network.owner("caller").await;
    let mut stub = network.manager().await;
    let id = |app_id: &str| ApplicationIdentifier { app_id: app_id.to_owned() };
    let status = stub.get_application(id("caller-app")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    let status = stub.get_application(owner.sign(id("Not An Id"))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let status = stub.register_application(owner.sign(id("caller-app"))).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::AlreadyExists, "Application caller-app already exists"));
    let missing = DeviceIdentifier { app_id: "caller-app".to_owned(), dev_id: "no-such-device".to_owned() };
    let status = stub.get_device(owner.sign(missing)).await.unwrap_err();
    assert!(status.code() == Code::NotFound && status.message().contains("not found"), "{status}");
    let mut short: Device = device(&owner.app_id, "dev-1").into();
    if let Some(api::handler::device::Device::LorawanDevice(lorawan)) = &mut short.device {
        lorawan.dev_eui = vec![1, 2, 3];
    }
    let status = stub.set_device(owner.sign(short)).await.unwrap_err();
    assert!(status.code() == Code::InvalidArgument && status.message().contains("8 bytes"), "{status}");
    network.stack.stop().await;
}

/// Keys of every length and spelling: only complete hexadecimal ones are stored, in upper case.
// Conformance: Keys have the exact length, and appear in no event, log or error
#[tokio::test(flavor = "multi_thread")]
async fn refuses_keys_of_the_wrong_length() {
    let network = Network::start().await;
    let owner = network.owner("exact").await;
    let base = network.handler_http();
    let send = async |method: &str, body: Value| owner.ask(&base, method, "/devices/dev-1", body).await;
    for (member, bytes) in
        [("app_eui", 8), ("dev_eui", 8), ("dev_addr", 4), ("app_key", 16), ("nwk_s_key", 16), ("app_s_key", 16)]
    {
        let lorawan = |text: String| {
            let mut body = json!(device(&owner.app_id, "dev-1"));
            body["lorawan_device"][member] = text.into();
            body
        };
        let digits = |digit: &str, count: usize| digit.repeat(count);
        for bad in
            [digits("a", 2 * bytes - 2), digits("a", 2 * bytes - 1), digits("a", 2 * bytes + 2), digits("g", 2 * bytes)]
        {
            let (status, response) = send("PUT", lorawan(bad.clone())).await;
            let text = format!("must be {bytes} bytes");
            assert!(status == 400 && response["error"].as_str().unwrap().contains(&text), "{member} {bad}: {response}");
            assert_eq!(send("GET", json!({})).await.0, 404, "{member} {bad}");
        }
        for good in [digits("ab", bytes), digits("AB", bytes), digits("aB", bytes)] {
            assert_eq!(send("PUT", lorawan(good)).await, (200, json!({})));
            assert_eq!(send("GET", json!({})).await.1["lorawan_device"][member], digits("AB", bytes));
        }
        assert_eq!(send("DELETE", json!({})).await.0, 200);
    }
    network.stack.stop().await;
}

async fn state(owner: &Owner) -> (api::handler::Application, Vec<Device>) {
    let application = owner.handler.get_application(&owner.app_id).await.unwrap();
    (application, owner.handler.list_devices(&owner.app_id, Default::default()).await.unwrap())
}

async fn request(network: &Network, owner: &Owner, method: &str, path: &str, body: &'static str) -> (u16, Value) {
    let url = format!("{}/applications/{}{path}", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().request(method.parse().unwrap(), url).body(body);
    let response = request.header("authorization", owner.token.to_header()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

fn bad_token() -> Credential {
    Credential::from_header("Bearer a.b.c").unwrap()
}
