//! Checks of everything that a provider sends. A provider that is away keeps nobody out.

use std::{sync::Arc, time::Duration};

use airlock_account::Settings;
use serde_json::json;
use testing::Log;
use tracing::Level;

use super::{
    BEGIN, alice, come_back, go, path,
    stand_in::{CLIENT_SECRET, Key, StandIn},
    users,
};
use crate::{
    service::{PASSWORD, Service},
    site::Browser,
};

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn a_token_that_fails_a_check_logs_nobody_in() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let now = service.now_seconds();
    for (claims, reason) in [
        (json!({"nonce": "of another login"}), "`nonce` of its ID token"),
        (json!({"nonce": null}), "`nonce` of its ID token"),
        (json!({"aud": "another-client"}), "`aud` of its ID token"),
        (json!({"aud": []}), "`aud` of its ID token"),
        (json!({"aud": ["airlock", "another-client"]}), "`azp` of its ID token"),
        (json!({"aud": ["airlock", "another-client"], "azp": "another-client"}), "`azp` of its ID token"),
        (json!({"azp": "another-client"}), "`azp` of its ID token"),
        (json!({"iss": "https://login.example.com"}), "`iss` of its ID token"),
        (json!({"sub": ""}), "`sub` of its ID token"),
        (json!({"sub": "x".repeat(256)}), "`sub` of its ID token"),
        (json!({"sub": 7}), "claims of its ID token cannot be read"),
        (json!({"exp": null}), "claims of its ID token cannot be read"),
        (json!({"exp": now - 60}), "has expired"),
        (json!({"iat": now + 61}), "issued in the future"),
        (json!({"alg": "none"}), "not signed with RS256"),
        (json!({"alg": "HS256"}), "not signed with RS256"),
        (json!({"email": null}), "does not tell your e-mail address"),
        (json!({"email": "no address"}), "does not tell your e-mail address"),
    ] {
        let mut all = alice();
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        provider.set_user_info(json!({"sub": "subject-1"}));
        let mut browser = Browser::new(&service);
        let page = come_back(&provider, &mut browser, &all).await;
        assert_eq!(page.status, 403, "{claims}");
        let problem = page.check_refusal("");
        assert!(problem.contains(reason), "{claims}: {problem}");
        assert!(browser.get("/users/profile").await.place().starts_with("/users/login"), "{claims}");
    }
    assert!(users(&service).await.is_empty());
    let good = json!({"aud": ["airlock", "another-client"], "azp": "airlock", "exp": now - 59, "iat": now + 60});
    let mut all = alice();
    all.as_object_mut().unwrap().extend(good.as_object().unwrap().clone());
    come_back(&provider, &mut Browser::new(&service), &all).await.place();
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn only_published_keys_sign() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let log_in = async || come_back(&provider, &mut Browser::new(&service), &alice()).await;
    log_in().await.place();

    provider.sign_with(Key::elliptic("first"));
    let page = log_in().await;
    assert!(page.check_refusal("").contains("signature of its ID token is wrong"));
    provider.sign_with(Key::elliptic("second"));
    assert!(log_in().await.check_refusal("").contains("a key that it does not publish"));
    service.pass(30);
    assert!(log_in().await.check_refusal("").contains("a key that it does not publish"), "it was asked again");

    provider.sign_with(Key::rsa("third"));
    provider.publish();
    assert!(log_in().await.check_refusal("").contains("a key that it does not publish"), "it was just asked");
    service.pass(30);
    log_in().await.place();
    provider.publish_instead(&Key::elliptic("fourth"));
    log_in().await.place();
    service.pass(3600);
    assert!(log_in().await.check_refusal("").contains("a key that it does not publish"), "it was withdrawn");
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn the_answer_to_another_browser_is_refused() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let (mut mine, mut other) = (Browser::new(&service), Browser::new(&service));
    let (back, others) = (go(&provider, &mut mine, &alice()).await, go(&provider, &mut other, &alice()).await);
    for browser in [&mut Browser::new(&service), &mut other] {
        let page = browser.get(&path(&back)).await;
        assert_eq!(page.status, 403);
        assert!(page.check_refusal("").contains("not begun in this browser"));
    }
    let page = other.get(&path(&others)).await;
    assert!(page.check_refusal("").contains("not begun in this browser"), "an answer ends the login");

    service.pass(600);
    assert!(mine.get(&path(&back)).await.check_refusal("").contains("more than ten minutes ago"));
    assert!(users(&service).await.is_empty());
}

#[tokio::test]
async fn the_cookie_of_a_login_is_for_its_own_pages_and_no_script() {
    let provider = StandIn::start().await;
    let public_url = Some("https://account.example.com".parse().unwrap());
    let service = Service::start_with(Settings { public_url, ..provider.settings(true) }).await;
    let page = Browser::new(&service).get(BEGIN).await;
    let set = page.headers["set-cookie"].to_str().unwrap();
    for attribute in ["provider_login=", "HttpOnly", "SameSite=Lax", "Secure", "Path=/users/login;", "Max-Age=600"] {
        assert!(set.contains(attribute), "{set}");
    }
    let url = page.place();
    assert!(
        url.contains("redirect_uri=https%3A%2F%2Faccount.example.com%2Fusers%2Flogin%2Fexample%2Fcallback"),
        "{url}"
    );
    let page = Browser::new(&service).get(&format!("{BEGIN}/callback?state=x")).await;
    let set = page.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("provider_login=;") && set.contains("Max-Age=0"), "{set}");
}

#[tokio::test]
async fn a_code_is_good_once_and_other_answers_say_why() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let mut browser = Browser::new(&service);
    let back = go(&provider, &mut browser, &alice()).await;
    let cookie = browser.cookie.clone();
    browser.get(&path(&back)).await.place();
    let mut copy = Browser { service: &service, cookie: cookie.clone() };
    let page = copy.get(&path(&back)).await;
    assert_eq!((page.status.as_u16(), page.check_refusal("").contains("invalid_grant")), (503, true));

    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    for (answer, reason) in [
        ("error=access_denied", "you did not allow it there"),
        ("error=server_error", "the error `server_error`"),
        ("code=x&iss=https://evil.example", "comes from another issuer"),
        ("iss=x", "comes from another issuer"),
        ("", "it sent no code"),
    ] {
        let mut browser = Browser { service: &service, cookie: cookie.clone() };
        let page = browser.get(&format!("{BEGIN}/callback?state={state}&{answer}")).await;
        let problem = page.check_refusal("");
        assert!(problem.contains(reason), "{answer}: {problem}");
    }
    let page = Browser::new(&service).get("/users/login/nobody/callback?code=x&state=y").await;
    assert_eq!(page.status, 404);
}

// Conformance: logins at OpenID Connect providers
#[tokio::test]
async fn passwords_work_while_a_provider_is_away() {
    let provider = StandIn::start().await;
    provider.set_away(true);
    let service = Service::start_with(provider.settings(true)).await;
    Browser::of_user(&service, "alice").await;
    let mut browser = Browser::new(&service);
    assert!(browser.get("/users/login").await.has("#password"));
    assert_eq!(provider.calls(), 0);
    let page = browser.get(BEGIN).await;
    assert_eq!((page.status.as_u16(), page.has("#password")), (503, true));
    page.check(BEGIN);
    let problem = page.check_refusal("");
    assert!(problem.contains("does not give its description (503 Service Unavailable)"), "{problem}");
    let calls = provider.calls();
    assert!(browser.get(BEGIN).await.check_refusal("").contains("failed a moment ago"));
    assert_eq!(provider.calls(), calls, "it is left alone for a while");
    let fields = [("username", "alice"), ("password", PASSWORD)];
    assert_eq!(browser.post("/users/login", &fields).await.place(), "/my/applications");

    provider.set_away(false);
    service.pass(5);
    come_back(&provider, &mut Browser::new(&service), &alice()).await.place();
}

#[tokio::test]
async fn those_who_wait_for_a_call_that_fails_slowly_share_its_failure() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    let (mut first, mut second) = (Browser::new(&service), Browser::new(&service));
    let answers = (go(&provider, &mut first, &alice()).await, go(&provider, &mut second, &alice()).await);
    let clock = Arc::clone(&service.clock);
    provider.set_away_after(move || clock.advance(Duration::from_secs(10)));
    assert_eq!(first.get(&path(&answers.0)).await.status, 503, "its keys do not come");
    let calls = provider.calls();
    assert!(second.get(&path(&answers.1)).await.check_refusal("").contains("failed a moment ago"));
    assert_eq!(provider.calls(), calls);

    service.pass(3600);
    assert_eq!(first.get(BEGIN).await.status, 503, "its description does not come");
    let calls = provider.calls();
    assert!(second.get(BEGIN).await.check_refusal("").contains("failed a moment ago"));
    assert_eq!(provider.calls(), calls);
}

#[tokio::test]
async fn what_the_operator_can_mend_is_logged_once() {
    let (log, _logging) = Log::start(Level::WARN);
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    tracing::callsite::rebuild_interest_cache();
    come_back(&provider, &mut Browser::new(&service), &json!({"aud": "another-client"})).await;
    provider.set_away(true);
    service.pass(3600);
    for _ in 0..2 {
        assert_eq!(Browser::new(&service).get(BEGIN).await.status, 503);
    }
    Browser::new(&service).get(&format!("{BEGIN}/callback?state=x&error=y")).await;
    let text = log.text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("a login at a provider failed")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (line, cause) in lines.iter().zip(["`aud` of its ID token", "503 Service Unavailable"]) {
        assert!(line.contains("WARN") && line.contains("provider=example") && line.contains(cause), "{line}");
    }
    assert!(!text.contains(CLIENT_SECRET) && !text.contains("code-1"), "{text}");
}

#[tokio::test]
async fn a_description_of_another_issuer_is_refused() {
    let provider = StandIn::start().await;
    provider.describe_as("https://login.example.com");
    let service = Service::start_with(provider.settings(true)).await;
    let page = Browser::new(&service).get(BEGIN).await;
    let problem = page.check_refusal("");
    assert_eq!(page.status, 503);
    assert!(problem.contains("`https://login.example.com`") && problem.contains("login_providers"), "{problem}");
    assert!(Browser::new(&service).get(BEGIN).await.check_refusal("").contains("failed a moment ago"));
    assert_eq!(provider.calls(), 1);
}

#[tokio::test]
async fn the_profile_comes_from_its_place_if_the_token_has_none() {
    let provider = StandIn::start().await;
    let service = Service::start_with(provider.settings(true)).await;
    provider.set_user_info(json!({"sub": "subject-2", "email": "eve@example.com", "email_verified": true}));
    let page = come_back(&provider, &mut Browser::new(&service), &json!({})).await;
    assert!(page.check_refusal("").contains("profile of another user"));
    provider.set_user_info(json!({"sub": "subject-1", "email": "alice@example.com", "email_verified": true}));
    let mut alice = Browser::new(&service);
    come_back(&provider, &mut alice, &json!({})).await.place();
    let profile = alice.get("/users/profile").await;
    assert_eq!((profile.value("#username"), profile.text(".badge")), ("alice", "Confirmed".to_owned()));
}
