//! Messages that failed, and were corrected since.

use api::handler::SimulatedUplinkMessage;
use futures::stream;
use serde_json::{Value, json};
use types::Timestamp;

use crate::{
    console::{newest, visitor},
    harness::Network,
    messages::decode_again::decode,
};

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn a_correction_is_told_apart_from_what_it_corrects() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8], 2).await.unwrap();
    let path = "/console/applications/alice-app/messages";
    let original = newest(&alice).await;
    let page = visitor.get(&format!("{path}/{original}")).await;
    assert!(page.html.contains("Fix the functions") && !page.html.contains("Corrected: "), "{}", page.html);
    alice.set_functions(["function Decoder(bytes) { return { celsius: bytes[0] }; }", "", ""]).await.unwrap();
    assert_eq!(decode(&network, &alice, json!({"write": true})).await.0, 200);
    let list = visitor.get(&format!("{path}?kind=up")).await;
    assert_eq!(list.html.matches("correction 1").count(), 1, "{}", list.html);
    let correction = newest(&alice).await;
    let page = visitor.get(&format!("{path}/{correction}")).await;
    assert!(page.html.contains(&format!("{path}/{original}\">{original}</a>, as correction 1 of it")), "{}", page.html);
    assert!(!page.html.contains("Corrected: "), "{}", page.html);

    let page = visitor.get(&format!("{path}/{original}")).await;
    let version = "<a href=\"/console/applications/alice-app/versions/2\">version 2</a>";
    let corrected = format!("Corrected: <a href=\"{path}/{correction}\">revision 1</a>, {version}, <time ");
    assert!(page.html.contains(&corrected) && page.html.contains("Processing failed"), "{}", page.html);
    assert!(!page.html.contains("Fix the functions"), "{}", page.html);
    let json = visitor.get(&format!("{path}/{original}/json")).await;
    let record: Value = serde_json::from_str(&json.html).unwrap();
    assert_eq!(record["corrections"][0]["id"], correction.as_str(), "{record}");
    let failed = visitor.get(&format!("{path}?failed=1")).await;
    assert!(failed.html.contains(&original) && !failed.html.contains(&correction), "{}", failed.html);
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn stored_results_are_corrected_without_the_command_line() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8], 1).await.unwrap();
    let first = newest(&alice).await;
    alice.simulate("dev-1", &[9], 1).await.unwrap();
    let decoder = "function Decoder(bytes) { return { celsius: bytes[0] }; }";
    let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", decoder)];
    let saved = visitor.post("/console/applications/alice-app/functions", &form).await;
    assert!(saved.html.contains("2 are stored with another result"), "{}", saved.html);
    let path = saved.link("Correct stored results");
    let page = visitor.get(&path).await;
    assert_eq!((page.value("version"), page.value("since")), ("2".to_owned(), String::new()));

    let list = "/console/applications/alice-app/messages?kind=up";
    let post = async |more: &[(&str, &str)]| {
        visitor.post(&path, &[&[("version", "2"), ("publish", "1")][..], more].concat()).await
    };
    let refused = post(&[("do", "correct"), ("since", "yesterday")]).await;
    assert!(refused.status == 400 && refused.html.contains("must be a time"), "{}", refused.html);
    assert_eq!(refused.value("since"), "yesterday");
    let preview = post(&[("do", "preview")]).await;
    assert!(preview.html.contains("2 uplinks examined: 2 would be corrected."), "{}", preview.html);
    assert!(!visitor.get(list).await.html.contains("correction 1"), "a preview changes nothing");

    // As the form that goes on after a part with the first one.
    let parts = [("after", first.as_str()), ("examined", "1"), ("corrected", "1"), ("newly_failing", "many")];
    let rest = post(&[&[("do", "correct")][..], &parts[..]].concat()).await;
    assert!(rest.html.contains("2 uplinks examined: 2 corrected, 0 of them published."), "{}", rest.html);
    assert!(rest.html.contains("other output receives one of them."), "{}", rest.html);
    assert_eq!(visitor.get(list).await.html.matches("correction 1").count(), 1);
    let all = post(&[("do", "correct")]).await;
    assert!(all.html.contains("2 uplinks examined: 1 corrected"), "{}", all.html);
    assert!(all.html.contains("1 already corrected"), "{}", all.html);
    assert_eq!(visitor.get(list).await.html.matches("correction 1").count(), 2);
    let corrected = visitor.get("/console/applications/alice-app/functions?done=saved").await;
    assert!(!corrected.html.contains("stored with another result"), "{}", corrected.html);
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn all_parts_of_a_correction_begin_at_the_same_time() {
    // As many as take two parts, as 200 are published each second.
    const UPLINKS: usize = 1200;
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let app_id = alice.app_id.to_string();
    let uplink = SimulatedUplinkMessage { app_id, dev_id: "dev-1".to_owned(), payload: vec![8], port: 1 };
    let mut answers = alice.handler.simulate_uplinks(stream::iter(vec![uplink; UPLINKS])).await.unwrap();
    while answers.next().await.unwrap().is_some() {}
    alice.set_functions(["function Decoder(bytes) { return { celsius: bytes[0] }; }", "", ""]).await.unwrap();
    let path = "/console/applications/alice-app/functions/correction";
    let form = [("do", "correct"), ("version", "2"), ("publish", "1"), ("since", "2h")];
    let part = visitor.post(path, &form).await;
    assert!(part.html.contains("Correcting…"), "{}", part.html);
    let since = part.value("since");
    assert!(since.parse::<Timestamp>().is_ok(), "{since} would be later in the next part, and pass over uplinks");
}
