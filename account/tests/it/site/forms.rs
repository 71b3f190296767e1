//! Refused forms explain the error, mark the field, and keep what was typed.

use super::Browser;
use crate::service::{PASSWORD, Service};

/// A form's path, its fields, and the expected response: status, invalid field, and a word of the message.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, &'a str, &'a str);

const NEW: &str = "an even better password";
const ALICE: [(&str, &str); 4] =
    [("username", "bob"), ("email", "b@example.com"), ("password", NEW), ("password_again", NEW)];

fn registration<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    ALICE.iter().map(|(known, old)| (*known, if *known == name { value } else { old })).collect()
}

async fn check(browser: &mut Browser<'_>, cases: &[Case<'_>]) {
    for (path, fields, status, field, reason) in cases {
        let page = browser.post(path, fields).await;
        let place = format!("{path} {fields:?}: {}", page.html.html());
        assert_eq!(page.status, *status, "{place}");
        page.check(path);
        let text = page.check_refusal(field);
        assert!(text.to_lowercase().contains(reason), "{text}");
        for (name, value) in fields.iter().filter(|(name, _)| !name.contains("password")) {
            let kept = page.all(&format!("[name='{name}']"));
            let kept = kept.iter().any(|field| field.attr("value") == Some(value));
            assert!(kept || page.has(&format!("[name='{name}'] [selected][value='{value}']")), "{name} in {place}");
        }
    }
}

#[tokio::test]
async fn the_registration_form_explains_errors() {
    let service = Service::start().await;
    Browser::of_user(&service, "alice").await;
    let cases = [
        ("username", "alice", 409, "username", "taken"),
        ("username", "Not A Name", 400, "username", "lowercase"),
        ("username", "", 400, "username", "empty"),
        ("email", "nowhere", 400, "email", "name@example.com"),
        ("password_again", "another", 400, "password_again", "same"),
    ];
    for (name, value, status, field, reason) in cases {
        let fields = registration(name, value);
        check(&mut Browser::new(&service), &[("/register", &fields, status, field, reason)]).await;
    }
    for (password, reason) in [("short", "8 to 128"), ("password123", "common password")] {
        let fields: Vec<_> = [("username", "bob"), ("email", "b@example.com")]
            .into_iter()
            .chain([("password", password), ("password_again", password)])
            .collect();
        check(&mut Browser::new(&service), &[("/register", &fields, 400, "password", reason)]).await;
    }
}

#[tokio::test]
async fn a_failed_login_does_not_reveal_which_part_was_wrong() {
    let service = Service::start().await;
    Browser::of_user(&service, "alice").await;
    let mut texts = Vec::new();
    for username in ["alice", "nobody", "NO NAME"] {
        let fields = [("username", username), ("password", "wrong password"), ("next", "/my/gateways")];
        check(&mut Browser::new(&service), &[("/users/login", &fields, 401, "", "invalid username or password")]).await;
        texts.push(Browser::new(&service).post("/users/login", &fields).await.text(".problem"));
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
}

#[tokio::test]
async fn too_many_failed_logins_say_how_long_to_wait() {
    let service = Service::start().await;
    Browser::of_user(&service, "alice").await;
    let fields = [("username", "alice"), ("password", "wrong password")];
    for _ in 0..100 {
        let page = Browser::new(&service).post("/users/login", &fields).await;
        if page.status == 429 {
            page.check("/users/login");
            assert!(page.check_refusal("").contains("try again in"));
            return;
        }
    }
    panic!("nobody stops them");
}

#[tokio::test]
async fn the_profile_form_explains_errors() {
    let service = Service::start().await;
    Browser::of_user(&service, "bob").await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let person = |username, email| [("username", username), ("email", email), ("first", "Al"), ("last", "Ice")];
    let password = |old, new, again| [("old_password", old), ("password", new), ("password_again", again)];
    let at = "a@example.com";
    check(
        &mut alice,
        &[
            ("/users/profile", &person("bob", at), 409, "username", "taken"),
            ("/users/profile", &person("B O B", at), 400, "username", "lowercase"),
            ("/users/profile", &person("alice", "nowhere"), 400, "email", "name@example.com"),
            (
                "/users/profile/password",
                &password("wrong password", NEW, NEW),
                403,
                "old_password",
                "password not valid",
            ),
            ("/users/profile/password", &password(PASSWORD, NEW, "x"), 400, "password_again", "same"),
            ("/users/profile/password", &password(PASSWORD, "short", "short"), 400, "password", "8 to 128"),
        ],
    )
    .await;
    assert_eq!(alice.get("/users/profile").await.value("#username"), "alice");
}

#[tokio::test]
async fn application_forms_explain_errors() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    Browser::of_user(&service, "bob").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    let other = alice.submit("/my/applications", &[("id", "other-app"), ("name", "")]).await.text("code.value");
    let long = "x".repeat(201);
    let page = "/my/applications/my-app";
    let (euis, keys, people) = (format!("{page}/euis"), format!("{page}/access-keys"), format!("{page}/collaborators"));
    let me = format!("{people}/alice");
    check(
        &mut alice,
        &[
            ("/my/applications", &[("id", "my-app"), ("name", "Mine")], 409, "id", "taken"),
            ("/my/applications", &[("id", "My App"), ("name", "Mine")], 400, "id", "lowercase"),
            ("/my/applications", &[("id", "token"), ("name", "")], 400, "id", "token"),
            ("/my/applications", &[("id", "new-app"), ("name", &long)], 400, "name", "200"),
            (page, &[("name", &long)], 400, "name", "200"),
            (&euis, &[("eui", "12")], 400, "eui", "16"),
            (&euis, &[("eui", &other)], 409, "eui", "another application"),
            (&keys, &[("key_name", "default key"), ("rights", "devices")], 409, "key_name", "taken"),
            (&keys, &[("key_name", ""), ("rights", "devices")], 400, "key_name", "1 to 100"),
            (&keys, &[("key_name", "no rights")], 400, "rights", "at least one"),
            (&people, &[("username", "nobody"), ("rights", "devices")], 404, "username", "not found"),
            (&people, &[("username", "NO NAME"), ("rights", "devices")], 400, "username", "lowercase"),
            (&people, &[("username", "bob")], 400, "rights", "at least one"),
            (&me, &[("rights", "devices")], 403, "rights", "last collaborator"),
        ],
    )
    .await;
}

#[tokio::test]
async fn gateway_forms_explain_errors() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let plan = ("frequency_plan", "EU_863_870");
    alice.post("/my/gateways", &[("id", "my-gw"), plan]).await;
    let new = |id, latitude, longitude| [("id", id), plan, ("latitude", latitude), ("longitude", longitude)];
    check(
        &mut alice,
        &[
            ("/my/gateways", &new("my-gw", "", ""), 409, "id", "taken"),
            ("/my/gateways", &new("MY GW", "", ""), 400, "id", "lowercase"),
            ("/my/gateways", &new("new-gw", "91", "0.5"), 400, "latitude", "-90 to 90"),
            ("/my/gateways", &new("new-gw", "NaN", "0.5"), 400, "latitude", "-90 to 90"),
            ("/my/gateways", &new("new-gw", "north", "4"), 400, "latitude", "number"),
            ("/my/gateways", &new("new-gw", "52", "east"), 400, "longitude", "number"),
            ("/my/gateways", &new("new-gw", "52", ""), 400, "latitude", "both"),
            ("/my/gateways", &[("id", "new-gw")], 400, "frequency_plan", "must be"),
            ("/my/gateways/my-gw", &[plan, ("altitude", "high"), ("brand", "B")], 400, "altitude", "metres"),
        ],
    )
    .await;
}
