//! `airlock applications …`: access keys, EUIs, descriptions, and what was deleted.

use serde_json::{Value, json};

use super::CommandLine;

// Conformance: applications keys, euis, set, restore
#[tokio::test(flavor = "multi_thread")]
async fn access_keys_are_created_listed_and_deleted() {
    let line = CommandLine::start().await;
    let said = line.typed(&["applications", "keys", "add", "dashboard", "messages:up:r", "devices"]);
    assert!(said.contains("Added access key dashboard of application my-app"), "{said}");
    let key = said.lines().last().unwrap();
    assert_eq!(key, line.typed(&["applications", "key", "--name", "dashboard"]).trim_end());
    let named = ["applications", "key", "--app-id", "my-app", "--name", "dashboard"];
    assert_eq!(key, line.typed(&named).trim_end());
    assert_eq!(line.refused(&[&named[..], &["my-app"]].concat(), "").0, 2);
    let json_of = |arguments: &[&str]| serde_json::from_str::<Value>(&line.typed(arguments)).unwrap();
    let made = json_of(&["applications", "keys", "create", "control", "messages:down:w", "-o", "json"]);
    assert_eq!(made["rights"], serde_json::json!(["messages:down:w"]));
    let listed = json_of(&["applications", "keys", "list", "--app-id", "my-app", "-o", "json"]);
    let found = |name: &str| listed.as_array().unwrap().iter().find(|key| key["name"] == name).unwrap()["key"].clone();
    assert_eq!((found("dashboard"), found("control")), (key.into(), made["key"].clone()));

    let (code, error) = line.refused(&["applications", "keys", "add", "dashboard", "everything"], "");
    assert!(code == 2 && error.contains("messages:up:r"), "{error}");
    assert_eq!(line.refused(&["applications", "keys", "add", "no-rights"], "").0, 2);
    let delete = ["applications", "keys", "delete", "dashboard"];
    assert!(line.refused(&delete, "no\n").1.contains("use --yes"));
    line.typed(&[&delete[..], &["--yes"]].concat());
    assert!(!line.typed(&["applications", "keys", "list"]).contains("dashboard"));
    assert_eq!(line.refused(&[&delete[..], &["--yes"]].concat(), "").0, 3);
    line.network.stack.stop().await;
}

// Conformance: applications keys, euis, set, restore
#[tokio::test(flavor = "multi_thread")]
async fn euis_are_added_and_removed() {
    let line = CommandLine::start().await;
    let made: Value = serde_json::from_str(&line.typed(&["applications", "euis", "add", "-o", "json"])).unwrap();
    let made = made["eui"].as_str().unwrap();
    line.typed(&["applications", "euis", "add", "0102030405060708"]);
    let listed = line.typed(&["applications", "euis", "list", "--quiet"]);
    assert!(listed.contains(made) && listed.contains("0102030405060708") && listed.lines().count() == 3, "{listed}");
    line.typed(&["applications", "select", "my-app", "0102030405060708"]);
    let delete = ["applications", "euis", "delete", "0102030405060708"];
    assert!(line.refused(&delete, "").1.contains("use --yes"));
    line.typed(&[&delete[..], &["--yes"]].concat());
    assert_eq!(line.typed(&["applications", "euis", "list", "--quiet"]).lines().count(), 2);
    // It is not selected any more, so that devices get another one.
    line.typed(&["devices", "register", "dev-1"]);
    line.network.stack.stop().await;
}

// Conformance: applications keys, euis, set, restore
#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_renamed_deleted_and_restored() {
    let line = CommandLine::start().await;
    line.typed(&["applications", "set", "--description", "A better name"]);
    assert!(line.typed(&["applications", "info"]).contains("Name: A better name"));
    assert_eq!(line.refused(&["applications", "set", "my-app"], "").0, 2);
    let deleted = || line.typed(&["applications", "list", "--deleted"]);
    assert!(deleted().contains("no deleted applications"));
    line.typed(&["applications", "delete", "--yes"]);
    assert!(deleted().contains("A better name") && !line.typed(&["applications", "list"]).contains("my-app"));
    let said = line.typed(&["applications", "restore", "my-app"]);
    assert!(said.contains("Restored application my-app"), "{said}");
    assert!(line.typed(&["applications", "info", "my-app"]).contains("default key"));
    assert!(deleted().contains("no deleted applications"));
    line.network.stack.stop().await;
}

/// Enough that some have a version with half of them, and some do not.
const DEVICES: usize = 12;

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_abandoned_by_itself_says_when_and_why() {
    let line = CommandLine::start().await;
    let set = ["applications", "pf", "set", "decoder", "--skip-test"];
    line.run_with_input(&set, "function Decoder(bytes) { return { n: bytes[0] }; }");
    let mut uplinks = String::new();
    for number in 0..DEVICES {
        line.typed(&["devices", "register", &format!("dev-{number}")]);
        uplinks += &format!("{{\"dev_id\":\"dev-{number}\",\"port\":1,\"payload\":\"CA==\"}}\n");
    }
    let share = ["--share", "50%", "--uplinks-min", "5"];
    line.run_with_input(&[&set[..], &share].concat(), "function Decoder(bytes) { throw 'no'; }");
    let mut rounds = 0;
    while line.network.type_command(&["applications", "pf", "share"], "").status.success() {
        line.network.type_command(&["devices", "simulate", "--batch", "-"], &uplinks);
        rounds += 1;
        assert!(rounds < 200, "it is not abandoned");
    }
    let (code, error) = line.refused(&["applications", "pf", "share"], "");
    for said in ["version 2 was abandoned automatically at ", "it failed on", "more than 5 percentage", "--share 5%"] {
        assert!(error.contains(said) && code == 3, "{said}: {code} {error}");
    }
    let listed = line.typed(&["applications", "versions"]);
    let of_version = listed.lines().find(|line| line.starts_with("2 ")).unwrap();
    assert!(of_version.contains("  abandoned  ") && of_version.contains("it failed on"), "{listed}");
    let listed: Value = serde_json::from_str(&line.typed(&["applications", "versions", "-o", "json"])).unwrap();
    let abandoned = &listed[0]["abandoned"];
    assert_eq!((&abandoned["margin_percent"], &abandoned["live_version"]), (&json!(5.0), &json!(1)), "{listed}");
    assert!(abandoned["time"].is_string() && abandoned["results"]["failed"].as_u64() >= Some(5), "{listed}");
    assert_eq!((&listed[0]["live"], &listed[1]["abandoned"]), (&json!(false), &Value::Null));
    line.network.stack.stop().await;
}
