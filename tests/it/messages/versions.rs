//! The versions of payload functions, over REST, gRPC and the command line.

use api::{
    handler::Application,
    version::{NewVersion, VersionLabel},
};
use serde_json::{Value, json};
use testing::RedisProcess;
use types::{Kind, Kinded};

use crate::harness::{Network, Owner, next};

const OLD: &str = "function Decoder(bytes) {\n  return { celsius: bytes[0] };\n}\n";
const NEW: &str = "function Decoder(bytes) {\n  return { celsius: bytes[0] / 2 };\n}\n";

async fn call(network: &Network, owner: &Owner, method: &str, path: &str, body: Value) -> (u16, Value) {
    owner.ask(&network.handler_http(), method, &format!("/versions{path}"), body).await
}

// Conformance: Every change of functions is a version
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_v2_is_a_version_that_can_be_compared_and_restored_over_rest() {
    rest(Network::start().await).await;
    let Some(redis) = RedisProcess::start() else { return };
    rest(Network::on(&redis, |_| ()).await).await;
}

async fn rest(network: Network) {
    let owner = network.owner("rest").await;
    let get = async |path: &str| call(&network, &owner, "GET", path, Value::Null).await;
    assert_eq!(get("").await, (200, json!({"versions": []})));
    // As clients of v2 set functions.
    for decoder in [OLD, NEW, NEW] {
        owner.set_functions([decoder, "", ""]).await.unwrap();
    }
    let (status, list) = get("").await;
    let versions = list["versions"].as_array().unwrap();
    assert_eq!((status, versions.len()), (200, 2), "{list}");
    let newest = &versions[0];
    assert_eq!(
        (&newest["number"], &newest["live"], &newest["payload_format"]),
        (&json!(2), &json!(true), &json!("custom"))
    );
    assert!(newest["changed_by"].as_str().unwrap().starts_with("user "), "{newest}");
    assert!(
        newest["time"].is_string() && newest["hash"].as_str().unwrap().len() == 64 && newest["functions"].is_null()
    );
    assert_eq!(versions[1]["live"], Value::Null);
    assert_eq!(get("/1").await.1["functions"], json!({"decoder": OLD}));

    let diff = concat!(
        "--- decoder (version 1)\n+++ decoder (version 2)\n@@ -1,3 +1,3 @@\n function Decoder(bytes) {\n",
        "-  return { celsius: bytes[0] };\n+  return { celsius: bytes[0] / 2 };\n }\n"
    );
    for path in ["/1/diff", "/1/diff?to=2", "/1/diff?to=0"] {
        assert_eq!(get(path).await, (200, json!({"diff": diff})), "{path}");
    }
    assert_eq!(get("/2/diff").await.1, json!({"diff": ""}));

    let label = json!({"note": "Too warm", "link": "https://example.com/changes/1"});
    let (status, restored) = call(&network, &owner, "POST", "/1/restore", label.clone()).await;
    assert_eq!(
        (status, &restored["number"], &restored["restores"], &restored["note"]),
        (200, &json!(3), &json!(1), &label["note"])
    );
    let application = owner.handler.get_application(&owner.app_id).await.unwrap();
    assert_eq!((application.decoder.as_str(), application.payload_format.as_str()), (OLD, "custom"));
    assert_eq!(call(&network, &owner, "PUT", "/1", label.clone()).await, (200, json!({})));
    assert_eq!(get("/1").await.1["link"], label["link"]);
    let new = json!({"functions": {"decoder": NEW}, "note": "Half"});
    let (status, created) = call(&network, &owner, "POST", "", new).await;
    assert_eq!((status, &created["number"], &created["live"]), (200, &json!(4), &json!(true)), "{created}");
    errors(&network, &owner).await;
    network.stack.stop().await;
}

async fn errors(network: &Network, owner: &Owner) {
    for (method, path, body, status, reason) in [
        ("GET", "/9", Value::Null, 404, "Version 9 of application rest-app not found: versions 1 to 4 are kept"),
        ("POST", "/9/restore", json!({}), 404, "versions 1 to 4 are kept"),
        ("PUT", "/9", json!({}), 404, "versions 1 to 4 are kept"),
        ("GET", "/1/diff?to=9", Value::Null, 404, "versions 1 to 4 are kept"),
        ("GET", "/1/diff?to=one", Value::Null, 400, "Version to compare with not valid"),
        ("GET", "/0", Value::Null, 400, "from 1 up"),
        ("GET", "/4294967296", Value::Null, 400, "from 1 up"),
        ("PUT", "/1", json!({"link": "http://example.com"}), 400, "Link not valid"),
        ("PUT", "/1", json!({"note": "a".repeat(501)}), 400, "at most 500 bytes"),
        ("POST", "", json!({"functions": {"decoder": "function Decoder( {"}}), 400, "payload function not valid"),
        ("POST", "", json!({"payload_format": "x".repeat(65)}), 400, "at most 64 bytes"),
        // Neither clears the functions that are live.
        ("POST", "", json!({"decoder": NEW}), 400, "unknown field `decoder`"),
        ("POST", "", json!({"note": "Nothing"}), 400, "it needs a function or a payload format"),
    ] {
        let (found, response) = call(network, owner, method, path, body).await;
        let error = response["error"].as_str().unwrap_or_default();
        assert!(found == status && error.contains(reason), "{method} {path}: {found} {response}");
    }
    assert_eq!(call(network, owner, "GET", "", Value::Null).await.1["versions"].as_array().unwrap().len(), 4);
}

// Conformance: Events name the version of the functions that ran
#[tokio::test(flavor = "multi_thread")]
async fn events_name_the_version_that_ran_and_messages_do_if_they_are_asked_to() {
    for asked in [false, true] {
        let network = Network::with(|settings| settings.output.functions_version = asked).await;
        let owner = network.owner("ran").await;
        owner.add_device("dev-1").await;
        let mut listener = owner.listen(&network).await;
        for (version, decoder, fails) in [(1, OLD, false), (2, "function Decoder() { throw 'no'; }", true)] {
            owner.set_functions([decoder, "", ""]).await.unwrap();
            owner.simulate("dev-1", &[1], 1).await.unwrap();
            let shown = if asked { json!(version) } else { Value::Null };
            let (topic, uplink) = next(&mut listener).await;
            assert_eq!((topic.as_str(), &uplink["metadata"]["functions_version"]), ("dev-1/up", &shown), "{uplink}");
            if fails {
                assert_eq!(next(&mut listener).await.1["functions_version"], version);
            }
        }
        let mut encoder = owner.handler.get_application(&owner.app_id).await.unwrap();
        encoder.encoder = "function Encoder(fields) { throw 'no'; }".to_owned();
        owner.handler.set_application(encoder).await.unwrap();
        let topic = format!("{}/devices/dev-1/down", owner.app_id);
        listener.publish(&topic, r#"{"payload_fields":{"on":true}}"#).await;
        assert_eq!(next(&mut listener).await.0, "dev-1/down");
        let (topic, event) = next(&mut listener).await;
        assert_eq!((topic.as_str(), &event["functions_version"]), ("dev-1/events/down/errors", &json!(3)), "{event}");
        let url = format!("{}/applications/{}/history/replay", network.handler_http(), owner.app_id);
        let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header());
        let reports = request.json(&json!({"kind": "up"})).send().await.unwrap().text().await.unwrap();
        assert!(reports.contains(r#""done":true"#), "{reports}");
        for version in [1, 2] {
            let shown = if asked { json!(version) } else { Value::Null };
            let (_, uplink) = next(&mut listener).await;
            assert_eq!((&uplink["is_retry"], &uplink["metadata"]["functions_version"]), (&json!(true), &shown));
        }
        network.stack.stop().await;
    }
}

// Conformance: Every change of functions is a version
#[tokio::test(flavor = "multi_thread")]
async fn grpc_has_the_same_versions_and_they_go_with_their_application() {
    let network = Network::with(|settings| settings.handler.version_bounds.count_max = 2).await;
    let owner = network.owner("grpc").await;
    let app_id = owner.app_id.to_string();
    let functions =
        |decoder: &str| Application { app_id: app_id.clone(), decoder: decoder.to_owned(), ..Default::default() };
    let new = |decoder: &str, note: &str| NewVersion {
        functions: Some(functions(decoder)),
        note: note.to_owned(),
        ..NewVersion::default()
    };
    assert_eq!(owner.handler.create_version(new("", "")).await.unwrap_err().kind(), Kind::Invalid);
    assert_eq!(owner.handler.create_version(new(OLD, "first")).await.unwrap().number, 1);
    assert_eq!(owner.handler.create_version(new(NEW, "")).await.unwrap().number, 2);
    let first = owner.handler.get_version(&owner.app_id, 1).await.unwrap();
    assert_eq!((first.note.as_str(), first.live, first.time > 0), ("first", false, true));
    let restored = Application { payload_format: "custom".to_owned(), ..functions(OLD) };
    assert_eq!(first.functions, Some(restored));
    let label = |number, note: &str| VersionLabel {
        app_id: app_id.clone(),
        number,
        note: note.to_owned(),
        ..Default::default()
    };
    owner.handler.label_version(label(1, "renamed")).await.unwrap();
    let live = owner.handler.restore_version(label(2, "")).await.unwrap();
    assert_eq!((live.number, live.restores), (2, 0), "what is live stays the version that it is");
    assert_eq!(owner.handler.restore_version(label(1, "")).await.unwrap().number, 3);
    let list = owner.handler.list_versions(&owner.app_id).await.unwrap();
    let listed: Vec<_> = list.iter().map(|version| (version.number, version.live)).collect();
    assert_eq!(listed, [(3, true), (2, false)], "two are kept");
    let error = owner.handler.restore_version(label(1, "")).await.unwrap_err();
    assert!(error.kind() == Kind::NotFound && error.to_string().contains("versions 2 to 3 are kept"), "{error}");
    let diff = owner.handler.compare_versions(&owner.app_id, 2, 0).await.unwrap();
    assert!(diff.contains("+  return { celsius: bytes[0] };"), "{diff}");
    owner.handler.delete_application(&owner.app_id).await.unwrap();
    assert_eq!(owner.handler.list_versions(&owner.app_id).await.unwrap_err().kind(), Kind::NotFound);
    owner.handler.register_application(&owner.app_id).await.unwrap();
    assert_eq!(owner.handler.list_versions(&owner.app_id).await.unwrap(), []);
    network.stack.stop().await;
}
