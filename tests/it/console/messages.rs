//! History in the console: lists with filters, and one message, whole.

mod charts;
mod corrections;
mod live;
mod live_end;
mod live_load;
mod map_tiles;
mod pages;

use std::{fs, sync::Arc, time::Duration};

use client::account::AccountClient;
use history::{Environment, History, Kind, NewRecord, Settings};
use serde_json::Value;
use testing::{FixedRandom, ManualClock};
use types::{ApplicationRight::MessagesUpRead, Clock};

use super::{DECODER, newest, visitor, visitor::Visitor};
use crate::harness::{Network, airlock, next, run};

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn a_failed_message_is_shown_with_the_line_that_failed() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[1], 2).await.unwrap();
    let id = newest(&alice).await;

    let list = visitor.get("/console/applications/alice-app/messages?failed=1").await;
    assert!(list.html.contains(&format!("messages/{id}")) && list.html.contains("too short"), "{}", list.html);
    let page = visitor.get(&format!("/console/applications/alice-app/messages/{id}")).await;
    assert!(page.html.contains("<mark><b>3</b>     throw new Error"), "{}", page.html);
    for part in [
        "</time>, uplink on port 2 <span class=\"badge\">simulated</span></p>",
        "line 3, column",
        "/versions/1\">Version 1</a>, the one that is live<",
        "<code>01</code> (1)",
        "functions?device=dev-1",
        "Fuel",
        "<dt>Ran for</dt>",
    ] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("<script>too"), "{}", page.html);
    assert!(!page.html.contains("map-heading"), "{}", page.html);
    assert!(page.link("Open in the playground").starts_with("/console/playground/#1."), "{}", page.html);
    let playground = visitor.get("/console/playground/").await;
    assert!(playground.header("content-security-policy").contains("'wasm-unsafe-eval'"), "{}", playground.html);

    let json = visitor.get(&format!("/console/applications/alice-app/messages/{id}/json")).await;
    let record: Value = serde_json::from_str(&json.html).unwrap();
    assert_eq!(
        (&record["payload"], &record["outcome"], &record["port"]),
        (&"AQ==".into(), &"failed".into(), &2.into())
    );
    let microseconds = record["microseconds"].as_u64().unwrap();
    assert!(microseconds > 0 && page.html.contains(&format!("<dd>{microseconds} µs</dd>")), "{}", page.html);
    assert_eq!(json.header("content-type"), "application/json");
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn a_downlink_that_failed_is_among_what_failed() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let mut functions = alice.handler.get_application(&alice.app_id).await.unwrap();
    functions.encoder = "function Encoder() { throw new Error('no such lamp'); }".to_owned();
    alice.handler.set_application(functions).await.unwrap();
    let mut client = alice.listen(&network).await;
    let path = "/console/applications/alice-app/messages";
    for (downlink, reason, is_of_functions) in [
        (r#"{"payload_fields":{"on":true}}"#, "no such lamp", true),
        (r#"{"payload_raw":"AQ==","port":224}"#, "Port not valid", false),
    ] {
        client.publish(&format!("{}/devices/dev-1/down", alice.app_id), downlink).await;
        let list = visitor.until(&format!("{path}?failed=1"), reason).await;
        assert!(list.html.contains(">down/errors</td>"), "{}", list.html);
        // The newest one is the first. Its id has 28 digits.
        let (_, id) = list.html.split_once("alice-app/messages/").unwrap();
        let page = visitor.get(&format!("{path}/{}", &id[..28])).await;
        assert!(page.html.contains("<h2>Downlink failed</h2>") && page.html.contains(reason), "{}", page.html);
        assert_eq!(page.html.contains("Fix the functions"), is_of_functions, "{}", page.html);
    }
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn what_nobody_sees_in_texts_of_functions_and_devices_is_escaped() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let decoder = "function Decoder(bytes) {
  console.log('logged\\u202e');
  if (bytes[0] > 1) throw new Error('no\\u202e\\u001b[2J'); // \u{2066}
  return { text: 'decoded\\u202e', 'number\\u202e': 1 };
}";
    alice.set_functions([decoder, "", ""]).await.unwrap();
    let device = alice.handler.get_device(&alice.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    let device = api::handler::Device { description: "\u{202e}kitchen".to_owned(), ..device };
    alice.handler.set_device(device).await.unwrap();
    let application = "/console/applications/alice-app";
    let check = async |path: &str, parts: &[&str]| {
        let page = visitor.get(path).await;
        assert!(page.status == 200 && !page.html.contains(['\u{1b}', '\u{202e}', '\u{2066}']), "{}", page.html);
        for part in parts {
            assert!(page.html.contains(part), "{part}: {}", page.html);
        }
    };
    alice.simulate("dev-1", &[1], 2).await.unwrap();
    check(&format!("{application}/messages/{}", newest(&alice).await), &[r"decoded\u202e", "logged"]).await;
    alice.simulate("dev-1", &[2], 2).await.unwrap();
    let failed = format!("{application}/messages/{}", newest(&alice).await);
    check(&failed, &[r"// \u2066</mark>"]).await;
    check(&format!("{application}/messages"), &[r"decoded\u202e"]).await;
    check(&format!("{application}/devices/dev-1"), &[r"\u202ekitchen", r"decoded\u202e"]).await;
    check(application, &[r"\u202ekitchen"]).await;
    check(&format!("{application}/devices/dev-1/delete"), &[r"\u202ekitchen"]).await;
    check(&format!("{application}/devices/dev-1/charts"), &[r">number\u202e</a>"]).await;
    let decoder = r"function Decoder(bytes) { return { text: 'tried\u202e', 'number\u202e': 2 }; }";
    for (action, parts) in [
        ("try", [r"tried\u202e&#34;", r"decoded\u202e&#34;", " failed (line 3"]),
        ("compare", [r"tried\u202e&#34;", r"decoded\u202e&#34;", r"fields.number\u202e"]),
    ] {
        let form = [("do", action), ("base", "2"), ("payload_format", "custom"), ("decoder", decoder)];
        let page = visitor.post(&format!("{application}/functions"), &form).await;
        assert!(!page.html.contains(['\u{1b}', '\u{202e}', '\u{2066}']), "{}", page.html);
        for part in parts {
            assert!(page.html.contains(part), "{action}: {part}: {}", page.html);
        }
    }
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn five_thousand_fields_are_whole_on_their_message_and_bounded_elsewhere() {
    let network = Network::with(|settings| {
        let limits = &mut settings.sandbox.limits;
        (limits.fields_keys_max, limits.fields_bytes_max) = (8192, 1 << 17);
    })
    .await;
    let (alice, visitor) = visitor(&network).await;
    let decoder = |more: u32| {
        format!(
            "function Decoder(bytes) {{ var all = {{}}; for (var n = 0; n < 5000; n++) all['field_' + n] = n + bytes[0] + {more}; return all; }}"
        )
    };
    alice.set_functions([&decoder(0), "", ""]).await.unwrap();
    alice.simulate("dev-1", &[1], 2).await.unwrap();
    let application = "/console/applications/alice-app";
    let message = visitor.get(&format!("{application}/messages/{}", newest(&alice).await)).await;
    assert!(message.html.contains("&#34;field_4999&#34;: 5000"), "{}", message.html);
    for path in ["messages", "devices/dev-1"] {
        let page = visitor.get(&format!("{application}/{path}")).await;
        assert!(page.html.contains("field_0") && !page.html.contains("field_4999"), "{path}: {}", page.html);
    }
    let charts = visitor.get(&format!("{application}/devices/dev-1/charts")).await;
    assert_eq!(charts.html.matches("<figure").count(), 16, "{}", charts.html);
    assert!(charts.html.contains("There are too many fields to show them all"), "{}", charts.html);
    let changed = decoder(1);
    let form = [("do", "compare"), ("base", "2"), ("payload_format", "custom"), ("decoder", changed.as_str())];
    let compared = visitor.post(&format!("{application}/functions"), &form).await;
    assert_eq!(compared.html.matches("data-label=\"Uplinks\"").count(), 50, "{}", compared.html);
    assert!(compared.html.contains("50 of 100 or more changed fields are shown"), "{}", compared.html);
    let form = [("do", "try"), ("base", "2"), ("payload_format", "custom"), ("decoder", changed.as_str())];
    let tried = visitor.post(&format!("{application}/functions"), &form).await;
    assert!(tried.html.contains("1 changed") && tried.html.contains("field_0&#34;:2"), "{}", tried.html);
    assert!(!tried.html.contains("field_4999"), "{}", tried.html);
}

#[tokio::test]
async fn a_message_that_was_recorded_later_shows_both_times() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let clock = ManualClock::at(server::system::SystemClock.now());
    let received = clock.now().minus(Duration::from_secs(3600));
    let environment = Environment { clock, random: &FixedRandom::new([7]), owner_of: Arc::new(ToString::to_string) };
    // As another handler with the same directory does.
    let dir = network.stack.settings().data_dir.join("history");
    let history = History::open(dir, Settings::default(), environment).unwrap();
    let (dev_id, kind) = ("dev-1".parse().unwrap(), Kind::Uplink);
    let id = history.append(&NewRecord::new(&alice.app_id, &dev_id, &kind, received)).await.unwrap();
    history.seal().await.unwrap();
    history.close().await.unwrap();

    let (received, recorded) = (received.to_rfc3339(), id.recorded().to_rfc3339());
    let list = visitor.get("/console/applications/alice-app/messages?kind=up").await;
    let times = [format!("<time datetime=\"{received}\">"), format!("recorded <time datetime=\"{recorded}\">")];
    assert!(times.iter().all(|time| list.html.contains(time)), "{times:?}: {}", list.html);
    let page = visitor.get(&format!("/console/applications/alice-app/messages/{id}")).await;
    let both = [format!("<dt>Time</dt><dd><time datetime=\"{received}\">"), "<dt>Recorded</dt>".to_owned()];
    assert!(both.iter().all(|part| page.html.contains(part)), "{both:?}: {}", page.html);
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn filters_select_messages_and_pages_continue_them() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.add_device("dev-2").await;
    for number in 0..60 {
        alice.simulate(if number < 55 { "dev-1" } else { "dev-2" }, &[0, number], 1).await.unwrap();
    }
    let path = "/console/applications/alice-app/messages";
    let count = |html: &str| html.matches("<td class=\"when\">").count();
    let first = visitor.get(&format!("{path}?device=dev-1&kind=up")).await;
    let older = visitor.get(&format!("{path}{}", first.link("Older"))).await;
    assert_eq!((count(&first.html), count(&older.html)), (50, 5), "{}", older.html);
    assert!(older.html.contains("value=\"dev-1\"") && older.html.contains("Newest"));

    let hot = visitor.get(&format!("{path}?field=fields.celsius%20%3E%200.57&since=1h&port=1")).await;
    assert_eq!(count(&hot.html), 2, "{}", hot.html);
    let refused = visitor.get(&format!("{path}?since=%3Cb%3Eyesterday")).await;
    assert!(
        refused.html.contains("Since not valid") && refused.html.contains("&#60;b&#62;yesterday"),
        "{}",
        refused.html
    );
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn an_import_of_devices_does_not_bury_messages() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    for number in 0..55 {
        alice.simulate("dev-1", &[0, number], 1).await.unwrap();
    }
    for number in 2..=60 {
        alice.add_device(&format!("dev-{number}")).await;
    }
    let path = "/console/applications/alice-app/messages";
    let count = |html: &str, kind: &str| html.matches(&format!("<td class=\"kind\">{kind}")).count();
    let first = visitor.get(path).await;
    assert_eq!((count(&first.html, "up"), count(&first.html, "create")), (50, 0), "{}", first.html);
    let older = visitor.get(&format!("{path}{}", first.link("Older"))).await;
    assert_eq!((count(&older.html, "up"), count(&older.html, "create")), (5, 0), "{}", older.html);
    assert!(!older.html.contains(">Older<"), "{}", older.html);
    assert_eq!(visitor.get(&first.link("Download as CSV")).await.html.lines().count(), 56);

    let all = visitor.get(&format!("{path}?changes=1")).await;
    assert_eq!(count(&all.html, "create"), 50, "{}", all.html);
    assert!(all.html.contains("value=\"1\" checked><label for=\"changes\">"), "{}", all.html);
    let older = visitor.get(&format!("{path}{}", all.link("Older"))).await;
    assert_eq!((count(&older.html, "create"), count(&older.html, "up")), (9, 41), "{}", older.html);
    let created = visitor.get(&format!("{path}?kind=create&device=dev-60")).await;
    assert_eq!(count(&created.html, "create"), 1, "{}", created.html);
    let device = visitor.get("/console/applications/alice-app/devices/dev-60").await;
    assert!(device.html.contains("No messages of this device are stored."), "{}", device.html);
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn a_message_is_sent_again_with_a_button_by_those_who_may() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[9, 92], 2).await.unwrap();
    let path = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let page = visitor.get(&path).await;
    assert!(page.html.contains(&format!("action=\"{path}/replay\"")), "{}", page.html);
    let page = visitor.post(&format!("{path}/replay"), &[]).await;
    assert!(page.path.starts_with(&path) && page.html.contains("Not delivered"), "{}: {}", page.path, page.html);
    let mut listener = alice.listen(&network).await;
    let other_site = visitor.post_from(Some("https://evil.example"), &format!("{path}/replay"), &[]).await;
    assert_eq!(other_site.status, 403);
    let page = visitor.post(&format!("{path}/replay"), &[]).await;
    assert!(page.html.contains("Sent again"), "{}", page.html);
    let (topic, message) = next(&mut listener).await;
    assert_eq!((&*topic, &message["is_retry"], &message["port"]), ("dev-1/up", &true.into(), &2.into()));
    let none = visitor.post("/console/applications/alice-app/messages/0196f3c2a1b40000002a00000001/replay", &[]).await;
    assert_eq!(none.status, 404, "{}", none.html);
    // Whoever may only read messages sees the button, and is refused.
    network.owner("bobby").await;
    let server = &network.stack.settings().client.auth_server;
    let (account, bobby, rights) = (AccountClient::new(server).unwrap(), "bobby".parse().unwrap(), [MessagesUpRead]);
    account.set_collaborator(&alice.token, &alice.app_id, &bobby, &rights).await.unwrap();
    let bobby = Visitor::logged_in(server, "bobby").await;
    assert_eq!(bobby.get(&path).await.status, 200);
    let refused = bobby.post(&format!("{path}/replay"), &[]).await;
    assert_eq!(refused.status, 403, "{}", refused.html);
    for part in ["ask somebody who manages the collaborators", "Details: Permission denied: no `"] {
        assert!(refused.html.contains(part), "{part}: {}", refused.html);
    }
    assert_eq!(bobby.post(&format!("{path}/run"), &[]).await.status, 403);
}

#[tokio::test]
async fn the_live_functions_run_again_on_a_message_and_change_nothing() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8], 2).await.unwrap();
    let id = newest(&alice).await;
    let path = format!("/console/applications/alice-app/messages/{id}");
    let page = visitor.post(&format!("{path}/run"), &[]).await;
    for part in ["With version 1, which is live", "still failing"] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("Difference</h3>"), "it fails for the same reason: {}", page.html);
    alice.set_functions(["function Decoder(bytes) { return { celsius: bytes[0] }; }", "", ""]).await.unwrap();
    let page = visitor.post(&format!("{path}/run"), &[]).await;
    for part in ["With version 2, which is live", "newly decoded", "<ins>+  &#34;celsius&#34;: 8</ins>", "Fuel: "] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    let stored = visitor.get(&path).await;
    assert!(stored.html.contains("/versions/1") && !stored.html.contains("celsius&#34;"), "{}", stored.html);
    let fuel = alice.handler.get_record(&alice.app_id, &id).await.unwrap().fuel;
    let fuel = format!("<dt>Fuel</dt><dd>{},{:03}</dd>", fuel / 1000, fuel % 1000);
    assert!(stored.html.contains(&fuel), "{fuel}: {}", stored.html);
    assert_eq!(newest(&alice).await, id);
}

// Conformance: A dry run of a stored uplink gets its time, random numbers and bytes
#[tokio::test]
async fn functions_run_again_with_the_time_and_the_random_numbers_of_the_message() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let decoder = "function Decoder() { return { now: Date.now(), random: Math.random() }; }";
    alice.set_functions([decoder, "", ""]).await.unwrap();
    alice.simulate("dev-1", &[8], 2).await.unwrap();
    let path = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let page = visitor.post(&format!("{path}/run"), &[]).await;
    assert!(page.html.contains("<span class=\"badge good\">equal</span>"), "{}", page.html);
    assert!(page.html.contains("the random numbers and the bytes of the message"), "{}", page.html);
    assert!(!page.html.contains("should be equal"), "{}", page.html);

    // The same on the page of functions, before they are saved.
    let form = [("do", "try"), ("base", "2"), ("payload_format", "custom"), ("decoder", decoder), ("device", "dev-1")];
    let tried = visitor.post("/console/applications/alice-app/functions", &form).await;
    assert!(tried.html.contains("<span class=\"badge good\">equal</span>"), "{}", tried.html);

    // Other functions may make something else of it.
    alice.set_functions(["function Decoder() { return { random: Math.random() }; }", "", ""]).await.unwrap();
    let page = visitor.post(&format!("{path}/run"), &[]).await;
    assert!(page.html.contains(">changed</span>") && page.html.contains("<del>-  &#34;now"), "{}", page.html);
    assert!(!page.html.contains("+  &#34;random") && !page.html.contains("should be equal"), "{}", page.html);
}

#[tokio::test]
async fn a_message_becomes_a_test_of_its_decoder() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let dir = tempfile::tempdir().unwrap();
    let test = |source: &str, example: &str| {
        fs::write(dir.path().join("decoder.js"), source).unwrap();
        fs::write(dir.path().join("decoder.test.yaml"), example).unwrap();
        run(airlock(dir.path()).args(["functions", "test", "decoder.js"]), "")
    };
    alice.simulate("dev-1", &[8, 52], 2).await.unwrap();
    let path = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let file = visitor.get(&format!("{path}/test")).await;
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"dev-1.test.yaml\"");
    assert_eq!(visitor.get(&path).await.typed("test"), file.html);
    let tested = test(DECODER, &file.html);
    assert!(tested.status.success(), "{}: {tested:?}", file.html);
    assert!(!test("function Decoder() { return { celsius: 1 }; }", &file.html).status.success(), "{}", file.html);

    // The example of one that failed fails until the decoder is mended.
    let broken = "function Decoder(bytes) { return { celsius: bytes.celsius.degrees }; }";
    alice.set_functions([broken, "", ""]).await.unwrap();
    alice.simulate("dev-1", &[8], 2).await.unwrap();
    let path = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let file = visitor.get(&format!("{path}/test")).await;
    assert!(!test(broken, &file.html).status.success(), "{}", file.html);
    let tested = test("function Decoder(bytes) { return { celsius: bytes[0] }; }", &file.html);
    assert!(tested.status.success(), "{}: {tested:?}", file.html);
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn markup_in_names_and_fields_stays_text() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let evil = "</pre><script>alert(1)</script>\"'><img src=x>";
    let mut device: api::handler::Device = crate::harness::device(&alice.app_id, "evil").into();
    device.description = evil.to_owned();
    device.attributes.insert("ttn-brand".to_owned(), evil.to_owned());
    alice.handler.set_device(device).await.unwrap();
    let source = serde_json::to_string(evil).unwrap();
    let decoder = format!("function Decoder() {{ console.log({source}); return {{ {source}: {source} }}; }} // {evil}");
    alice.set_functions([&decoder, "", ""]).await.unwrap();
    alice.simulate("evil", &[1], 1).await.unwrap();
    let id = newest(&alice).await;
    let base = "/console/applications/alice-app";
    for page in ["", "/devices/evil", "/messages", &format!("/messages/{id}"), "/functions", "/versions", "/versions/2"]
    {
        let html = visitor.get(&format!("{base}{page}")).await.html;
        assert!(!html.contains("<script>alert") && !html.contains("<img src=x"), "{page}: {html}");
    }
}
