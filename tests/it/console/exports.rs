//! Files that are downloaded from the console: messages and devices.

use std::fs;

use super::visitor;
use crate::harness::{Network, PASSWORD};

const APPLICATION: &str = "/console/applications/alice-app";

/// The standard output of a command.
fn printed(network: &Network, arguments: &[&str]) -> String {
    let login = network.type_command(&["user", "login", "alice", "--password-stdin"], PASSWORD);
    assert!(login.status.success(), "{}", String::from_utf8_lossy(&login.stderr));
    let output = network.type_command(&[arguments, &["--app-id", "alice-app"]].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

// Conformance: console: messages and devices downloaded as files
#[tokio::test(flavor = "multi_thread")]
async fn devices_are_downloaded_as_the_command_line_writes_them() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    // More than the handler returns at once.
    for number in 2..=501 {
        alice.add_device(&format!("dev-{number}")).await;
    }
    let file = visitor.get(&visitor.get(APPLICATION).await.link("Export")).await;
    assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert!(file.header("content-disposition").contains("\"alice-app-devices.csv\""));
    assert_eq!(file.html.lines().count(), 502, "a line of names, and one of each device");
    assert!(file.html.starts_with("dev_id,") && !file.html.contains("app_key"), "{}", file.html);
    assert_eq!(file.html, printed(&network, &["devices", "export"]));

    network.owner("bobby").await;
    assert_eq!(visitor.get("/console/applications/bobby-app/export-devices").await.status, 404);
    network.stack.stop().await;
}

// Conformance: console: messages and devices downloaded as files
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_match_are_downloaded_as_the_command_line_writes_them() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    // More than a page of the list has.
    for number in 0..60 {
        alice.simulate("dev-1", &[9, number], 1).await.unwrap();
    }
    alice.simulate("dev-2", &[9, 92], 1).await.unwrap();
    let first = visitor.get(&format!("{APPLICATION}/messages?device=dev-1&kind=up")).await;
    let older = visitor.get(&format!("{APPLICATION}/messages{}", first.link("Older"))).await;
    let expected = printed(&network, &["history", "export", "--format", "csv", "--device", "dev-1", "--kind", "up"]);
    assert_eq!(expected.lines().count(), 61);
    for page in [first, older] {
        let file = visitor.get(&page.link("Download as CSV")).await;
        assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"));
        assert!(file.header("content-disposition").contains("\"alice-app-messages.csv\""));
        assert_eq!(file.html, expected);
    }
    let refused = visitor.get(&format!("{APPLICATION}/export-messages?since=yesterday")).await;
    assert!(refused.status == 400 && refused.html.contains("Since not valid"), "{}: {}", refused.status, refused.html);
    network.owner("bobby").await;
    assert_eq!(visitor.get("/console/applications/bobby-app/export-messages").await.status, 404);
    network.stack.stop().await;
}

// Conformance: console: messages and devices downloaded as files
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_lacks_messages_fails() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    alice.simulate("dev-1", &[9, 92], 1).await.unwrap();
    // Deleting a device moves everything to Parquet files.
    alice.handler.delete_device(&alice.app_id, &"dev-2".parse().unwrap()).await.unwrap();
    let application = network.stack.settings().data_dir.join("history/app=alice-app");
    let day = fs::read_dir(application).unwrap().next().unwrap().unwrap().path();
    fs::write(day.join("1000000000000-1990000009000-foreign.parquet"), "not a Parquet file").unwrap();
    let response = visitor.open(&format!("{APPLICATION}/export-messages")).await;
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.is_err(), "browsers must not keep it as if it were whole");
    network.stack.stop().await;
}
