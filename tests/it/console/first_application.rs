//! The form of a user's first application: from nothing to a decoded uplink in the live view.

use api::rest::account::NewUser;
use client::account::AccountClient;
use types::{ApplicationRight, Secret};

use super::visitor::{Page, Visitor};
use crate::harness::{Network, PASSWORD, server_process::ServerProcess};

const PATH: &str = "/console/first-application";
const APPLICATION: &str = "/console/applications/alice-app";
/// The result of the decoder, as a page has it.
const DECODED: &str = "{&#34;temperature&#34;:23.96, &#34;humidity&#34;:55}";

fn account(network: &Network) -> AccountClient {
    AccountClient::new(&network.stack.settings().client.auth_server).unwrap()
}

/// A user without an application, logged in.
async fn newcomer(network: &Network, name: &str) -> Visitor {
    let (username, email) = (name.parse().unwrap(), format!("{name}@example.com"));
    account(network).register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
    logged_in(network, name).await
}

async fn logged_in(network: &Network, name: &str) -> Visitor {
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, name).await;
    visitor.get("/console").await;
    visitor
}

async fn send(visitor: &Visitor, app_id: &str) -> Page {
    visitor.post(PATH, &[("app_id", app_id), ("dev_id", "my-first-device"), ("sample", "decoder")]).await
}

/// The number of stored uplinks and of versions of Alice's application.
async fn counted(visitor: &Visitor) -> [usize; 2] {
    let messages = visitor.get(&format!("{APPLICATION}/messages?kind=up")).await;
    let versions = visitor.get(&format!("{APPLICATION}/versions")).await;
    let count = |page: &Page, path: &str| page.html.matches(&format!("href=\"{APPLICATION}/{path}/")).count();
    [count(&messages, "messages"), count(&versions, "versions")]
}

/// Sends the form of the first account, with what it suggests, with or without its box for an application.
async fn create_first_account(process: &ServerProcess, application: &[(&str, &str)]) -> (Visitor, Page) {
    server::system::install_crypto();
    let site = process.place("account");
    let visitor = Visitor::new(site);
    let form = visitor.get(process.first_account_link().unwrap().strip_prefix(site).unwrap()).await;
    for part in ["name=\"application\" value=\"yes\" checked", "value=\"admin\"", "value=\"admin@localhost\""] {
        assert!(form.html.contains(part), "{part}: {}", form.html);
    }
    let first = form.value("first");
    let suggested = [("first", first.as_str()), ("username", "admin"), ("email", "admin@localhost")];
    let fields = [&suggested[..], &[("password", PASSWORD)], application].concat();
    let page = visitor.post("/register", &fields).await;
    (visitor, page)
}

// Conformance: the first account: an operator's, by a link that works once
// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn the_first_account_comes_with_an_application_that_is_created_once() {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let (admin, page) = create_first_account(&process, &[("application", "yes")]).await;
    assert_eq!((page.status, page.path.as_str()), (200, "/console/applications/admin-app/live"), "{}", page.html);
    assert!(page.html.contains(DECODED), "{}", page.html);
    let cookies = admin.set_cookies();
    let wanted: Vec<_> = cookies.iter().filter(|cookie| cookie.starts_with("first_application=")).collect();
    let attributes = ["HttpOnly", "SameSite=Strict", "Path=/console"];
    assert!(wanted.len() == 2 && attributes.iter().all(|part| wanted[0].contains(part)), "{wanted:?}");
    assert!(wanted[1].starts_with("first_application=;") && wanted[1].contains("Max-Age=0"), "{wanted:?}");
    assert_eq!(admin.get(PATH).await.path, "/console");
    let messages = admin.get("/console/applications/admin-app/messages?kind=up").await;
    assert_eq!(messages.html.matches("href=\"/console/applications/admin-app/messages/").count(), 1);
}

// Conformance: the first account: an operator's, by a link that works once
// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn no_application_is_created_that_the_first_account_does_not_ask_for() {
    let dir = tempfile::tempdir().unwrap();
    let process = ServerProcess::start(dir.path());
    let (admin, page) = create_first_account(&process, &[]).await;
    assert!(page.path == "/console" && page.html.contains("First application</h2>"), "{}", page.html);
    // A page of another site leads there, or a program at another port of this host has set the cookie.
    let planted = [("cookie", "first_application=wanted"), ("sec-fetch-site", "same-site")];
    for headers in [&planted[..0], &planted] {
        let response = admin.open_with(PATH, headers).await;
        let place = response.headers().get("location").map(|place| place.to_str().unwrap());
        assert_eq!((response.status().as_u16(), place), (303, Some("/console")), "{headers:?}");
    }
    assert_eq!(admin.get("/console").await.value("app_id"), "admin-app", "there still is none");
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn one_form_leads_from_nothing_to_a_decoded_uplink() {
    let network = Network::start().await;
    let alice = newcomer(&network, "alice").await;
    let empty = alice.get("/console").await;
    assert_eq!((empty.value("app_id").as_str(), empty.value("dev_id").as_str()), ("alice-app", "my-first-device"));
    assert!(empty.html.contains("<details><summary>Change ids"), "one button is enough: {}", empty.html);

    let page = send(&alice, "alice-app").await;
    assert_eq!((page.status, page.path.as_str()), (200, "/console/applications/alice-app/live"), "{}", page.html);
    for part in [DECODED, "095C37", ">simulated</span>", "What comes next", "Ask the operator"] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("network_brokers"), "only operators change settings: {}", page.html);
    let messages = alice.get(&format!("{APPLICATION}/messages")).await;
    assert!(messages.html.contains(DECODED) && messages.html.contains(">simulated</span>"), "{}", messages.html);
    assert!(!alice.get("/console").await.html.contains("First application</h2>"));
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn who_registers_later_finds_the_same_button() {
    let network = Network::start().await;
    network.owner("alice").await;
    let bobby = Visitor::new(&network.stack.settings().client.auth_server);
    let who = [("username", "bobby"), ("email", "bobby@example.com")];
    let fields = [&who[..], &[("password", PASSWORD), ("password_again", PASSWORD)]].concat();
    let empty = bobby.post("/register", &fields).await;
    assert_eq!((empty.path.as_str(), empty.value("app_id").as_str()), ("/console", "bobby-app"), "{}", empty.html);
    let listed = bobby.get("/my/applications").await;
    assert_eq!(listed.link("Create the first one"), "/console", "the account's pages lead there, too");
    let page = send(&bobby, "bobby-app").await;
    assert!(page.path.ends_with("/bobby-app/live") && page.html.contains(DECODED), "{}", page.html);
    assert!(!bobby.get("/my/applications").await.html.contains("Create the first one"));
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn a_form_that_is_sent_again_or_twice_at_once_creates_nothing_twice() {
    let network = Network::start().await;
    let alice = newcomer(&network, "alice").await;
    let (one, other) = tokio::join!(send(&alice, "alice-app"), send(&alice, "alice-app"));
    for page in [one, other] {
        assert!(page.status == 200 && page.html.contains(DECODED), "{}", page.html);
    }
    let device = format!("{APPLICATION}/devices/my-first-device/change");
    let dev_eui = alice.get(&device).await.value("dev_eui");
    assert_eq!(counted(&alice).await, [1, 1]);
    assert!(send(&alice, "alice-app").await.html.contains(DECODED));
    assert_eq!(counted(&alice).await, [1, 1]);
    assert_eq!(alice.get(&device).await.value("dev_eui"), dev_eui);
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn a_form_whose_answer_was_lost_half_way_goes_on() {
    let network = Network::start().await;
    // It is registered, and has neither functions nor devices.
    network.owner("alice").await;
    let alice = logged_in(&network, "alice").await;
    let page = send(&alice, "alice-app").await;
    assert!(page.status == 200 && page.html.contains(DECODED), "{}", page.html);
    assert_eq!(counted(&alice).await, [1, 1]);
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn ids_that_are_taken_or_not_valid_are_refused_and_what_was_typed_stays() {
    let network = Network::start().await;
    let owner = network.owner("alice").await;
    owner.set_functions(["function Decoder() { return { mine: 1 }; }", "", ""]).await.unwrap();
    let bobby = newcomer(&network, "bobby").await;
    let page = send(&bobby, "alice-app").await;
    assert_eq!((page.status, page.value("app_id").as_str()), (409, "alice-app"));
    assert!(page.html.contains("role=\"alert\"") && page.html.contains("alice-app is taken"), "{}", page.html);
    assert!(page.html.contains("<details open><summary>Change ids"), "{}", page.html);

    let alice = logged_in(&network, "alice").await;
    let page = send(&alice, "alice-app").await;
    assert!(page.status == 409 && page.html.contains("has other functions"), "{}", page.html);
    assert_eq!(counted(&alice).await, [0, 1]);
    for (app_id, dev_id, sample) in
        [("<b>", "my-device", "decoder"), ("my-app", "No", "decoder"), ("my-app", "my-device", "other")]
    {
        let page = bobby.post(PATH, &[("app_id", app_id), ("dev_id", dev_id), ("sample", sample)]).await;
        assert!(page.status == 400 && page.html.contains("not valid"), "{}", page.html);
        assert_eq!((page.value("app_id").as_str(), page.value("dev_id").as_str()), (app_id, dev_id));
        assert!(!page.html.contains("<b>"), "{}", page.html);
    }
    assert_eq!(bobby.post_from(Some("https://evil.example"), PATH, &[("app_id", "my-app")]).await.status, 403);
    assert!(bobby.get("/console").await.html.contains("First application</h2>"), "there still is none");
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn who_may_only_read_an_application_does_not_change_it() {
    let network = Network::start().await;
    let owner = network.owner("alice").await;
    let bobby = newcomer(&network, "bobby").await;
    let rights = [ApplicationRight::MessagesUpRead];
    let account = account(&network);
    account.set_collaborator(&owner.token, &owner.app_id, &"bobby".parse().unwrap(), &rights).await.unwrap();
    let page = send(&bobby, "alice-app").await;
    assert!(page.status == 403 && page.html.contains("Access denied"), "{}", page.html);
    assert_eq!(counted(&logged_in(&network, "alice").await).await, [0, 0]);
}

// Conformance: console: the first application in one form, up to a decoded uplink; nothing is created twice
#[tokio::test]
async fn the_other_sample_needs_no_function() {
    let network = Network::start().await;
    let alice = newcomer(&network, "alice").await;
    let form = [("app_id", "alice-app"), ("dev_id", "my-first-device"), ("sample", "cayenne")];
    for _ in 0..2 {
        let page = alice.post(PATH, &form).await;
        assert!(page.html.contains("&#34;temperature_1&#34;:23.9"), "{}", page.html);
    }
    assert_eq!(counted(&alice).await, [1, 1]);
}
