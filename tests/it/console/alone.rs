//! The console at an address of its own, as an OAuth client like any other.

use std::sync::Arc;

use account::ClientSettings;
use client::{Trust, account::AccountClient, discovery::DiscoveryClient};
use console::{Console, ConsoleAddress, Environment, Settings};
use server::{
    error_response::ErrorFormat,
    seal::{KeyOwner, SealingKeys},
    serve::{HttpService, Listeners, ServeSettings, Server},
    system::{OsRandom, SystemClock},
};
use tokio_util::sync::CancellationToken;
use types::{Scope, Secret};

use super::visitor::Visitor;
use crate::harness::Network;

/// Starts a console that finds the discovery service at an address; returns its URL.
async fn start(network: &Network, listeners: Listeners, discovery: DiscoveryClient) -> String {
    start_with(network, listeners, Settings::default(), |console| console.connect(discovery)).await
}

/// Starts a console that was prepared; returns its URL.
pub(super) async fn start_with(
    network: &Network,
    listeners: Listeners,
    settings: Settings,
    prepare: impl FnOnce(&Console),
) -> String {
    let account_url = network.stack.settings().client.auth_server.clone();
    let public_url = format!("http://{}", listeners.addresses()[0]);
    let stop = CancellationToken::new();
    let environment = Environment {
        account: AccountClient::new(&account_url).unwrap(),
        client_secret: Secret::default(),
        handler_id: "handler".parse().unwrap(),
        allow_insecure: false,
        keys: SealingKeys::new(KeyOwner::Console, &[7; 32]).unwrap(),
        clock: Arc::new(SystemClock),
        random: Arc::new(OsRandom),
        stop: stop.clone(),
    };
    let settings = Settings { client_id: "my-console".parse().unwrap(), ..settings };
    let console =
        Console::new(settings, ConsoleAddress::Alone { public_url: public_url.clone(), account_url }, environment);
    prepare(&console);
    let server = Server::new(ServeSettings::default(), Arc::new(OsRandom), stop);
    drop(server.start(HttpService::new("console", console.router(), ErrorFormat::Account), listeners));
    public_url
}

/// The services, with an OAuth client for a console at the listeners' address.
pub(super) async fn network(listeners: &Listeners) -> Network {
    let client = ClientSettings {
        secret: None,
        first_party: false,
        scope: vec![Scope::Profile, Scope::Apps],
        redirect_uris: vec![format!("http://{}{}", listeners.addresses()[0], Settings::CALLBACK)],
        legacy: false,
    };
    Network::with(|settings| {
        settings.account.clients.insert("my-console".parse().unwrap(), client);
    })
    .await
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn a_console_alone_asks_for_consent_and_then_shows_the_same() {
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let network = network(&listeners).await;
    network.owner("alice").await;
    let url = start(&network, listeners, network.discovery()).await;
    let visitor = Visitor::new(&url);
    let account = &network.stack.settings().client.auth_server;
    visitor.log_in(account, "alice").await;
    let page = visitor.get("/").await;
    assert!(page.html.contains("Allow my-console to act for you?"), "{}: {}", page.path, page.html);
    let page = visitor.consent(account, &page).await;
    assert!(page.path == "/console" && page.html.contains("alice-app"), "{}: {}", page.path, page.html);
    assert!(page.html.contains(&format!("{account}/my/gateways")), "{}", page.html);
    assert!(page.header("content-security-policy").contains(&format!("form-action 'self' {account}")));
    let page = visitor.get("/console/applications/alice-app").await;
    assert!(page.html.contains("has no devices"), "{}", page.html);
}

// Conformance: serve console, and the console of serve
#[tokio::test]
async fn a_page_says_which_service_is_away_and_shows_the_rest() {
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let network = network(&listeners).await;
    network.owner("alice").await;
    let away = DiscoveryClient::connect("127.0.0.1:1", &Trust::Plaintext).unwrap();
    let url = start(&network, listeners, away).await;
    let visitor = Visitor::new(&url);
    let account = &network.stack.settings().client.auth_server;
    visitor.log_in(account, "alice").await;
    let page = visitor.get("/console").await;
    let page = visitor.consent(account, &page).await;
    assert!(page.html.contains("alice-app"), "{}", page.html);
    for path in ["/console/applications/alice-app", "/console/applications/alice-app/messages?device=dev-1"] {
        let page = visitor.get(path).await;
        assert!(page.html.contains("Service unavailable") && page.html.contains("discovery service"), "{}", page.html);
        assert!(page.html.contains("Settings and keys"), "{}", page.html);
    }
}

#[tokio::test]
async fn a_form_is_kept_while_the_services_are_away() {
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let network = network(&listeners).await;
    let url = start(&network, listeners, network.discovery()).await;
    let account = network.stack.settings().client.auth_server.clone();
    network.owner("alice").await;
    let visitor = Visitor::new(&url);
    visitor.log_in(&account, "alice").await;
    let consent = visitor.get("/console").await;
    visitor.consent(&account, &consent).await;
    network.stack.stop().await;
    let path = "/console/applications/alice-app/functions";
    let page = visitor.post(path, &[("do", "save"), ("decoder", "// typed for an hour")]).await;
    assert_eq!(page.status, 503, "{}", page.html);
    assert!(page.html.contains("kept as a draft"), "{}", page.html);
    // It cannot be shown before they are back, because the page needs them.
    let draft = page.link("Open the draft");
    assert_eq!((draft.starts_with("/console/drafts/"), visitor.get(&draft).await.status), (true, 503));
}

#[tokio::test]
async fn the_form_of_the_first_application_waits_for_services_that_start() {
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let network = network(&listeners).await;
    let mut starting = None;
    let url = start_with(&network, listeners, Settings::default(), |console| starting = Some(console.clone())).await;
    let account = network.stack.settings().client.auth_server.clone();
    network.owner("alice").await;
    let visitor = Visitor::new(&url);
    visitor.log_in(&account, "alice").await;
    let consent = visitor.get("/console").await;
    visitor.consent(&account, &consent).await;
    let start = async {
        let page = visitor.get("/console/applications/alice-app").await;
        assert!(page.html.contains("services are starting"), "{}", page.html);
        starting.unwrap().connect(network.discovery());
    };
    let form = [("app_id", "alice-app"), ("dev_id", "my-first-device"), ("sample", "decoder")];
    let (page, ()) = tokio::join!(visitor.post("/console/first-application", &form), start);
    assert!(page.status == 200 && page.html.contains("&#34;temperature&#34;:23.96"), "{}", page.html);
}
