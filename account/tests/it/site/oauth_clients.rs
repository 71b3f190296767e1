//! Programs that act for users: consent, code, and revocation.

use std::collections::BTreeMap;

use airlock_account::OperatorClient;
use reqwest::Url;

use super::{Browser, Page};
use crate::{
    oauth::authorize::{CHALLENGE, VERIFIER, redeem, with_app},
    service::{PASSWORD, Service, send},
};

const ASKS: &str = "/users/authorize?client_id=app&redirect_uri=https://app.example.com/callback&response_type=code\
                    &state=%22%3E%3Cb%3E%26x&scope=profile";
const APP: (&str, &str) = ("app", "app-secret");

fn decision_form(page: &Page, decision: &str) -> Vec<(String, String)> {
    let hidden = page.all("main form input[type=hidden]");
    let mut fields: Vec<_> = hidden
        .iter()
        .map(|field| (field.attr("name").unwrap().to_owned(), field.attr("value").unwrap().to_owned()))
        .collect();
    fields.push(("decision".to_owned(), decision.to_owned()));
    fields
}

async fn decide(browser: &mut Browser<'_>, page: &Page, decision: &str) -> BTreeMap<String, String> {
    let fields = decision_form(page, decision);
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let place = browser.post("/users/authorize", &fields).await.place();
    Url::parse(&place).unwrap().query_pairs().into_owned().collect()
}

#[tokio::test]
async fn consent_is_remembered_until_it_is_revoked() {
    let service = Service::start_with(with_app()).await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let consent = alice.get(ASKS).await.place();
    let page = alice.get(&consent).await;
    page.check(&consent);
    assert!(page.text("h1").contains("app") && page.text("main ul").contains("your profile"));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.ends_with("form-action 'self' https://app.example.com"), "{policy}");
    let denied = decide(&mut alice, &page, "deny").await;
    assert_eq!((denied["error"].as_str(), denied["state"].as_str()), ("access_denied", "\"><b>&x"));
    let allowed = decide(&mut alice, &page, "allow").await;
    let token =
        redeem(&service, APP, &[("code", &allowed["code"]), ("redirect_uri", "https://app.example.com/callback")])
            .await;
    assert_eq!(token.status, 200, "{token:?}");
    assert!(alice.get(ASKS).await.place().starts_with("https://app.example.com/callback?code="), "remembered");
    assert_eq!(alice.get(&consent).await.place(), ASKS, "nothing to ask");
    let page = alice.get("/users/profile").await;
    assert_eq!(page.text("#clients-heading ~ ul h3"), "app");
    alice.post("/users/profile/clients/app/revoke", &[]).await;
    assert!(alice.get(ASKS).await.place().starts_with("/users/consent"));
}

#[tokio::test]
async fn a_login_for_a_program_names_it_and_redirects_to_it() {
    let service = Service::start_with(with_app()).await;
    let mut alice = Browser::of_user(&service, "alice").await;
    alice.cookie.clear();
    let login = alice.get(ASKS).await.place();
    let page = alice.get(&login).await;
    page.check(&login);
    assert_eq!(page.text(".lead strong"), "app");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.ends_with("form-action 'self' https://app.example.com"), "{policy}");
    let next = page.value("[name=next]").to_owned();
    let place =
        alice.post("/users/login", &[("username", "alice"), ("password", PASSWORD), ("next", &next)]).await.place();
    assert_eq!(place, ASKS);
    for evil in [
        "/users/login?next=%2Fusers%2Fauthorize%3Fclient_id%3Dapp%26redirect_uri%3Dhttps%3A%2F%2Fevil.example%26\
         response_type%3Dcode",
        "/users/login?next=https://evil.example",
    ] {
        let page = Browser::new(&service).get(evil).await;
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(!policy.contains("evil") && !page.has(".lead"), "{policy}");
    }
}

#[tokio::test]
async fn the_command_line_gets_its_code_from_a_page() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let front = alice.get("/").await;
    let begin = front.all("main a[href*=ttnctl]")[0].attr("href").unwrap().to_owned();
    let consent = alice.get(&begin).await.place();
    let page = alice.get(&consent).await;
    let fields = decision_form(&page, "allow");
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let page = alice.submit("/users/authorize", &fields).await;
    page.check("/oauth/callback/ttnctl");
    let code = page.value("#code");
    assert_eq!(page.text("pre"), format!("ttnctl user login {code}"));
    let token = redeem(&service, ("ttnctl", "ttnctl"), &[("code", code)]).await;
    assert_eq!(token.status, 200, "{token:?}");
}

#[tokio::test]
async fn our_command_line_uses_pkce() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let redirect_uri = "/oauth/callback/airlock";
    let asks = format!("/users/authorize?client_id=airlock&redirect_uri={redirect_uri}&response_type=code");
    let refused = alice.get(&asks).await.place();
    assert!(refused.starts_with("/oauth/callback/airlock?error=invalid"), "{refused}");
    assert!(alice.get(&refused).await.text("main").contains("no code"));
    let consent = alice.get(&format!("{asks}&code_challenge={CHALLENGE}&code_challenge_method=S256")).await.place();
    let page = alice.get(&consent).await;
    let fields = decision_form(&page, "allow");
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let page = alice.submit("/users/authorize", &fields).await;
    let code = page.value("#code");
    assert_eq!(page.text("pre"), format!("airlock user login {code}"));
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", "airlock"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", VERIFIER),
    ];
    let token = send(service.request("POST", "/users/token", "").form(&form)).await;
    assert_eq!(token.status, 200, "{token:?}");
}

#[tokio::test]
async fn every_first_party_client_can_have_its_code_shown() {
    const PAGE: &str = "/oauth/callback/own";
    let service = Service::start().await;
    let mut browser = Browser::new(&service);
    assert_eq!(browser.get(PAGE).await.status, 404);
    let id: types::ClientId = "own".parse().unwrap();
    let own = OperatorClient {
        id: id.clone(),
        description: "A program of the operator's".to_owned(),
        scope: vec![types::Scope::Apps],
        redirect_uris: vec![PAGE.to_owned()],
        first_party: true,
        public: false,
        legacy: false,
    };
    service.account.register_client(own).await.unwrap();
    assert_eq!(browser.get(&format!("{PAGE}?code=c")).await.text("pre"), "own user login c");
    service.account.remove_client(&id).await.unwrap();
    assert_eq!(browser.get(PAGE).await.status, 404);
}

#[tokio::test]
async fn escapes_text_from_the_url() {
    let service = Service::start().await;
    let mut browser = Browser::new(&service);
    let page = browser.get("/oauth/callback/ttnctl?code=%3Cb%3E%22x").await;
    assert_eq!((page.value("#code"), page.has("main b")), ("<b>\"x", false));
    let page = browser.get("/users/login?next=%22%3E%3Cb%3E").await;
    assert_eq!((page.value("[name=next]"), page.has("main b")), ("\"><b>", false));
    let denied = browser.get("/oauth/callback/ttnctl?error=access_denied").await;
    assert!(denied.text("main").contains("no code") && denied.has("main a[href*=authorize]"));
}
