//! What the page asks its server: on which networks a codec runs, and its text for another one.

use fantoccini::key::Key;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::page::{Playground, ask, open, paste, shows};
use crate::browser::{DESK, driver::Look};

/// Strict code refuses it, and ChirpStack from 4.17 runs strict code.
const UNDECLARED: &str =
    "function decodeUplink(input) {\n  total = input.bytes[0];\n  return { data: { total: total } };\n}\n";
const STRICT: &str = "chirpstack-4.17";

fn start() -> (Playground, TempDir) {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    (Playground::start(dir.path(), &[]), dir)
}

fn codec(text: &str, uplinks: usize) -> Value {
    let uplink = json!({"line": 1, "port": 1, "payload": "07", "timeMs": 0});
    json!({"text": text, "dialect": null, "uplinks": vec![uplink; uplinks]})
}

/// Asks as a page of `site` does; `same-origin` is the page itself.
async fn post(playground: &Playground, path: &str, body: &Value, site: &str) -> Response {
    let request = reqwest::Client::new().post(format!("{}{path}", playground.url)).header("sec-fetch-site", site);
    request.json(body).send().await.unwrap()
}

async fn answer(playground: &Playground, path: &str, body: &Value) -> Value {
    let response = post(playground, path, body, "same-origin").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.json().await.unwrap()
}

#[tokio::test]
async fn the_server_judges_a_codec_for_each_network_and_ports_it() {
    let (playground, _dir) = start();
    let networks: Value = reqwest::get(format!("{}networks.json", playground.url)).await.unwrap().json().await.unwrap();
    let told = answer(&playground, "lint", &codec(UNDECLARED, 1)).await;
    let verdicts = told["verdicts"].as_array().unwrap();
    let names = |list: &[Value], name: &str| list.iter().map(|one| one[name].clone()).collect::<Vec<_>>();
    assert_eq!(names(verdicts, "target"), names(networks.as_array().unwrap(), "name"));
    let on = |name: &str| verdicts.iter().find(|verdict| verdict["target"] == name).unwrap();
    assert_eq!(on("chirpstack-4.16")["runs"], true, "{told}");
    let strict = on(STRICT);
    assert_eq!((&strict["runs"], &strict["findings"][0]["line"]), (&json!(false), &json!(2)), "{strict}");
    assert_eq!(strict["findings"][0]["rule"], "undeclared-variable");
    let ported = answer(&playground, "port", &json!({"codec": codec(UNDECLARED, 2), "target": STRICT})).await;
    assert_eq!((&ported["isSound"], &ported["compared"], &ported["agreed"]), (&json!(true), &json!(2), &json!(2)));
    let text = ported["text"].as_str().unwrap();
    assert!(ported["diff"].as_str().unwrap().contains("\n+var total;\n"), "{ported}");
    let again = answer(&playground, "lint", &codec(text, 1)).await;
    assert!(again["verdicts"].as_array().unwrap().iter().any(|one| one["target"] == STRICT && one["runs"] == true));
}

#[tokio::test]
async fn the_server_refuses_other_sites_and_what_is_not_valid() {
    let (playground, _dir) = start();
    for site in ["cross-site", "same-site", "none"] {
        let refused = post(&playground, "lint", &codec(UNDECLARED, 1), site).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{site}");
    }
    let program = reqwest::Client::new().post(format!("{}lint", playground.url)).json(&codec(UNDECLARED, 1));
    assert_eq!(program.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    for (path, body, reason) in [
        ("lint", codec(UNDECLARED, 9), "at most 8"),
        ("lint", json!({"text": "", "dialect": "es5", "uplinks": []}), "there is no dialect `es5`"),
        ("port", json!({"codec": codec(UNDECLARED, 1), "target": "sigfox"}), "there is no network `sigfox`"),
    ] {
        let refused = post(&playground, path, &body, "same-origin").await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{body}");
        let told: Value = refused.json().await.unwrap();
        assert!(told["error"].as_str().unwrap().contains(reason), "{told}");
    }
    let large = post(&playground, "lint", &codec(&"x".repeat(3 << 20), 1), "same-origin").await;
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_source_of_any_kind_gets_a_verdict() {
    let (playground, _dir) = start();
    for text in ["", "function decodeUplink(", "function decodeUplink() { while (true) {} }", &"[".repeat(100_000)] {
        let told = answer(&playground, "lint", &codec(text, 1)).await;
        assert_eq!(told["verdicts"].as_array().unwrap().len(), 8, "{}", &text[..text.len().min(40)]);
        answer(&playground, "port", &json!({"codec": codec(text, 1), "target": "things-stack"})).await;
    }
}

/// How many requests the page has sent about networks.
const ASKED: &str = "return performance.getEntriesByType('resource').filter(({ name }) => /\\/(networks\\.json|lint|port)$/.test(name)).length;";

async fn look_at_networks(name: &'static str, look: Look) {
    let Some((_playground, browser, _dir)) = open(name, look).await else { return };
    paste(&browser, "text", UNDECLARED).await;
    shows(&browser, "outcome", "total").await;
    assert_eq!(ask(&browser, ASKED).await, 0);
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
    shows(&browser, "editor", "nothing declares").await;
    browser.click("#port-codec").await;
    shows(&browser, "network", "declared total").await;
    browser.look("playground-networks").await;
    browser.click(".ported button").await;
    shows(&browser, "network", "Runs on ChirpStack from 4.17").await;
    assert_eq!(browser.value("#text").await, format!("var total;\n{UNDECLARED}"));
}

#[tokio::test]
async fn networks_are_tabs_with_reasons_and_the_codec_is_ported() {
    look_at_networks("playground-networks-desk", Look { width: 1280, ..DESK }).await;
    look_at_networks("playground-networks-phone", Look { width: 375, dark: true, ..DESK }).await;
}

#[tokio::test]
async fn networks_are_chosen_by_keyboard() {
    let Some((_playground, browser, _dir)) = open("playground-networks-keys", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    browser.tab_to("[role=tab]").await;
    browser.press(&Key::Right.to_string()).await;
    shows(&browser, "network", "ChirpStack from 4.17").await;
    let chosen = "return [document.activeElement.getAttribute('aria-selected'), document.querySelectorAll('[aria-selected=true][role=tab]').length];";
    assert_eq!(ask(&browser, chosen).await, json!(["true", 1]));
}

/// Types another source, closes the part, and says how often the page asks anything before it has kept the link, which
/// it does no earlier than it would ask.
const CLOSED: &str = "const [done] = arguments; const before = location.hash; let asked = 0; \
     const own = window.fetch; window.fetch = (...of) => { asked += 1; return own(...of); }; \
     const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', '\\n'); \
     document.getElementById('text-code').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })); \
     document.querySelector('#networks-details summary').click(); \
     const look = () => (location.hash === before ? setTimeout(look, 20) : done(asked)); look();";

#[tokio::test]
async fn nothing_is_sent_once_networks_are_closed() {
    let Some((_playground, browser, _dir)) = open("playground-networks-closed", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    assert_eq!(browser.client.execute_async(CLOSED, vec![]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_server_that_does_not_answer_leaves_no_older_verdict() {
    let Some((_playground, browser, _dir)) = open("playground-networks-away", DESK).await else { return };
    browser.click("#networks-details summary").await;
    shows(&browser, "network", "Runs on ChirpStack 4 up to 4.16").await;
    let away = "window.answered = window.fetch; window.fetch = () => Promise.reject(new Error('away'));";
    ask(&browser, away).await;
    paste(&browser, "text", UNDECLARED).await;
    shows(&browser, "network", "There is no verdict: away").await;
    assert_eq!(ask(&browser, "return document.querySelectorAll('.tab-list .note').length;").await, 0);
    ask(&browser, "window.fetch = window.answered;").await;
    browser.click(&format!("[id='tab-{STRICT}']")).await;
    shows(&browser, "network", "Does not run on ChirpStack from 4.17").await;
}
