//! Logging in at OpenID Connect providers, and linking such logins.

mod checks;
mod stand_in;

use airlock_account::Settings;
use reqwest::Url;
use serde_json::{Value, json};

use self::stand_in::StandIn;
use super::{Browser, Page};
use crate::service::{PASSWORD, Service};

const BEGIN: &str = "/users/login/example";
const LINK: &str = "/users/profile/logins/example";
const LOGINS: &str = "/users/profile/logins";
const NEW: &str = "an even better password";

/// A browser goes to the provider, and comes back.
async fn come_back(provider: &StandIn, browser: &mut Browser<'_>, claims: &Value) -> Page {
    let back = go(provider, browser, claims).await;
    browser.get(&path(&back)).await
}

/// A browser goes to the provider. Returns the address to which it is sent back.
async fn go(provider: &StandIn, browser: &mut Browser<'_>, claims: &Value) -> Url {
    let url = browser.get(BEGIN).await.place();
    provider.log_in(&url, browser.service.now_seconds(), claims)
}

fn path(url: &Url) -> String {
    format!("{}?{}", url.path(), url.query().unwrap())
}

fn alice() -> Value {
    json!({"email": "alice@example.com", "email_verified": true, "preferred_username": "Alice.L"})
}

async fn username(browser: &mut Browser<'_>) -> String {
    browser.get("/users/profile").await.value("#username").to_owned()
}

async fn users(service: &Service) -> Vec<String> {
    let users = service.account.list_users(None).await.unwrap();
    users.into_iter().map(|user| user.user.username.to_string()).collect()
}

/// A user whose login is linked.
async fn linked<'a>(provider: &StandIn, service: &'a Service) -> Browser<'a> {
    let mut browser = Browser::of_user(service, "alice").await;
    let page = browser.post(LINK, &[("old_password", PASSWORD)]).await;
    let url = page.all("main a.button")[0].attr("href").unwrap().to_owned();
    let back = provider.log_in(&url, service.now_seconds(), &json!({}));
    assert_eq!(browser.get(&path(&back)).await.place(), "/users/profile?done=login-linked");
    browser
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn the_first_login_makes_an_account_and_the_next_one_finds_it() {
    let provider = StandIn::start().await;
    for service in Service::start_on_each_store_with(provider.settings(true)).await {
        let mut first = Browser::new(&service);
        let page = first.get("/users/login").await;
        page.check("/users/login");
        assert_eq!(page.all("main a.button")[0].attr("href"), Some("/users/login/example?next="));
        assert_eq!(come_back(&provider, &mut first, &alice()).await.place(), "/my/applications");
        let profile = first.get("/users/profile").await;
        profile.check("/users/profile");
        assert_eq!((profile.value("#username"), profile.text(".badge")), ("alice-l", "Confirmed".to_owned()));

        let mut second = Browser::new(&service);
        let changed = json!({"email": "other@example.com", "preferred_username": "other"});
        come_back(&provider, &mut second, &changed).await.place();
        assert_eq!(username(&mut second).await, "alice-l");
        let mut other = Browser::new(&service);
        let claims = json!({"sub": "subject-2", "email": "alice@example.com", "preferred_username": "alice-l"});
        come_back(&provider, &mut other, &claims).await.place();
        assert_eq!(username(&mut other).await, "alice-l-2");
        assert_eq!(users(&service).await, ["alice-l", "alice-l-2"]);
    }
}

#[tokio::test]
async fn a_login_returns_to_a_path_of_this_site_only() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    for (next, place) in
        [("/my/gateways?x=1", "/my/gateways?x=1"), ("//evil.example", "/my/applications"), ("", "/my/applications")]
    {
        let mut browser = Browser::new(&service);
        let next: String = url_encoded(next);
        let url = browser.get(&format!("{BEGIN}?next={next}")).await.place();
        let back = provider.log_in(&url, service.now_seconds(), &alice());
        assert_eq!(browser.get(&path(&back)).await.place(), place);
    }
    let page = Browser::new(&service).get(&format!("{BEGIN}?next=/{}", "x".repeat(2000))).await;
    assert_eq!(page.status, 400);
    assert!(page.text(".problem p").contains("log in first"), "{}", page.text(".problem p"));
}

fn url_encoded(text: &str) -> String {
    let mut url = Url::parse("http://example.com").unwrap();
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_link_nobody_logs_in_unless_accounts_are_made() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(false)).await;
    Browser::of_user(&service, "alice").await;
    let mut browser = Browser::new(&service);
    let page = come_back(&provider, &mut browser, &alice()).await;
    page.check(BEGIN);
    assert_eq!(page.status, 403);
    let problem = page.check_refusal("");
    assert!(problem.contains("log in with your password, and link it in your profile"), "{problem}");
    assert!(page.has("#password"), "the password is at hand");
    assert!(browser.get("/users/profile").await.place().starts_with("/users/login"));
    assert_eq!(users(&service).await, ["alice"]);
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn an_address_never_decides_whose_account_it_is() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    Browser::of_user(&service, "alice").await;
    service.account.confirm_user(&"alice".parse().unwrap()).await.unwrap();
    for (subject, verified, name, badge) in
        [("1", json!(false), "eve", "Not confirmed yet"), ("2", json!("true"), "mallory", "Not confirmed yet")]
    {
        let claims = json!({"sub": subject, "email": "alice@example.com", "email_verified": verified,
            "preferred_username": name});
        let mut browser = Browser::new(&service);
        come_back(&provider, &mut browser, &claims).await.place();
        let profile = browser.get("/users/profile").await;
        assert_eq!((profile.value("#username"), profile.text(".badge")), (name, badge.to_owned()));
    }
    assert_eq!(users(&service).await, ["alice", "eve", "mallory"]);
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn a_link_takes_the_password_and_can_be_undone() {
    let provider = StandIn::start().await;
    for service in Service::start_on_each_store_with(provider.settings(false)).await {
        let mut alice = Browser::of_user(&service, "alice").await;
        let page = alice.get(LINK).await;
        page.check(LINK);
        let refused = alice.post(LINK, &[("old_password", "wrong password")]).await;
        refused.check(LINK);
        assert_eq!((refused.status.as_u16(), refused.has("meta[http-equiv=refresh]")), (403, false));
        refused.check_refusal("old_password");

        let page = alice.post(LINK, &[("old_password", PASSWORD)]).await;
        page.check(LINK);
        let url = page.all("main a.button")[0].attr("href").unwrap().to_owned();
        let refresh = page.all("meta[http-equiv=refresh]")[0].attr("content").unwrap();
        assert_eq!(refresh, format!("0; url={url}"));
        let back = provider.log_in(&url, service.now_seconds(), &json!({}));
        let place = alice.get(&path(&back)).await.place();
        let page = alice.get(&place).await;
        assert!(page.text(".notice").contains("Linked") && page.text("main").contains("Linked since 2026-01-01"));

        let mut elsewhere = Browser::new(&service);
        come_back(&provider, &mut elsewhere, &json!({})).await.place();
        assert_eq!(username(&mut elsewhere).await, "alice");

        let page = alice.submit(LOGINS, &[("issuer", &*provider.issuer)]).await;
        assert!(page.text(".notice").contains("Unlinked") && page.text("main").contains("Not linked"));
        assert_eq!(come_back(&provider, &mut Browser::new(&service), &json!({})).await.status, 403);
        let again = alice.post(LOGINS, &[("issuer", &*provider.issuer)]).await;
        assert_eq!(again.status, 404);
    }
}

#[tokio::test]
async fn a_login_belongs_to_one_account_at_a_time() {
    let provider = StandIn::start().await;
    for service in Service::start_on_each_store_with(provider.settings(false)).await {
        let mut alice = linked(&provider, &service).await;
        let mut bob = Browser::of_user(&service, "bob").await;
        let link = async |bob: &mut Browser<'_>| {
            let page = bob.post(LINK, &[("old_password", PASSWORD)]).await;
            let url = page.all("main a.button")[0].attr("href").unwrap().to_owned();
            let back = provider.log_in(&url, service.now_seconds(), &json!({}));
            bob.get(&path(&back)).await
        };
        let page = link(&mut bob).await;
        assert_eq!(page.status, 409);
        assert!(page.text("main").contains("linked with another account"), "{}", page.text("main"));
        assert!(bob.get("/users/profile").await.text("main").contains("Not linked"));

        alice.post(LOGINS, &[("issuer", &*provider.issuer)]).await.place();
        assert_eq!(link(&mut bob).await.place(), "/users/profile?done=login-linked");
        let mut elsewhere = Browser::new(&service);
        come_back(&provider, &mut elsewhere, &json!({})).await.place();
        assert_eq!(username(&mut elsewhere).await, "bob");
    }
}

#[tokio::test]
async fn a_link_is_made_by_the_session_that_began_it() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(false)).await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let page = alice.post(LINK, &[("old_password", PASSWORD)]).await;
    let url = page.all("main a.button")[0].attr("href").unwrap().to_owned();
    let back = provider.log_in(&url, service.now_seconds(), &json!({}));
    alice.submit("/logout", &[]).await;
    let page = alice.get(&path(&back)).await;
    assert!(page.check_refusal("").contains("no longer logged in"));
    assert_eq!(come_back(&provider, &mut Browser::new(&service), &json!({})).await.status, 403);
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn the_last_way_to_log_in_stays() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let mut alice = Browser::new(&service);
    come_back(&provider, &mut alice, &alice_claims()).await.place();
    let unlink = format!("form[action='{LOGINS}']");
    let page = alice.get("/users/profile").await;
    page.check("/users/profile");
    assert!(page.text("main").contains("set a password first") && !page.has(&unlink), "{}", page.text("main"));
    let page = alice.post(LOGINS, &[("issuer", &*provider.issuer)]).await;
    page.check(LOGINS);
    assert_eq!(page.status, 403);
    assert!(page.check_refusal("").contains("set a password first"), "{}", page.text("main"));
    for password in ["", PASSWORD] {
        let refused =
            Browser::new(&service).post("/users/login", &[("username", "alice"), ("password", password)]).await;
        assert_eq!(refused.status, 401, "nobody has a password");
        assert_eq!(service.login("alice", password, Value::Null).await.status, 400);
    }

    let fields = [("password", NEW), ("password_again", NEW)];
    service.pass(600);
    let page = alice.post("/users/profile/password", &fields).await;
    assert_eq!(page.status, 403);
    assert!(page.check_refusal("").contains("log in again"));
    come_back(&provider, &mut alice, &json!({})).await.place();
    assert!(!alice.get("/users/profile").await.has("#old_password"));
    assert!(alice.submit("/users/profile/password", &fields).await.text(".notice").contains("password"));
    let page = alice.get("/users/profile").await;
    assert!(page.has("#old_password") && page.has(&unlink), "{}", page.text("main"));
    assert_eq!(
        alice.post(LOGINS, &[("issuer", &*provider.issuer)]).await.place(),
        "/users/profile?done=login-unlinked"
    );
    let fields = [("username", "alice"), ("password", NEW)];
    assert_eq!(Browser::new(&service).post("/users/login", &fields).await.place(), "/my/applications");
}

fn alice_claims() -> Value {
    json!({"email": "alice@example.com", "email_verified": true, "preferred_username": "alice"})
}

#[tokio::test]
async fn a_disabled_user_cannot_log_in_there_either() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let mut alice = linked(&provider, &service).await;
    service.account.set_disabled(&"alice".parse().unwrap(), true).await.unwrap();
    assert!(alice.get("/users/profile").await.place().starts_with("/users/login"));
    let page = come_back(&provider, &mut Browser::new(&service), &alice_claims()).await;
    assert_eq!((page.status.as_u16(), page.check_refusal("").contains("disabled")), (403, true));
    assert_eq!(users(&service).await, ["alice"]);
    service.account.set_disabled(&"alice".parse().unwrap(), false).await.unwrap();
    come_back(&provider, &mut Browser::new(&service), &json!({})).await.place();
}

#[tokio::test]
async fn other_sites_cannot_link_or_unlink() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(false)).await;
    let mut alice = linked(&provider, &service).await;
    for (path, field) in [(LINK, ("old_password", PASSWORD)), (LOGINS, ("issuer", &*provider.issuer))] {
        let request = service.request("POST", path, "").header("sec-fetch-site", "cross-site").form(&[field]);
        let page = alice.send(request).await;
        assert_eq!(page.status, 403, "{path}");
    }
    assert!(alice.get("/users/profile").await.text("main").contains("Linked since"));
    for path in [LINK, "/users/profile"] {
        let place = Browser::new(&service).get(path).await.place();
        assert!(place.starts_with("/users/login"), "{place}");
    }
}

#[tokio::test]
async fn wrong_settings_are_refused_at_the_start() {
    let provider = StandIn::start().await;
    let open = async |change: &dyn Fn(&mut Settings)| {
        let mut settings = provider.settings(false);
        change(&mut settings);
        Service::try_open(settings).await.map_err(|error| error.to_string())
    };
    assert_eq!(open(&|_| {}).await, Ok(()));
    let twice = |settings: &mut Settings| {
        settings.login_providers.insert("other".parse().unwrap(), provider.provider(false));
    };
    assert!(open(&twice).await.unwrap_err().contains("must not be that of another provider"));
    let insecure = |settings: &mut Settings| {
        for provider in settings.login_providers.values_mut() {
            "http://login.example.com".clone_into(&mut provider.issuer);
        }
    };
    assert!(open(&insecure).await.unwrap_err().contains("http only on localhost"));
    std::fs::remove_file(provider.secret_file()).unwrap();
    assert!(open(&|_| {}).await.unwrap_err().contains("cannot read"));
}
