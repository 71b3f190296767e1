//! Functions in the console: tried, saved, compared, restored.

use api::{
    handler::Application,
    version::{NewCandidate, Trial},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{DECODER, visitor, visitor::Page};
use crate::harness::Network;

const PATH: &str = "/console/applications/alice-app/functions";
const MENDED: &str = "function Decoder(bytes) { return { celsius: bytes[0], note: \"a\\tb\" }; }\n// <textarea>\n";

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn functions_are_tried_on_the_last_messages_and_then_saved() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[7], 1).await.unwrap();
    let page = visitor.get(&format!("{PATH}?device=dev-1")).await;
    assert_eq!((page.typed("decoder"), page.value("base")), (DECODER.to_owned(), "1".to_owned()));
    assert!(page.link("Open in the playground").starts_with("/console/playground/#1."), "{}", page.html);

    let mended = MENDED.replace('\n', "\r\n");
    let form = |action| {
        [
            ("do", action),
            ("base", "1"),
            ("payload_format", "custom"),
            ("decoder", &mended),
            ("device", "dev-1"),
            ("note", "mended"),
        ]
    };
    let tried = visitor.post(PATH, &form("try")).await;
    assert!(tried.html.contains("newly decoded") && tried.html.contains("celsius"), "{}", tried.html);
    assert_eq!(tried.typed("decoder"), MENDED);
    assert_eq!(alice.handler.get_version(&alice.app_id, 0).await.unwrap().number, 1, "a trial saves nothing");

    let saved = visitor.post(PATH, &form("save")).await;
    assert!(saved.html.contains("Saved.") && saved.value("base") == "2", "{}", saved.html);
    assert_eq!(saved.value("device"), "dev-1", "the next change is tried on it, too");
    let live = alice.handler.get_version(&alice.app_id, 0).await.unwrap();
    assert_eq!((live.functions.unwrap().decoder.as_str(), live.note.as_str()), (MENDED, "mended"));
}

/// The contents of a page's link to the playground.
fn carried(page: &Page) -> Value {
    let link = page.link("Open in the playground");
    let packed = URL_SAFE_NO_PAD.decode(link.strip_prefix("/console/playground/#1.").unwrap()).unwrap();
    serde_json::from_slice(&miniz_oxide::inflate::decompress_to_vec(&packed).unwrap()).unwrap()
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn the_playground_opens_with_the_latest_uplinks() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    assert_eq!(carried(&visitor.get(PATH).await), json!({"text": DECODER, "dialect": ""}));
    alice.add_device("dev-2").await;
    for number in 1..=12 {
        alice.simulate("dev-1", &[number, 0xFF], 2).await.unwrap();
    }
    alice.simulate("dev-2", &[0x63], 5).await.unwrap();
    let device = format!("{PATH}?device=dev-1");
    let latest: Vec<_> = (3..=12).rev().map(|number| format!("2: {number:02X}FF")).collect();
    assert_eq!(carried(&visitor.get(&device).await)["payloads"], json!(latest.join("\n")));
    let all = format!("5: 63\n{}", latest[..9].join("\n"));
    assert_eq!(carried(&visitor.get(PATH).await)["payloads"], json!(all));

    let form = [("do", "try"), ("base", "1"), ("payload_format", "v2"), ("decoder", "// typed"), ("device", "dev-2")];
    let tried = carried(&visitor.post(PATH, &form).await);
    assert_eq!([&tried["text"], &tried["payloads"]], [&json!("// typed"), &json!("5: 63")]);
    let unknown = visitor.get(&format!("{PATH}?device=%3Cb%3E")).await;
    assert_eq!((unknown.status, &carried(&unknown)["payloads"]), (200, &Value::Null));
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn functions_that_cannot_be_loaded_are_refused_and_stay_in_the_form() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", "function Decoder( {")];
    let page = visitor.post(PATH, &form).await;
    assert_eq!(page.status, 400, "{}", page.html);
    assert!(page.html.contains("role=\"alert\"") && page.html.contains("line 1"), "{}", page.html);
    assert_eq!(page.typed("decoder"), "function Decoder( {");
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn nothing_is_lost_when_somebody_else_saves_in_between() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.set_functions(["function Decoder() { return { theirs: 1 }; } // \u{202e}", "", ""]).await.unwrap();
    let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", MENDED)];
    let page = visitor.post(PATH, &form).await;
    assert_eq!(page.status, 409, "{}", page.html);
    assert!(page.html.contains("Someone else has saved version 2") && page.html.contains("theirs"), "{}", page.html);
    assert!(page.html.contains(r"// \u202e") && !page.html.contains('\u{202e}'), "{}", page.html);
    assert_eq!((page.typed("decoder"), page.value("base")), (MENDED.to_owned(), "2".to_owned()));
    let live = alice.handler.get_version(&alice.app_id, 0).await.unwrap();
    assert!(live.functions.unwrap().decoder.contains("theirs"));
}

#[tokio::test]
async fn what_somebody_else_made_live_is_not_said_to_be_abandoned() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.set_functions(["function Decoder() { return { theirs: 1 }; }", "", ""]).await.unwrap();
    let form = [("do", "try"), ("base", "1"), ("payload_format", "custom"), ("decoder", MENDED)];
    let page = visitor.post(PATH, &form).await;
    assert_eq!((page.status, page.typed("decoder").as_str()), (200, MENDED), "{}", page.html);
    assert!(!page.html.contains("abandoned"), "{}", page.html);
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn an_older_version_is_compared_and_restored() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.set_functions([MENDED, "", ""]).await.unwrap();
    let list = visitor.get("/console/applications/alice-app/versions").await;
    let page = visitor.get(&list.link("Version 1")).await;
    assert!(page.html.contains("<del>-") && page.html.contains("<ins>+"), "{}", page.html);
    let page = visitor.post("/console/applications/alice-app/versions/1/restore", &[]).await;
    assert!(page.html.contains("Restored.") && page.typed("decoder") == DECODER, "{}", page.html);
}

/// The sentence that says what came of which uplinks, without markup.
fn sum(page: &Page) -> String {
    let (_, sum) = page.html.split_once("ed on ").unwrap_or_else(|| panic!("nothing ran: {}", page.html));
    let sum = sum.split("</p>").next().unwrap().split("Mean fuel").next().unwrap();
    let text = sum.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect::<String>();
    text.trim().to_owned()
}

// Conformance: console: functions tried, saved, restored; nothing typed is lost
#[tokio::test]
async fn a_trial_and_a_comparison_say_the_same_of_the_same_uplinks() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    // The first version failed on the short ones, the second, which is live, on none of them.
    for payload in [&[0, 1][..], &[7], &[8], &[9]] {
        alice.simulate("dev-1", payload, 1).await.unwrap();
    }
    let live = "function decodeUplink(input) {
        if (input.bytes[0] === 9) return { errors: ['nine'] };
        return { data: input.bytes[0] === 8 ? {} : { n: input.bytes[0] } };
    }
    function normalizeUplink(input) { return { data: [{ air: { temperature: input.data.n } }] }; }";
    alice.set_functions([live, "", ""]).await.unwrap();
    for number in 1..=12 {
        alice.simulate("dev-2", &[number], 1).await.unwrap();
    }
    let other = live.replace("input.bytes[0] === 9", "input.bytes.length > 1 || input.bytes[0] > 8");
    let other = other.replace("temperature: input.data.n", "temperature: input.data.n && input.data.n + 1");
    let run = async |action: &str, device: &str| {
        let decoder = other.as_str();
        let form =
            [("do", action), ("base", "2"), ("payload_format", "custom"), ("decoder", decoder), ("device", device)];
        sum(&visitor.post(PATH, &form).await)
    };
    let of_dev_1 = "the latest 4 uplinks of dev-1: 1 newly failing 1 still failing 1 changed 1 equal";
    for action in ["try", "compare"] {
        assert_eq!(run(action, "dev-1").await, of_dev_1, "{action}");
    }
    let of_dev_2 = run("try", "dev-2").await;
    assert_eq!(of_dev_2, run("compare", "dev-2").await);
    assert!(of_dev_2.starts_with("the latest 10 uplinks of dev-2: 3 newly failing 1 still failing 5 changed 1 equal"));
    // These are other uplinks, and both say which.
    let all = run("try", "").await;
    assert!(all.starts_with("the latest 10 uplinks of all devices together: 3 newly failing"), "{all}");
    let each = run("compare", "").await;
    assert!(each.starts_with("14 uplinks, the latest 10 of each device: 4 newly failing 2 still failing"), "{each}");
}

#[tokio::test]
async fn what_would_change_is_seen_before_it_is_saved() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    for payload in [&[0, 100][..], &[0, 99], &[7]] {
        alice.simulate("dev-1", payload, 1).await.unwrap();
    }
    let changed = "function Decoder(bytes) {
        if (bytes[1] === 99) throw new Error('no <sensor>');
        return { celsius: bytes[0] };
    }";
    let form = |device| {
        [("do", "compare"), ("base", "1"), ("payload_format", "custom"), ("decoder", changed), ("device", device)]
    };
    let page = visitor.post(PATH, &form("")).await;
    for expected in
        ["on 3 uplinks", "1 newly failing", "1 changed", "1 newly decoded", "fields.celsius", "no &#60;sensor"]
    {
        assert!(page.html.contains(expected), "{expected}: {}", page.html);
    }
    assert!(visitor.get(&page.link("a message of dev-1")).await.html.contains("0063"));
    assert_eq!(alice.handler.get_version(&alice.app_id, 0).await.unwrap().number, 1, "nothing is saved");
    let none = visitor.post(PATH, &form("dev-9")).await;
    assert!(none.html.contains("no uplinks to compare"), "{}", none.html);
}

#[tokio::test]
async fn what_a_share_of_the_devices_had_is_no_change_of_somebody_else() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let app_id = alice.app_id.to_string();
    let functions = Application { app_id: app_id.clone(), decoder: MENDED.to_owned(), ..Default::default() };
    let trial = Trial { app_id, share_percent: 5.0, ..Default::default() };
    let candidate = NewCandidate { functions: Some(functions), trial: Some(trial), ..Default::default() };
    alice.handler.create_candidate(candidate).await.unwrap();
    let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", "function Decoder() {}")];
    let refused = visitor.post(PATH, &form).await;
    assert!(refused.status == 409 && refused.html.contains("promote"), "{}: {}", refused.status, refused.html);
    alice.handler.abandon_candidate(&alice.app_id).await.unwrap();
    let saved = visitor.post(PATH, &form).await;
    assert!(saved.html.contains("Saved.") && saved.value("base") == "3", "{}", saved.html);
}

#[tokio::test]
async fn long_functions_are_saved_and_those_that_are_too_long_stay_in_the_form() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let long = |length: usize| format!("{DECODER}\n// {}", "x".repeat(length));
    let sent = async |decoder: &str| {
        let form = [("do", "save"), ("base", "1"), ("payload_format", "custom"), ("decoder", decoder)];
        visitor.post(PATH, &form).await
    };
    let page = sent(&long(600_000)).await;
    assert!(page.status == 400 && page.typed("decoder") == long(600_000), "{}", page.status);
    let (_, problem) = page.html.split_once("role=\"alert\"").unwrap();
    let problem = problem.split("</div>").next().unwrap();
    assert!(problem.contains("524288 are allowed"), "{problem}");

    let page = sent(&long(200_000)).await;
    assert!(page.html.contains("Saved.") && page.typed("decoder") == long(200_000), "{}", page.status);
    let live = alice.handler.get_version(&alice.app_id, 0).await.unwrap();
    assert!(live.functions.unwrap().decoder == long(200_000), "it is whole");
}
