//! The audit log of the handler: what changes who gets messages, and who reads what.

use std::fs;

use client::handler::Page;
use serde_json::{Value, json};

use crate::{
    delivery::webhooks::call,
    harness::server_process::{ServerProcess, serve},
};

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_functions_exports_and_outputs_are_in_the_audit_file() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    let output = "[[output.redis]]\nname = \"bus\"\nurl = \"redis://127.0.0.1:9\"\n";
    let settings = dir.path().join("airlock.toml");
    fs::write(&settings, output).unwrap();
    let mut command = serve(dir.path());
    command.arg("--config").arg(&settings).env("AIRLOCK_TELEMETRY__AUDIT_FILE", &file);
    let server = ServerProcess::spawn(&mut command);
    let owner = server.owner(dir.path(), "owner").await;
    owner.add_device("dev-1").await;
    owner.set_functions(["function Decoder() { return {}; }", "", ""]).await.unwrap();
    owner.handler.list_devices(&owner.app_id, Page::default()).await.unwrap();
    let base = server.http("handler");
    let webhook = json!({"url": "https://example.com/"});
    assert_eq!(call(base, &owner, "PUT", "/my-hook", webhook).await.0, 200);
    assert_eq!(call(base, &owner, "PATCH", "/my-hook", json!({"events": ["up"]})).await.0, 200);
    assert_eq!(call(base, &owner, "DELETE", "/my-hook", json!({})).await.0, 200);
    let devices = format!("{base}/applications/{}/devices", owner.app_id);
    let request = reqwest::Client::new().get(devices).header("authorization", "Key airlock-account.wrong");
    assert_eq!(request.send().await.unwrap().status(), 401);
    server.stop();
    let lines: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = [
        ("output started", "redis bus"),
        ("application registered", "owner-app"),
        ("functions set", "owner-app"),
        ("devices exported", "owner-app"),
        ("webhook set", "owner-app/my-hook"),
        ("webhook changed", "owner-app/my-hook"),
        ("webhook deleted", "owner-app/my-hook"),
    ];
    for (event, object) in expected {
        let of_event = |line: &&Value| line["event"] == event && line["object"].as_str().unwrap().starts_with(object);
        let line = lines.iter().find(of_event).unwrap_or_else(|| panic!("no `{event}` of {object} in {lines:?}"));
        let actor = line["actor"].as_str().unwrap();
        assert!(actor.starts_with(if event == "output started" { "settings" } else { "user " }), "{line}");
    }
    // The account service of the same process is asked directly: over HTTP, it would have refused a request.
    let refused = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let [line] = &refused("credential refused")[..] else { panic!("there is one: {lines:?}") };
    assert_eq!((&line["actor"], &line["object"]), (&json!("access key"), &json!("apps:owner-app")));
    assert!(refused("request refused").is_empty(), "{lines:?}");
}
