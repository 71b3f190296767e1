//! The console over HTTP, as a browser without scripts uses it, and where scripts matter, in a real one.

mod alone;
mod audit;
mod away;
pub(crate) mod bridges;
mod browsing;
mod compression;
mod device_code;
mod devices;
mod drafts;
mod exports;
mod first_application;
mod function_editor;
mod functions;
mod messages;
pub(crate) mod operator;
mod share;
mod users;
pub(crate) mod visitor;
mod webhooks;

use api::rest::handler::Device;

use self::visitor::Visitor;
use crate::harness::{Network, Owner};

/// Decodes a temperature, and fails on a payload that is too short.
const DECODER: &str = "function Decoder(bytes, port) {
  if (bytes.length < 2) {
    throw new Error('<script>too short</script>');
  }
  return { celsius: (bytes[0] << 8 | bytes[1]) / 100 };
}";

/// A user with a device and functions, logged in.
async fn visitor(network: &Network) -> (Owner, Visitor) {
    let alice = network.owner("alice").await;
    alice.add_device("dev-1").await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, "alice").await;
    visitor.get("/console").await;
    (alice, visitor)
}

/// A device as the handler has it; none if it has none.
async fn stored(alice: &Owner, dev_id: &str) -> Option<Device> {
    let device = alice.handler.get_device(&alice.app_id, &dev_id.parse().unwrap()).await.ok()?;
    Some(device.try_into().unwrap())
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn one_login_opens_all_pages_and_one_logout_closes_them() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    let page = visitor.get("/console").await;
    assert_eq!((page.status, page.path.as_str()), (200, "/console"));
    assert!(page.html.contains("alice-app") && page.html.contains("/my/gateways"));
    let account = visitor.get("/my/applications/alice-app").await;
    assert!(account.html.contains("/console/applications/alice-app"), "{}", account.html);

    visitor.post("/logout", &[]).await;
    let page = visitor.get("/console/applications/alice-app").await;
    assert!(page.path.starts_with("/users/login"), "{}", page.path);
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn the_token_is_in_no_page_and_in_no_cookie_that_scripts_read() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    let page = visitor.get("/console/applications/alice-app").await;
    assert!(!page.html.contains("eyJ"), "{}", page.html);
    let cookies = visitor.set_cookies();
    let console: Vec<_> = cookies.iter().filter(|cookie| cookie.starts_with("console")).collect();
    assert!(!console.is_empty());
    for cookie in console {
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && !cookie.contains("eyJ"), "{cookie}");
    }
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn what_a_user_may_not_see_is_not_found() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    network.owner("bobby").await;
    for path in [
        "/console/applications/bobby-app",
        "/console/applications/bobby-app/messages",
        "/console/applications/bobby-app/charts?device=dev-1",
        "/console/applications/bobby-app/functions",
        "/console/applications/nobodys",
        "/console/applications/NO",
        "/console/applications/alice-app/devices/none",
        "/console/applications/alice-app/messages/none",
        "/console/applications/alice-app/versions/99",
        "/console/nothing",
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 404, "{path}: {}", page.html);
        assert!(page.html.contains("Not found"), "{path}: {}", page.html);
    }
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn other_sites_cannot_send_forms() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let path = "/console/applications/alice-app/devices/dev-1/downlinks";
    let fields = [("form", "bytes"), ("payload", "01")];
    for origin in [Some("https://evil.example"), Some("null"), None] {
        let page = visitor.post_from(origin, path, &fields).await;
        assert_eq!(page.status, 403, "{origin:?}: {}", page.html);
    }
    assert!(alice.handler.list_downlinks(&alice.app_id, &"dev-1".parse().unwrap()).await.unwrap().is_empty());
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn devices_are_searched_and_paged() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    for number in 2..=60 {
        alice.add_device(&format!("dev-{number}")).await;
    }
    let first = visitor.get("/console/applications/alice-app").await;
    assert!(first.html.contains("1–50 of 60 devices.") && !first.html.contains("First devices"), "{}", first.html);
    let after = first.value("after");
    let second = visitor.get(&format!("/console/applications/alice-app?search=&after={after}")).await;
    assert!(second.html.contains("51–60 of 60 devices.") && second.html.contains("First devices"), "{}", second.html);
    assert!(!second.html.contains("More devices"), "{}", second.html);
    let count = |html: &str| html.matches("/devices/dev-").count();
    assert_eq!((count(&first.html), count(&second.html)), (50, 10));
    let found = visitor.get("/console/applications/alice-app?search=DEV-42").await;
    assert_eq!(count(&found.html), 1);
    let none = visitor.get("/console/applications/alice-app?search=%3Cscript%3E").await;
    assert!(none.html.contains("No device contains") && !none.html.contains("<script>"), "{}", none.html);
}

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn downlinks_are_sent_by_bytes_and_by_fields() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let functions = api::handler::Application {
        app_id: alice.app_id.to_string(),
        encoder: "function Encoder(object) { return [object.led]; }".to_owned(),
        ..Default::default()
    };
    alice.handler.set_application(functions).await.unwrap();
    let path = "/console/applications/alice-app/devices/dev-1/downlinks";
    let page = visitor.post(path, &[("form", "bytes"), ("payload", "01 ff"), ("port", "3")]).await;
    assert!(page.html.contains("01FF") && page.html.contains("Downlink queued."), "{}", page.html);
    let fields = [("form", "fields"), ("payload", r#"{"led": 7}"#), ("schedule", "last"), ("confirmed", "1")];
    assert!(visitor.post(path, &fields).await.html.contains("<code>07</code>"));

    for (fields, reason) in [
        ([("form", "bytes"), ("payload", "<b>")], "Payload not valid"),
        ([("form", "fields"), ("payload", "{")], "payload"),
    ] {
        let page = visitor.post(path, &fields).await;
        assert_eq!(page.status, 400, "{}", page.html);
        assert!(page.html.contains("role=\"alert\"") && page.html.contains(reason), "{}", page.html);
    }
    let device = "/console/applications/alice-app/devices/dev-1";
    for state in ["queued", "no longer queued"] {
        for downlink in ["01FF on port 3</code>", "{&#34;led&#34;:7}"] {
            visitor.until(device, &format!("<span class=\"badge\">{state}</span> <code>{downlink}")).await;
        }
        let page = visitor.post(&format!("{path}/clear"), &[]).await;
        assert!(page.html.contains("No downlinks are queued"), "{}", page.html);
    }
}

/// The id of the newest message in history, where it is as soon as it was accepted.
async fn newest(owner: &Owner) -> String {
    let query = api::history::Query { app_id: owner.app_id.to_string(), kind: "up".to_owned(), ..Default::default() };
    owner.handler.list_records(query).await.unwrap().records[0].id.clone()
}
