//! Webhooks changed in the console: what is not in the page stays, and nothing that was typed is lost.

use std::time::Duration;

use serde_json::{Value, json};
use types::ApplicationRight;

use crate::{
    console::visitor::{Page, Visitor},
    delivery::webhooks::{call, receiver::Receiver},
    harness::{Network, Owner},
};

const WEBHOOK: &str = "/console/applications/alice-app/webhooks/my-hook";
const CHANGE: &str = "/console/applications/alice-app/webhooks/my-hook/change";
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A network whose webhooks may have addresses of this machine, with a webhook that has headers and a key.
async fn start(network: &Network) -> (Owner, Visitor, Receiver) {
    let (alice, visitor) = crate::console::visitor(network).await;
    let receiver = Receiver::start().await;
    let headers = json!({"Authorization": "Bearer token-of-mine", "X-Key": "other-of-mine"});
    let webhook = json!({"url": receiver.url(), "events": ["up", "down/acks"], "headers": headers, "secret": KEY});
    let (status, set) = call(&network.handler_http(), &alice, "PUT", "/my-hook", webhook).await;
    assert_eq!(status, 200, "{set}");
    (alice, visitor, receiver)
}

async fn network() -> Network {
    Network::with(|settings| settings.output.delivery.allow_private_addresses = true).await
}

async fn stored(network: &Network, alice: &Owner) -> Value {
    call(&network.handler_http(), alice, "GET", "/my-hook", json!({})).await.1
}

/// The fields of the form of a page, some of them typed.
fn form<'a>(page: &Page, typed: &[(&'a str, &'a str)]) -> Vec<(&'a str, String)> {
    let untouched = ["base", "url", "events"].into_iter().filter(|name| !typed.iter().any(|(other, _)| other == name));
    let mut fields: Vec<_> = untouched.map(|name| (name, page.value(name))).collect();
    fields.extend(typed.iter().map(|(name, value)| (*name, (*value).to_owned())));
    fields
}

async fn submit(visitor: &Visitor, page: &Page, typed: &[(&str, &str)]) -> Page {
    let form = form(page, typed);
    let fields: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    visitor.post(CHANGE, &fields).await
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_as_it_was_stays_and_headers_and_key_are_in_no_page() {
    let network = network().await;
    let (alice, visitor, mut receiver) = start(&network).await;
    assert_eq!(visitor.get(WEBHOOK).await.link("Change"), CHANGE);
    let page = visitor.get(CHANGE).await;
    assert_eq!((page.value("url"), page.value("events").as_str()), (receiver.url(), "up down/acks"));
    let url = format!("{}/<b>", receiver.url());
    let changed = submit(&visitor, &page, &[("url", &url), ("headers", "x-key: new-of-mine")]).await;
    assert!(changed.path == WEBHOOK && changed.html.contains("The webhook was changed."), "{}", changed.html);
    assert!(!changed.html.contains("<b>"), "{}", changed.html);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    let request = receiver.next().await;
    let sent = ["authorization", "x-key"].map(|name| request.header(name));
    assert_eq!(sent, ["Bearer token-of-mine", "new-of-mine"]);
    assert!(request.header("webhook-signature").starts_with("v1,"), "it is still signed");

    let page = visitor.get(CHANGE).await;
    let boxes = [("remove_header", "Authorization"), ("remove_header", "x-key"), ("remove_secret", "yes")];
    let changed = submit(&visitor, &page, &[&boxes[..], &[("events", "")]].concat()).await;
    assert!(changed.html.contains("The webhook was changed."), "{}", changed.html);
    let now = stored(&network, &alice).await;
    assert_eq!((&now["header_names"], &now["is_signed"], &now["events"]), (&json!([]), &json!(false), &json!([])));
    for page in [page, visitor.get(CHANGE).await, changed] {
        for secret in ["token-of-mine", "other-of-mine", "new-of-mine", KEY] {
            assert!(!page.html.contains(secret), "{secret}: {}", page.html);
        }
    }
    assert!(visitor.get(CHANGE).await.html.contains("Requests are not signed."));
    network.stack.stop().await;
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test]
async fn a_change_that_is_not_valid_is_refused_at_its_field() {
    let network = network().await;
    let (alice, visitor, receiver) = start(&network).await;
    let opened = visitor.get(CHANGE).await;
    let elsewhere = receiver.url().replace("http://127.0.0.1", "http://localhost");
    for (typed, field) in [
        (&[("url", "<b>")][..], "url"),
        (&[("events", "up <i>")], "events"),
        (&[("headers", "hush-hush")], "headers"),
        (&[("headers", "Host: hush-hush")], "headers"),
        (&[("remove_header", "X-Key"), ("headers", "x-key: hush-hush")], "headers"),
        (&[("secret", "hush-hush")], "secret"),
        (&[("url", elsewhere.as_str())], "headers"),
    ] {
        let page = submit(&visitor, &opened, typed).await;
        assert_eq!(page.status, 400, "{typed:?}: {}", page.html);
        assert!(page.html.contains(&format!("id=\"{field}-wrong\"")), "{field}: {}", page.html);
        assert!(page.html.contains(&format!("href=\"#{field}\"")), "{field}: {}", page.html);
        assert!(page.html.contains("again: they are not kept"), "{}", page.html);
        for text in ["<b>", "<i>", "hush-hush", "token-of-mine"] {
            assert!(!page.html.contains(text), "{text}: {}", page.html);
        }
        let shown = |name: &str| typed.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(page.value("url"), shown("url").unwrap_or(receiver.url()));
        assert_eq!(page.value("events"), shown("events").unwrap_or("up down/acks".to_owned()));
    }
    assert_eq!(stored(&network, &alice).await["url"], receiver.url(), "nothing has changed");
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test]
async fn nothing_is_lost_when_somebody_else_changes_the_webhook_in_between() {
    let network = network().await;
    let (alice, visitor, receiver) = start(&network).await;
    let base = network.handler_http();
    let theirs = async |change: Value| assert_eq!(call(&base, &alice, "PATCH", "/my-hook", change).await.0, 200);
    let opened = visitor.get(CHANGE).await;
    let (mine, other) = (format!("{}/mine", receiver.url()), format!("{}/other", receiver.url()));
    theirs(json!({"url": other, "events": ["up/errors"], "headers": {"X-Key": null}})).await;
    let page = submit(&visitor, &opened, &[("url", &mine), ("remove_secret", "yes")]).await;
    assert_eq!(page.status, 409, "{}", page.html);
    let text = "Someone else has changed this webhook";
    assert!(page.html.contains(text) && page.html.contains(&other), "{}", page.html);
    assert_eq!((page.value("url"), page.value("events").as_str()), (mine.clone(), "up/errors"));
    assert!(page.html.contains("name=\"remove_secret\" value=\"yes\" checked"), "{}", page.html);
    assert!(!page.html.contains("Remove X-Key") && page.html.contains("Remove Authorization"), "{}", page.html);
    assert_eq!(stored(&network, &alice).await["url"], other, "nothing is saved");

    // What no page shows is noticed, too.
    theirs(json!({"headers": {"Authorization": "Bearer theirs-alone"}})).await;
    let page = submit(&visitor, &page, &[]).await;
    assert!(page.status == 409 && page.html.contains("Header values and key"), "{}", page.html);
    assert!(!page.html.contains("theirs-alone"), "{}", page.html);
    let saved = submit(&visitor, &page, &[]).await;
    assert!(saved.html.contains("The webhook was changed."), "{}", saved.html);
    let now = stored(&network, &alice).await;
    assert_eq!((&now["url"], &now["events"]), (&json!(mine), &json!(["up/errors"])));

    let lost = submit(&visitor, &page, &[("base", "<"), ("events", "up")]).await;
    assert_eq!(lost.status, 409, "without what it was opened with, a form replaces nothing");
    assert_eq!(call(&base, &alice, "DELETE", "/my-hook", json!({})).await.0, 200);
    let gone = submit(&visitor, &page, &[("events", "typed-by-me")]).await;
    assert!(gone.status == 404 && gone.html.contains("typed-by-me"), "{}: {}", gone.status, gone.html);
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test]
async fn a_change_that_is_there_already_is_no_conflict() {
    let network = network().await;
    let (alice, visitor, receiver) = start(&network).await;
    let opened = visitor.get(CHANGE).await;
    let url = format!("{}/mine", receiver.url());
    let typed = [("url", url.as_str()), ("remove_header", "X-Key")];
    // As a browser sends it whose connection was lost.
    for _ in 0..2 {
        let saved = submit(&visitor, &opened, &typed).await;
        assert!(saved.html.contains("The webhook was changed."), "{}", saved.html);
        let now = stored(&network, &alice).await;
        assert_eq!((&now["url"], &now["header_names"]), (&json!(url), &json!(["Authorization"])));
    }
    let base = network.handler_http();
    let theirs = async |change: Value| assert_eq!(call(&base, &alice, "PATCH", "/my-hook", change).await.0, 200);
    theirs(json!({"events": ["up/errors"]})).await;
    let page = submit(&visitor, &opened, &typed).await;
    assert!(page.status == 409 && page.html.contains("<td>Events</td>"), "{}: {}", page.status, page.html);
    assert!(!page.html.contains("<td>Address</td>") && !page.html.contains("<td>Headers</td>"), "{}", page.html);
    assert_eq!(stored(&network, &alice).await["events"], json!(["up/errors"]), "nothing is saved");

    theirs(json!({"events": ["up", "down/acks"], "headers": {"X-Key": "theirs-alone"}})).await;
    let page = submit(&visitor, &opened, &typed).await;
    assert!(page.status == 409 && page.html.contains("<td>Headers</td>"), "{}: {}", page.status, page.html);
    let names = json!(["Authorization", "X-Key"]);
    assert_eq!(stored(&network, &alice).await["header_names"], names, "what they have set stays");
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test(flavor = "multi_thread")]
async fn values_that_somebody_else_has_set_are_not_replaced_unseen() {
    let network = network().await;
    let (alice, visitor, mut receiver) = start(&network).await;
    let opened = visitor.get(CHANGE).await;
    let url = format!("{}/mine", receiver.url());
    let typed = [("url", url.as_str()), ("headers", "X-Key: new-of-mine")];
    let saved = submit(&visitor, &opened, &typed).await;
    assert!(saved.html.contains("The webhook was changed."), "{}", saved.html);
    let theirs = json!({"headers": {"X-Key": "theirs-alone"}});
    assert_eq!(call(&network.handler_http(), &alice, "PATCH", "/my-hook", theirs).await.0, 200);
    // As a browser sends it whose connection was lost.
    let page = submit(&visitor, &opened, &typed).await;
    assert!(page.status == 409 && page.html.contains("<td>Header values and key</td>"), "{}", page.html);
    assert!(!page.html.contains("theirs-alone") && !page.html.contains("new-of-mine"), "{}", page.html);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    assert_eq!(receiver.next().await.header("x-key"), "theirs-alone");

    let saved = submit(&visitor, &page, &typed).await;
    assert!(saved.html.contains("The webhook was changed."), "{}", saved.html);
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    assert_eq!(receiver.next().await.header("x-key"), "new-of-mine");
    network.stack.stop().await;
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test]
async fn what_was_typed_about_a_webhook_comes_back_after_the_login() {
    let (network, clock) =
        Network::with_clock(|settings| settings.output.delivery.allow_private_addresses = true).await;
    let (_alice, visitor, receiver) = start(&network).await;
    let opened = visitor.get(CHANGE).await;
    // Longer than a token is valid, and shorter than a session of the account site.
    clock.advance(Duration::from_secs(2 * 3600));
    let url = format!("{}/slowly", receiver.url());
    let typed = [("url", url.as_str()), ("headers", "a: token-of-mine"), ("secret", KEY), ("remove_header", "X-Key")];
    let page = submit(&visitor, &opened, &typed).await;
    assert!(
        page.path.starts_with("/console/drafts/") && page.html.contains("may not have been saved"),
        "{}",
        page.html
    );
    assert!(page.value("url") == url && page.html.contains("value=\"X-Key\" checked"), "{}", page.html);
    assert!(!page.html.contains("token-of-mine") && !page.html.contains(KEY), "{}", page.html);
    let saved = submit(&visitor, &page, &[]).await;
    assert!(saved.html.contains("The webhook was changed.") && saved.html.contains(&url), "{}", saved.html);
}

// Conformance: console: webhooks changed; nothing typed is lost, and no secret is in a page
#[tokio::test]
async fn nobody_else_changes_a_webhook() {
    let network = network().await;
    let (alice, visitor, _receiver) = start(&network).await;
    let opened = visitor.get(CHANGE).await;
    network.owner("bobby").await;
    let login = &network.stack.settings().client.auth_server;
    let other = Visitor::logged_in(login, "bobby").await;
    assert_eq!(other.get(CHANGE).await.status, 404);
    let refused = submit(&other, &opened, &[("events", "up")]).await;
    assert_eq!(refused.status, 404, "{}", refused.html);

    // Who may change the settings, but not read messages, must not have them sent anywhere.
    let account = client::account::AccountClient::new(login).unwrap();
    let (bobby, rights) = ("bobby".parse().unwrap(), [ApplicationRight::Settings]);
    account.set_collaborator(&alice.token, &alice.app_id, &bobby, &rights).await.unwrap();
    let opened = other.get(CHANGE).await;
    let refused = submit(&other, &opened, &[("events", "up")]).await;
    assert!(refused.status == 403 && refused.html.contains("messages:up:r"), "{}: {}", refused.status, refused.html);
    assert_eq!(stored(&network, &alice).await["events"], json!(["up", "down/acks"]));
}
