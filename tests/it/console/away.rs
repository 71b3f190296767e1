//! Pages while something that they need is away: each says what, and shows the rest.

use airlock::{serve::Stack, settings::Settings};
use tempfile::TempDir;

use crate::{
    browser::{
        DESK,
        console::{log_in, wait_for_text},
        driver::Browser,
    },
    console::{newest, visitor, visitor::Visitor},
    harness::{Network, environment},
};

const APPLICATION: &str = "/console/applications/alice-app";

/// Services that have started again with other settings, and a user who has an application and an uplink there.
async fn started_again(change: impl FnOnce(&mut Settings)) -> (Stack, TempDir, Visitor, String) {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[0, 200], 1).await.unwrap();
    let id = newest(&alice).await;
    let Network { stack, dir } = network;
    stack.stop().await;
    let mut settings = Network::settings(dir.path());
    change(&mut settings);
    let stack = Stack::start(settings, None, environment()).await.unwrap();
    let visitor = Visitor::logged_in(&stack.settings().client.auth_server, "alice").await;
    visitor.get("/console").await;
    (stack, dir, visitor, id)
}

// Conformance: console: what is away is named
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_and_a_broker_that_are_away_are_named_and_the_rest_is_shown() {
    // Nothing listens at the address at which the handler then says it is, with its broker.
    let (stack, _dir, visitor, _) = started_again(|settings| settings.announce_host = "127.0.0.2".to_owned()).await;
    assert!(visitor.get("/console").await.html.contains("alice-app"));
    for (path, rest) in [("", "name=\"search\""), ("/messages", "name=\"device\"")] {
        let page = visitor.get(&format!("{APPLICATION}{path}")).await;
        for part in ["Service unavailable", "Cannot reach the handler at 127.0.0.2:", "Settings and keys", rest] {
            assert!(page.html.contains(part), "{path}: no {part}: {}", page.html);
        }
    }
    for path in ["webhooks", "functions"] {
        let page = visitor.get(&format!("{APPLICATION}/{path}")).await;
        assert!(page.status == 503 && page.html.contains("Cannot reach the handler at "), "{path}: {}", page.html);
    }
    let events = visitor.open(&format!("{APPLICATION}/live/events")).await;
    assert_eq!(events.status().as_u16(), 503);
    assert_eq!(events.headers()["content-type"], "text/plain; charset=utf-8");
    let text = events.text().await.unwrap();
    assert!(text.starts_with("Cannot reach the MQTT broker at 127.0.0.2:"), "{text}");

    let Some(browser) = Browser::start(&stack.settings().client.auth_server, "away", DESK).await else { return };
    log_in(&browser).await;
    browser.open(&format!("{APPLICATION}/live")).await;
    wait_for_text(&browser, "span[@id='state']", "Cannot reach the MQTT broker at 127.0.0.2:").await;
    wait_for_text(&browser, "span[@id='state']", "Reconnecting").await;
}

// Conformance: console: what is away is named
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_history_that_is_away_is_named_and_the_rest_is_shown() {
    let key = tempfile::tempdir().unwrap();
    let secret = key.path().join("secret");
    std::fs::write(&secret, "not used\n").unwrap();
    let (_stack, _dir, visitor, id) = started_again(|settings| {
        let bucket = &mut settings.history.bucket;
        bucket.url = "s3://away".to_owned();
        bucket.endpoint = Some("http://127.0.0.1:1".to_owned());
        bucket.access_key_id = Some("nobody".to_owned());
        bucket.secret_access_key_file = Some(secret);
    })
    .await;
    for path in ["messages", "devices/dev-1", "devices/dev-1/charts"] {
        let page = visitor.get(&format!("{APPLICATION}/{path}")).await;
        assert!(page.html.contains("The handler cannot read away, so its"), "{path}: {}", page.html);
        assert!(page.html.contains("celsius"), "{path}: {}", page.html);
    }
    let page = visitor.get(&format!("{APPLICATION}/messages/{id}")).await;
    assert!(page.html.contains("&#34;celsius&#34;: 2"), "{}", page.html);
}
