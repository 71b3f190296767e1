//! Login and logout, the profile, and cross-site requests.

use airlock_account::Settings;

use super::Browser;
use crate::{
    service::{PASSWORD, Service},
    users::mail::{Sink, settings},
};

const NEW: &str = "an even better password";

#[tokio::test]
async fn a_login_redirects_only_within_this_site() {
    let service = Service::start().await;
    Browser::of_user(&service, "alice").await;
    for (next, place) in [
        ("/my/new-gateway?x=1", "/my/new-gateway?x=1"),
        ("", "/my/applications"),
        ("//evil.example", "/my/applications"),
        ("/\\evil.example", "/my/applications"),
        ("https://evil.example/", "/my/applications"),
        ("javascript:alert(1)", "/my/applications"),
    ] {
        let fields = [("username", "alice"), ("password", PASSWORD), ("next", next)];
        assert_eq!(Browser::new(&service).post("/users/login", &fields).await.place(), place, "{next}");
    }
}

#[tokio::test]
async fn a_registration_goes_on_where_the_login_would_have() {
    let service = Service::start().await;
    let login = Browser::new(&service).get("/users/login?next=/my/new-gateway%3Fx=1%26y").await;
    let links = login.all("main a[href^='/register']");
    let register = links[0].attr("href").unwrap().to_owned();
    let form = Browser::new(&service).get(&register).await;
    assert_eq!(form.value("[name=next]"), "/my/new-gateway?x=1&y");
    let back = form.all("main a[href^='/users/login']")[0].attr("href").unwrap().to_owned();
    assert_eq!(Browser::new(&service).get(&back).await.value("[name=next]"), "/my/new-gateway?x=1&y");
    for (name, next, place) in [
        ("alice", "/my/new-gateway?x=1&y", "/my/new-gateway?x=1&y"),
        ("bobby", "//evil.example", "/my/applications"),
        ("carol", "https://evil.example/", "/my/applications"),
    ] {
        let email = format!("{name}@example.com");
        let who = [("username", name), ("email", &email), ("next", next)];
        let fields = [&who[..], &[("password", PASSWORD), ("password_again", PASSWORD)]].concat();
        assert_eq!(Browser::new(&service).post("/register", &fields).await.place(), place, "{next}");
    }
}

#[tokio::test]
async fn a_login_or_logout_ends_the_previous_session() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let before = alice.cookie.clone();
    alice.post("/users/login", &[("username", "alice"), ("password", PASSWORD)]).await;
    let mut old = Browser { service: &service, cookie: before };
    assert!(old.get("/users/profile").await.place().starts_with("/users/login"));
    let now = alice.cookie.clone();
    let page = alice.submit("/logout", &[]).await;
    assert!(page.text(".notice").contains("logged out") && page.text("header nav").contains("Log in"));
    let mut kept = Browser { service: &service, cookie: now };
    assert!(kept.get("/users/profile").await.place().starts_with("/users/login"));
}

#[tokio::test]
async fn cross_site_forms_change_nothing() {
    let service = Service::start().await;
    let alice = Browser::of_user(&service, "alice").await;
    for (path, fields) in [
        ("/users/profile", vec![("username", "alicia"), ("email", "a@example.com")]),
        ("/users/profile/password", vec![("old_password", PASSWORD), ("password", NEW), ("password_again", NEW)]),
        ("/my/applications", vec![("id", "planted"), ("name", "")]),
        ("/my/gateways", vec![("id", "planted"), ("frequency_plan", "EU_863_870")]),
        ("/users/login", vec![("username", "alice"), ("password", PASSWORD)]),
        ("/logout", vec![]),
        ("/users/authorize", vec![("client_id", "ttnctl"), ("decision", "allow")]),
    ] {
        for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example"), ("x-none", "")] {
            let request = service.request("POST", path, "").header(name, value).form(&fields);
            let mut victim = Browser { service: &service, cookie: alice.cookie.clone() };
            let page = victim.send(request).await;
            assert_eq!((page.status.as_u16(), &victim.cookie), (403, &alice.cookie), "{path} {name}");
            page.check(path);
        }
        for authorization in ["x", "Basic eDp5", "Bearer x"] {
            let request = service.request("POST", path, authorization).header("sec-fetch-site", "same-site");
            let mut victim = Browser { service: &service, cookie: alice.cookie.clone() };
            let page = victim.send(request.form(&fields)).await;
            assert_eq!((page.status.as_u16(), &victim.cookie), (403, &alice.cookie), "{path} {authorization}");
        }
    }
    let mut alice = alice;
    assert_eq!(alice.get("/users/profile").await.value("#username"), "alice");
    assert!(alice.get("/my/applications").await.has(".empty"));
}

#[tokio::test]
async fn the_profile_shows_whether_the_address_is_confirmed() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let page = alice.get("/users/profile?done=registered").await;
    assert!(page.text(".notice").contains("confirm"));
    assert_eq!(page.text(".badge"), "Not confirmed yet");
    assert!(alice.submit("/users/profile/confirmation", &[]).await.has(".notice"));
    let fields = [("username", "alicia"), ("email", "alice@example.org"), ("first", "Alice"), ("last", "<b>Liddell")];
    let page = alice.submit("/users/profile", &fields).await;
    assert_eq!((page.value("#username"), page.value("#last")), ("alicia", "<b>Liddell"));
    assert!(page.text("header nav").contains("alicia") && page.text("main").contains("alice@example.org"));
    let said = alice.get("/users/profile?done=%3Cscript%3E").await;
    assert!(!said.has(".notice"), "only what the site itself says");
}

#[tokio::test]
async fn a_new_password_ends_other_sessions_only() {
    let service = Service::start().await;
    let mut here = Browser::of_user(&service, "alice").await;
    let mut there = Browser::new(&service);
    there.post("/users/login", &[("username", "alice"), ("password", PASSWORD)]).await;
    let fields = [("old_password", PASSWORD), ("password", NEW), ("password_again", NEW)];
    assert!(here.submit("/users/profile/password", &fields).await.text(".notice").contains("password"));
    assert!(there.get("/users/profile").await.place().starts_with("/users/login"));
}

#[tokio::test]
async fn the_mailed_link_confirms_the_address() {
    let mut sink = Sink::start(0).await;
    let service = Service::start_with(settings(&sink)).await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let link = sink.next().await.1;
    let path = link.strip_prefix("https://account.example.com").unwrap();
    let page = alice.get(path).await;
    page.check(path);
    assert!(
        page.text("main").contains("confirmed Thank you for confirming alice@example.com"),
        "{}",
        page.text("main")
    );
    assert_eq!(alice.get("/users/profile").await.text(".badge"), "Confirmed");
}

#[tokio::test]
async fn nothing_promises_mail_that_is_not_sent() {
    let sink = Sink::start(0).await;
    for (settings, sends) in [(settings(&sink), true), (Settings::default(), false)] {
        let service = Service::start_with(settings).await;
        let register = Browser::new(&service).get("/register").await.text("main");
        assert_eq!(register.contains("We will send a confirmation link"), sends, "{register}");
        assert_eq!(register.contains("sends no mail"), !sends, "{register}");
        let mut alice = Browser::of_user(&service, "alice").await;
        let profile = alice.get("/users/profile").await;
        assert_eq!(profile.text("main").contains("Open the link that we sent"), sends);
        assert_eq!(profile.has("form[action='/users/profile/confirmation']"), sends);
        let notice = alice.submit("/users/profile/confirmation", &[]).await.text(".notice");
        assert_eq!(notice.contains("a mail is on its way"), sends, "{notice}");
        assert_eq!(notice.contains("sends no mail"), !sends, "{notice}");
    }
}

#[tokio::test]
async fn an_invalid_link_says_where_to_get_another() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let page = alice.get("/users/emails/validate_email/AAAA?email=x").await;
    assert_eq!((page.status.as_u16(), page.text("h1")), (400, "Not confirmed".to_owned()));
    assert!(page.has("main a[href='/users/profile']"));
}
