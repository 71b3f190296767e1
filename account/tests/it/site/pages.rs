//! Every page: who may see it, and whether it is accessible.

use airlock_account::Settings;
use serde_json::json;

use super::Browser;
use crate::{
    oauth::authorize::with_app,
    service::{Service, send},
};

const OPEN: [&str; 5] = ["/", "/register", "/users/login", "/oauth/callback/ttnctl?code=c", "/oauth/callback/airlock"];
const PRIVATE: [&str; 17] = [
    "/users/profile",
    "/my/applications",
    "/my/new-application",
    "/my/applications/my-app",
    "/my/applications/my-app/delete",
    "/my/applications/my-app/euis/0200000000000001/remove",
    "/my/applications/my-app/collaborators",
    "/my/applications/my-app/collaborators/alice",
    "/my/applications/my-app/collaborators/alice/remove",
    "/my/gateways",
    "/my/new-gateway",
    "/my/gateways/my-gw",
    "/my/gateways/my-gw/delete",
    "/my/gateways/my-gw/collaborators",
    "/my/gateways/my-gw/collaborators/alice",
    "/my/gateways/my-gw/collaborators/alice/remove",
    "/users/consent?client_id=app&redirect_uri=https://app.example.com/callback&response_type=code",
];

#[tokio::test]
async fn every_page_is_accessible_to_those_who_may_see_it() {
    let service = Service::start_with(with_app()).await;
    let mut stranger = Browser::new(&service);
    for path in OPEN {
        let page = stranger.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        page.check(path);
    }
    let mut alice = Browser::of_user(&service, "alice").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "My app")]).await;
    alice.post("/my/gateways", &[("id", "my-gw"), ("frequency_plan", "EU_863_870")]).await;
    for path in OPEN.into_iter().chain(PRIVATE) {
        let page = alice.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        page.check(path);
        assert!(page.text("header nav").contains("alice"), "{path}");
    }
}

#[tokio::test]
async fn the_first_field_of_a_login_or_a_registration_has_the_focus() {
    let service = Service::start().await;
    for path in ["/users/login", "/register"] {
        let page = Browser::new(&service).get(path).await;
        let focused: Vec<_> = page.all("[autofocus]").iter().map(|field| field.attr("id")).collect();
        assert_eq!(focused, [Some("username")], "{path}");
    }
}

#[tokio::test]
async fn redirects_to_the_login_and_back() {
    let service = Service::start_with(with_app()).await;
    Browser::of_user(&service, "alice").await;
    for path in PRIVATE {
        let mut stranger = Browser::new(&service);
        let login = stranger.get(path).await.place();
        let page = stranger.get(&login).await;
        assert_eq!(page.value("[name=next]"), path);
        let fields = [("username", "alice"), ("password", crate::service::PASSWORD), ("next", path)];
        assert_eq!(stranger.post("/users/login", &fields).await.place(), path);
    }
}

#[tokio::test]
async fn foreign_applications_look_like_missing_ones_and_gateways_are_refused() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    alice.post("/my/gateways", &[("id", "my-gw"), ("frequency_plan", "EU_863_870")]).await;
    let mut eve = Browser::of_user(&service, "eve").await;
    for (thing, none, status) in
        [("applications/my-app", "applications/no-app", 404), ("gateways/my-gw", "gateways/no-gw", 403)]
    {
        for rest in ["", "/delete", "/collaborators", "/collaborators/alice"] {
            let (theirs, nobodys) = (format!("/my/{thing}{rest}"), format!("/my/{none}{rest}"));
            let (theirs, nobodys) = (eve.get(&theirs).await, eve.get(&nobodys).await);
            assert_eq!((theirs.status.as_u16(), nobodys.status.as_u16()), (status, 404), "{thing}{rest}");
            let (theirs, nobodys) = (theirs.text("main").replace("my-", "no-"), nobodys.text("main"));
            assert_eq!(theirs == nobodys, status == 404, "everybody may know of gateways: {theirs}");
        }
        for rest in ["", "/delete", "/collaborators"] {
            let fields = [("username", "eve"), ("rights", "settings"), ("frequency_plan", "EU_863_870")];
            let response = eve.post(&format!("/my/{thing}{rest}"), &fields).await;
            assert!([400, status].contains(&response.status.as_u16()), "{thing}{rest} {}", response.status);
        }
    }
    assert_eq!(alice.get("/my/applications/my-app").await.status, 200);
    assert_eq!(alice.get("/my/gateways/my-gw").await.status, 200);
}

#[tokio::test]
async fn an_entity_named_new_has_a_page() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let page = alice.submit("/my/applications", &[("id", "new"), ("name", "The newest")]).await;
    assert!(page.text("main dl").contains("The newest"));
    let page = alice.submit("/my/gateways", &[("id", "new"), ("frequency_plan", "EU_863_870")]).await;
    assert!(page.has("#settings-heading"));
}

#[tokio::test]
async fn sends_hsts_over_tls() {
    let public_url = Some("https://account.example.com".parse().unwrap());
    let secure = Service::start_with(Settings { public_url, ..Settings::default() }).await;
    let plain = Service::start().await;
    for path in ["/", "/nowhere", "/users/login", "/api/v2/users/me", "/assets/icon.svg"] {
        let response = secure.get(path, "").await;
        assert_eq!(response.headers["strict-transport-security"], "max-age=31536000", "{path}");
        assert!(!plain.get(path, "").await.headers.contains_key("strict-transport-security"), "{path}");
    }
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_json_for_programs() {
    let service = Service::start().await;
    let mut browser = Browser::new(&service);
    for (path, status) in [
        ("/nowhere", 404),
        ("/my/nowhere", 404),
        ("/oauth/callback/stranger", 404),
        ("/users/authorize?client_id=nobody", 400),
        ("/users/authorize?client_id=a&client_id=b", 400),
        ("/users/emails/validate_email/AAAA", 400),
        ("/applications", 401),
        ("/logout", 405),
        ("/users/token", 405),
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, status, "{path}");
        page.check(path);
        assert!(!page.headers.contains_key("www-authenticate"), "{path}");
        let response = service.get(path, "").await;
        assert_eq!((response.status.as_u16(), response.json()["code"].clone()), (status, json!(status)), "{path}");
    }
    let api = send(service.request("GET", "/api/v2/nowhere", "").header("accept", "text/html")).await;
    assert_eq!(api.error(), (404, "path not found".to_owned()));
}

#[tokio::test]
async fn assets_are_cacheable_and_their_urls_change_with_their_contents() {
    let service = Service::start().await;
    let page = Browser::new(&service).get("/").await;
    let style = page.all("link[rel=stylesheet]")[0].attr("href").unwrap().to_owned();
    let icon = page.all("link[rel=icon]")[0].attr("href").unwrap().to_owned();
    for (path, start, sort) in
        [(&style, "/assets/site.css?", "text/css; charset=utf-8"), (&icon, "/assets/icon.svg?", "image/svg+xml")]
    {
        assert!(path.starts_with(start), "{path}");
        let response = service.get(path, "").await;
        assert_eq!((response.status.as_u16(), response.headers["content-type"].to_str().unwrap()), (200, sort));
        assert!(response.headers["cache-control"].to_str().unwrap().contains("immutable"));
        assert!(!response.text.contains("http://example") && !response.text.contains("@import"));
    }
}
