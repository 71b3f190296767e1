//! Output of commands for people, and for programs.

use serde_json::{Value, json};

use super::CommandLine;
use crate::harness::printed;

const DEV_EUI: &str = "0102030405060708";
const APP_KEY: &str = "2B7E151628AED2A6ABF7158809CF4F3C";

// Conformance: `--output`, `--quiet`, `--wide`
#[tokio::test(flavor = "multi_thread")]
async fn lists_and_properties_are_also_printed_for_programs() {
    let line = CommandLine::start().await;
    let empty = line.network.type_command(&["devices", "list", "--output", "json"], "");
    assert_eq!(printed(&empty), "[]\n");
    line.typed(&["devices", "register", "dev-1", DEV_EUI, APP_KEY, "52.37,4.89"]);
    line.typed(&["devices", "set", "dev-1", "--description", "by the \"door\", \u{202e}left"]);
    let json_of = |arguments: &[&str]| serde_json::from_str::<Value>(&line.typed(arguments)).unwrap();

    let list = json_of(&["devices", "list", "--output", "json"]);
    assert_eq!(
        (&list[0]["dev_id"], &list[0]["dev_eui"], &list[0]["dev_addr"]),
        (&json!("dev-1"), &json!(DEV_EUI), &Value::Null)
    );
    assert_eq!(json_of(&["devices", "list", "--output", "jsonl"]), list[0]);
    let device = json_of(&["devices", "info", "dev-1", "-o", "json"]);
    assert_eq!((&device["location"]["latitude"], &device["last_seen"]), (&json!(52.37), &Value::Null));
    assert_eq!(device["options"], json!(["FCntCheckEnabled", "32BitFCnt"]));
    let csv = line.typed(&["devices", "list", "--output", "csv"]);
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!(rows[0], "dev_id,app_eui,dev_eui,dev_addr,description");
    assert!(rows[1].starts_with("dev-1,") && rows[1].ends_with("\"by the \"\"door\"\", \u{fffd}left\""), "{csv}");
    assert_eq!(line.typed(&["devices", "list", "--quiet"]), "dev-1\n");

    let info = json_of(&["applications", "info", "--output", "json"]);
    assert_eq!((&info["app_id"], &info["collaborators"][0]["username"]), (&json!("my-app"), &json!("alice")));
    assert_eq!(json_of(&["applications", "key", "-o", "json"])["key"], info["access_keys"][0]["key"]);
    let user = json_of(&["user", "--output", "json"]);
    assert!(user["username"] == "alice" && user["valid_until"].as_str().unwrap().ends_with('Z'), "{user}");
    line.network.stack.stop().await;
}

// Conformance: `--output`, `--quiet`, `--wide`
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_no_results() {
    let line = CommandLine::start().await;
    let output = line.network.type_command(&["devices", "register", "dev-1", DEV_EUI, "-o", "json"], "");
    let registered: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(registered["dev_eui"], DEV_EUI);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Registered device dev-1\n");
    let output = line.network.type_command(&["devices", "delete", "dev-1", "--yes", "--quiet"], "");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    line.network.stack.stop().await;
}

// Conformance: `--output`, `--quiet`, `--wide`
#[tokio::test(flavor = "multi_thread")]
async fn tables_fit_the_terminal_and_are_whole_in_a_pipe() {
    let line = CommandLine::start().await;
    let description = "a sensor ".repeat(12);
    line.typed(&["devices", "register", "a-device-with-a-long-id", DEV_EUI]);
    line.typed(&["devices", "set", "a-device-with-a-long-id", "--description", description.trim()]);
    assert!(line.typed(&["devices", "list"]).contains(description.trim()));
    let shown = |columns: &str, options: &str| {
        let command = format!("stty cols {columns}; $AIRLOCK devices list {options}");
        String::from_utf8_lossy(&line.network.run_at_terminal(&command, &[]).stdout).replace('\r', "")
    };
    for columns in [80, 120] {
        let shown = shown(&columns.to_string(), "");
        let row = shown.lines().find(|line| line.starts_with("a-device")).unwrap_or_else(|| panic!("{shown}"));
        assert!(row.starts_with("a-device-with-a-long-id ") && row.contains('…'), "{shown}");
        assert!(row.trim_end().chars().count() <= columns, "{shown}");
        assert!(shown.contains("\u{1b}[1m"), "the titles are emphasized: {shown:?}");
    }
    let wide = shown("200", "");
    let row = wide.lines().find(|line| line.starts_with("a-device")).unwrap_or_else(|| panic!("{wide}"));
    assert!(row.contains(description.trim()) && !row.contains('…') && row.trim_end().chars().count() <= 200, "{wide}");
    let record = line.network.type_at_terminal(&["devices", "info", "a-device-with-a-long-id"], &[]);
    assert!(String::from_utf8_lossy(&record.stdout).contains("DevEUI:\u{1b}[0m 0102030405060708"), "{record:?}");
    assert!(shown("80", "--wide").contains(description.trim()));
    assert!(!shown("80", "--output csv").contains('\u{1b}'));
    line.network.stack.stop().await;
}
