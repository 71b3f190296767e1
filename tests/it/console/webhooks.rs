//! Webhooks in the console: created, tested, their dead letters, deleted.

mod changes;

use client::account::AccountClient;
use outputs::RedisSettings;
use types::ApplicationRight;

use super::{
    newest,
    visitor::{Page, Visitor},
};
use crate::{
    delivery::webhooks::receiver::{Answer, Receiver},
    harness::{Network, Owner},
};

const PATH: &str = "/console/applications/alice-app/webhooks";

/// A network whose webhooks may have addresses of this machine.
async fn start() -> (Network, Owner, Visitor, Receiver) {
    let network = Network::with(|settings| settings.output.delivery.allow_private_addresses = true).await;
    let (alice, visitor) = super::visitor(&network).await;
    (network, alice, visitor, Receiver::start().await)
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_created_and_tested_and_deleted() {
    let (network, alice, visitor, mut receiver) = start().await;
    assert!(visitor.get(PATH).await.html.contains("no webhooks yet"));
    let url = format!("{}/{{dev_id}}?event={{event}}", receiver.url());
    let headers = "X-Key: secret-of-mine\r\nx-device: {dev_id}";
    let form = [("id", "my-hook"), ("url", &url), ("events", "up, down/acks"), ("headers", headers)];
    let page = visitor.post(PATH, &form).await;
    assert!(page.path.ends_with("/my-hook") && page.html.contains("The webhook is set"), "{}", page.html);
    assert!(page.html.contains("X-Key, x-device") && !page.html.contains("secret-of-mine"), "{}", page.html);

    let page = visitor.post(&format!("{PATH}/my-hook/test"), &[]).await;
    assert!(page.html.contains("has taken a sample message"), "{}", page.html);
    let sample = receiver.next().await;
    assert_eq!((sample.path.as_str(), sample.header("airlock-event")), ("/test-device?event=test", "test"));
    assert_eq!((sample.header("x-key"), &sample.json()["app_id"]), ("secret-of-mine", &"alice-app".into()));
    receiver.answer([Answer::Status(400)]);
    let page = visitor.post(&format!("{PATH}/my-hook/test"), &[]).await;
    assert!(page.html.contains("did not take a sample") && page.html.contains("400 Bad Request"), "{}", page.html);
    receiver.next().await;
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    assert_eq!(receiver.next().await.header("airlock-event"), "up", "a sample is not repeated");

    let page = visitor.get(&format!("{PATH}/my-hook/delete")).await;
    assert!(page.html.contains("Delete webhook my-hook?"), "{}", page.html);
    assert!(visitor.get(PATH).await.html.contains("my-hook"), "nothing is deleted yet");
    let page = visitor.post(&format!("{PATH}/my-hook/delete"), &[]).await;
    assert!(page.html.contains("Deleted.") && page.html.contains("no webhooks yet"), "{}", page.html);
    assert_eq!(visitor.get(&format!("{PATH}/my-hook")).await.status, 404);
    network.stack.stop().await;
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test]
async fn a_form_begins_with_what_a_receiver_needs() {
    let (_network, _alice, visitor, _receiver) = start().await;
    let page = visitor.get(PATH).await;
    assert!(page.html.contains("href=\"?template=n8n#new-heading\">n8n</a>"), "{}", page.html);
    assert_eq!((page.value("url"), page.value("id")), (String::new(), String::new()));
    let page = visitor.get(&format!("{PATH}?template=azure-functions")).await;
    assert!(page.html.contains("#new-heading\" aria-current=\"true\">Azure Functions</a>"), "{}", page.html);
    assert_eq!(page.value("url"), "https://my-app.azurewebsites.net/api/my-function");
    assert_eq!(page.value("id"), "azure-functions");
    assert!(page.html.contains("\nx-functions-key: my-key</textarea>"), "{}", page.html);
    let page = visitor.get(&format!("{PATH}?template=%3Cb%3E")).await;
    assert!(page.status == 200 && !page.html.contains("<b>"), "{}", page.html);
    assert_eq!(page.value("url"), "");
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test(flavor = "multi_thread")]
async fn what_a_webhook_did_not_take_is_shown_and_sent_again() {
    let (network, alice, visitor, mut receiver) = start().await;
    let url = receiver.url();
    visitor.post(PATH, &[("id", "my-hook"), ("url", &url), ("events", "up")]).await;
    receiver.answer([Answer::Status(400), Answer::Status(404)]);
    for payload in [[8, 52], [8, 53]] {
        alice.simulate("dev-1", &payload, 1).await.unwrap();
        receiver.next().await;
    }
    let page = visitor.until(&format!("{PATH}/my-hook"), "Resend all 2").await;
    assert!(page.html.contains("400 Bad Request") && page.html.contains("CDQ="), "{}", page.html);
    let list = visitor.get(PATH).await;
    assert!(list.html.contains("did not take some") && list.html.contains("404 Not Found"), "{}", list.html);

    let resend = format!("{PATH}/my-hook/dead-letters/resend");
    let page = visitor.post(&resend, &[("message", &page.value("message"))]).await;
    assert!(page.html.contains("at the end of the queue") && page.html.contains("Resend all 1"), "{}", page.html);
    assert_eq!(receiver.next().await.json()["payload_raw"], "CDQ=");
    visitor.post(&resend, &[]).await;
    assert_eq!(receiver.next().await.json()["payload_raw"], "CDU=");

    visitor.until(&format!("{PATH}/my-hook"), "It took everything").await;
    let page = visitor.post(&resend, &[]).await;
    assert!(page.html.contains("Nothing was left to send"), "{}", page.html);

    receiver.answer([Answer::Status(400)]);
    alice.simulate("dev-1", &[8, 54], 1).await.unwrap();
    receiver.next().await;
    visitor.until(&format!("{PATH}/my-hook"), "Delete all 1").await;
    let page = visitor.post(&format!("{PATH}/my-hook/dead-letters/delete"), &[]).await;
    assert!(page.html.contains("It took everything"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_only_fails_says_since_when_and_why() {
    let (network, alice, visitor, mut receiver) = start().await;
    let url = receiver.url();
    visitor.post(PATH, &[("id", "my-hook"), ("url", &url), ("events", "up")]).await;
    assert!(visitor.get(PATH).await.html.contains("nothing delivered yet"));
    receiver.answer([Answer::Status(500); 100]);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    receiver.next().await;
    let page = visitor.until(PATH, "deliveries fail").await;
    assert!(page.html.contains("Since <time") && page.html.contains("500 Internal Server Error"), "{}", page.html);
    assert!(!page.html.contains("nothing delivered yet"), "{}", page.html);
    let page = visitor.get(&format!("{PATH}/my-hook")).await;
    assert!(page.html.contains("Nothing has got through since"), "{}", page.html);
    assert!(page.html.contains("500 Internal Server Error"), "{}", page.html);
    let page = visitor.until(&format!("{PATH}/my-hook"), "The next attempt is at <time").await;
    let (_, waiting) = page.html.split_once("Messages that wait").unwrap();
    let link = waiting.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    assert!(link.contains("delivered?device=dev%2D1"), "{link}");
    let message = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    assert_eq!(visitor.get(&link).await.path, message);
    receiver.take_all();
    let page = visitor.until(PATH, ">delivers</span>").await;
    assert!(!page.html.contains("deliveries fail"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_which_webhooks_did_not_take_it() {
    let (network, alice, visitor, mut receiver) = start().await;
    let url = receiver.url();
    for (id, events) in [("my-hook", "up"), ("other", "activations")] {
        visitor.post(PATH, &[("id", id), ("url", &url), ("events", events)]).await;
    }
    receiver.answer([Answer::Status(400)]);
    let mut messages = Vec::new();
    for payload in [[8, 52], [8, 53]] {
        alice.simulate("dev-1", &payload, 1).await.unwrap();
        receiver.next().await;
        messages.push(format!("/console/applications/alice-app/messages/{}", newest(&alice).await));
    }
    let page = visitor.until(&messages[0], "not taken").await;
    let (_, deliveries) = page.html.split_once("deliveries-heading\">").unwrap();
    assert!(deliveries.contains("after 1 attempt: 400 Bad Request"), "{deliveries}");
    assert!(deliveries.contains("/webhooks/my-hook\">"), "{deliveries}");
    assert!(!deliveries.contains("/webhooks/other\">"), "{deliveries}");
    let letter = page.value("message");
    let page = visitor.until(&messages[1], "good\">delivered</span>").await;
    assert!(page.html.contains("status 200, ") && page.html.contains(", attempt 1."), "{}", page.html);
    assert!(!page.html.contains("not taken"), "{}", page.html);
    let page = visitor.get(&format!("{PATH}/my-hook")).await;
    let (_, recent) = page.html.split_once("recent-heading\">").unwrap();
    assert!(recent.contains("Of the latest 2, it took 1 (50.0 %), 1 at the first attempt."), "{recent}");
    assert!(recent.contains("/devices/dev-1\">") && recent.contains("good\">delivered</span> 200"), "{recent}");
    check_links(&visitor, &page, &messages).await;

    visitor.post(&format!("{PATH}/my-hook/dead-letters/resend"), &[("message", &letter)]).await;
    assert_eq!(receiver.next().await.json()["payload_raw"], "CDQ=");
    let page = visitor.post(&format!("{}/replay", messages[1]), &[("to", "webhook:my-hook")]).await;
    assert!(page.html.contains("Sent again to this receiver alone"), "{}", page.html);
    let again = receiver.next().await.json();
    assert_eq!((&again["payload_raw"], &again["is_retry"]), (&"CDU=".into(), &true.into()));
    let page = visitor.post(&format!("{}/replay", messages[1]), &[("to", "others")]).await;
    assert_eq!(page.status, 404, "{}", page.html);
    network.stack.stop().await;
}

/// Each row of the page of a webhook leads to its message, and its message to the row: the second was delivered, the
/// first is the only one that was not taken.
async fn check_links(visitor: &Visitor, page: &Page, messages: &[String]) {
    let (own, all) = (format!("{PATH}/my-hook"), page.html.split("href=\""));
    let links = all.filter(|link| link.starts_with(&format!("{own}/delivered?")));
    let mut led_to = Vec::new();
    for link in links {
        led_to.push(visitor.get(&link.split('"').next().unwrap().replace("&#38;", "&")).await.path);
    }
    assert_eq!(led_to, [1, 0, 0].map(|index: usize| messages[index].clone()));
    for message in messages {
        let message = visitor.get(message).await;
        let (_, anchor) = message.html.split_once(&format!("{own}#")).unwrap();
        let row = format!("<tr id=\"{}\">", anchor.split('"').next().unwrap());
        assert!(page.html.contains(&row), "{row}: {}", page.html);
    }
    // A message that was sent again was recorded long before: nothing else is taken for it.
    let other = "delivered?device=dev-1&event=up&accepted=2026-01-01T00:00:00Z&delivered=2026-01-01T00:00:00Z";
    assert_eq!(visitor.get(&format!("{own}/{other}")).await.path, "/console/applications/alice-app/messages");
    assert_eq!(visitor.get(&format!("{own}/delivered?device=dev-1")).await.status, 404);
}

// Conformance: console: what became of a message at each output
#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_when_the_next_attempt_is_and_then_when_it_was_delivered() {
    let (network, alice, visitor, mut receiver) = start().await;
    let url = receiver.url();
    visitor.post(PATH, &[("id", "my-hook"), ("url", &url), ("events", "up")]).await;
    receiver.answer([Answer::Status(500); 100]);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    receiver.next().await;
    let message = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let page = visitor.until(&message, " follows <time").await;
    assert!(page.html.contains("bad\">being tried</span>"), "{}", page.html);
    assert!(page.html.contains("the last time: 500 Internal Server Error"), "{}", page.html);
    receiver.take_all();
    let page = visitor.until(&message, "good\">delivered</span> <a").await;
    assert!(page.html.contains("status 200, ") && !page.html.contains(", attempt 1."), "{}", page.html);
    assert!(!page.html.contains("being tried"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: what became of a message at each output
#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_what_became_of_it_at_outputs_of_the_operator_and_over_mqtt() {
    let away = RedisSettings { name: "backup".into(), url: "redis://127.0.0.1:1".into(), ..RedisSettings::default() };
    let network = Network::with(|settings| settings.output.redis = vec![away]).await;
    let (alice, visitor) = super::visitor(&network).await;
    let _listener = alice.listen(&network).await;
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    let message = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    let page = visitor.until(&message, "Nothing has got through since then. The log of the server says why.").await;
    let (_, deliveries) = page.html.split_once("deliveries-heading\">").unwrap();
    assert!(deliveries.contains("Redis backup") && deliveries.contains("bad\">waits</span>"), "{deliveries}");
    assert!(
        deliveries.contains("MQTT subscribers") && deliveries.contains("One gets such messages now"),
        "{deliveries}"
    );
    assert!(!page.html.contains("is not connected"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: what became of a message at each output
#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_see_webhooks_does_not_see_what_became_of_a_message_there() {
    let (network, alice, visitor, mut receiver) = start().await;
    let url = receiver.url();
    visitor.post(PATH, &[("id", "my-hook"), ("url", &url), ("events", "up")]).await;
    receiver.answer([Answer::Status(400)]);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    receiver.next().await;
    let message = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    visitor.until(&message, "not taken").await;
    network.owner("bobby").await;
    let server = &network.stack.settings().client.auth_server;
    let (account, bobby) = (AccountClient::new(server).unwrap(), "bobby".parse().unwrap());
    account.set_collaborator(&alice.token, &alice.app_id, &bobby, &[ApplicationRight::MessagesUpRead]).await.unwrap();
    let page = Visitor::logged_in(server, "bobby").await.get(&message).await;
    assert!(page.status == 200 && page.html.contains("MQTT subscribers"), "{}: {}", page.status, page.html);
    assert!(!page.html.contains("my-hook") && !page.html.contains("400 Bad Request"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test]
async fn a_webhook_that_cannot_be_set_is_refused_and_what_was_typed_stays() {
    let (_network, _alice, visitor, receiver) = start().await;
    let url = receiver.url();
    visitor.post(PATH, &[("id", "my-hook"), ("url", &url)]).await;
    for (fields, status, expected) in [
        ([("id", "my-hook"), ("url", "https://example.com"), ("events", "")], 409, "webhook my-hook already exists"),
        ([("id", "<b>"), ("url", "https://example.com"), ("events", "")], 400, "id not valid"),
        ([("id", "other"), ("url", "<script>"), ("events", "")], 400, "URL not valid"),
        ([("id", "other"), ("url", "https://example.com"), ("events", "<i>")], 400, "there are up"),
    ] {
        let page = visitor.post(PATH, &fields).await;
        assert_eq!(page.status, status, "{}", page.html);
        assert!(page.html.to_lowercase().contains(&expected.to_lowercase()), "{expected}: {}", page.html);
        for markup in ["<b>", "<script>", "<i>"] {
            assert!(!page.html.contains(markup), "{}", page.html);
        }
        let typed = page.html.split("name=\"events\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(typed.is_empty(), fields[2].1.is_empty(), "{}", page.html);
    }
    let shown = visitor.get(&format!("{PATH}/my-hook")).await;
    assert!(shown.html.contains(&url), "it is not replaced");
    assert_eq!(visitor.get(&format!("{PATH}/nobody")).await.status, 404);
    assert_eq!(visitor.post(&format!("{PATH}/nobody/test"), &[]).await.status, 404);
}

// Conformance: console: webhooks created, tested, resent, deleted
#[tokio::test]
async fn a_refused_form_comes_back_without_its_secrets() {
    let (_network, _alice, visitor, _receiver) = start().await;
    let form = [
        ("id", "my-hook"),
        ("url", "no-url-of-mine"),
        ("headers", "Authorization: Bearer token-of-mine"),
        ("secret", "key-of-mine"),
    ];
    let page = visitor.post(PATH, &form).await;
    assert!(page.status == 400 && page.html.contains("no-url-of-mine"), "{}: {}", page.status, page.html);
    assert!(page.html.contains("Type them again") && page.html.contains("Type it again"), "{}", page.html);
    for secret in ["token-of-mine", "key-of-mine"] {
        assert!(!page.html.contains(secret), "{secret}: {}", page.html);
    }

    let form = [("id", "my-hook"), ("url", "no-url-of-mine"), ("headers", ""), ("secret", "")];
    let page = visitor.post(PATH, &form).await;
    assert!(page.status == 400 && page.html.contains("no-url-of-mine"), "{}: {}", page.status, page.html);
    assert!(!page.html.contains("Type them again") && !page.html.contains("Type it again"), "{}", page.html);
}
