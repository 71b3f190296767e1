//! Messages that failed, and were corrected since.

use serde_json::{Value, json};

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
