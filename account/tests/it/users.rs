//! All users over the API: who may list them, pages, search, and what one user has.

pub(crate) mod mail;
mod profile;

use std::fs;

use airlock_account::Settings;
use serde_json::{Value, json};
use store::{Batch, Commit, Key, Tag};

use crate::{
    oauth::authorize::{APP, code, of_app, redeem, session, with_app},
    processes::audit::record_here,
    service::{Service, bearer},
};

const PATH: &str = "/api/v2/users";
/// More than are on a page.
const MANY: usize = 130;
/// As many as are searched for a page.
const SEARCHED: usize = 500;

async fn id_of(service: &Service, authorization: &str) -> String {
    service.get("/api/v2/users/me", authorization).await.json()["_id"].as_str().unwrap().to_owned()
}

/// The same service with Alice as its operator, and her token.
async fn operated_with(service: &Service, settings: Settings) -> (Service, String) {
    let alice = service.user("alice").await;
    let operators = vec![id_of(service, &alice).await.parse().unwrap()];
    (service.reopen_with(Settings { operators, ..settings }).await, alice)
}

async fn operated(service: &Service) -> (Service, String) {
    operated_with(service, Settings::default()).await
}

async fn put(service: &Service, key: Key, value: String) {
    let written = service.store.commit(Batch::new().put(key, value.into_bytes())).await;
    assert_eq!(written.unwrap(), Commit::Done);
}

/// Adds a name to the list of all users, as a crash may leave it, too.
async fn list_name(service: &Service, name: &str) {
    put(service, Key::new(&Tag::named("oo", "users").unwrap(), &format!("id/{name}")).unwrap(), "null".to_owned())
        .await;
}

/// Copies Alice to users named `user-000` and so on, with addresses elsewhere.
async fn copy(service: &Service, authorization: &str) {
    let alice = id_of(service, authorization).await;
    let record = |id: &str| Key::new(&Tag::user(id).unwrap(), "user").unwrap();
    let found = service.store.get(&[record(&alice)]).await.unwrap().remove(0).unwrap();
    let text = String::from_utf8(found.value.to_vec()).unwrap();
    for number in 0..MANY {
        let (id, name) = (format!("{number:024}"), format!("user-{number:03}"));
        let email = format!("{name}@Example.org");
        let copy = text.replace("alice@example.com", &email).replace("\"alice\"", &format!("\"{name}\""));
        put(service, record(&id), copy.replace(&alice, &id)).await;
        list_name(service, &name).await;
        let key = Key::new(&Tag::named("n", &name).unwrap(), "user").unwrap();
        put(service, key, json!({ "user_id": id }).to_string()).await;
    }
}

fn names(users: &Value) -> Vec<String> {
    users.as_array().unwrap().iter().map(|user| user["username"].as_str().unwrap().to_owned()).collect()
}

/// The names on each page, following the links.
async fn pages(service: &Service, authorization: &str, query: &str) -> Vec<Vec<String>> {
    let (mut pages, mut query) = (Vec::new(), query.to_owned());
    loop {
        let page = service.get(&format!("{PATH}{query}"), authorization).await;
        assert!(page.status == 200 && pages.len() < 20, "{page:?}");
        pages.push(names(&page.json()));
        let Some(link) = page.headers.get("link") else { return pages };
        let link = link.to_str().unwrap();
        query = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_owned();
    }
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn only_operators_list_users() {
    for first in Service::start_on_each_store().await {
        let (service, alice) = operated(&first).await;
        let bob = service.user("bob").await;
        let one = format!("{PATH}/{}", id_of(&service, &bob).await);
        for path in [PATH, &one, &format!("{PATH}/0102030405060708090a0b0c"), &format!("{PATH}?search=alice")] {
            let (status, error) = service.get(path, &bob).await.error();
            assert!(status == 403 && error.contains("`account.operators`"), "{path}: {error}");
            assert_eq!(service.get(path, "").await.status, 401);
        }
        assert_eq!(names(&service.get(PATH, &alice).await.json()), ["alice", "bob"]);
        assert_eq!(service.get(&one, &alice).await.status, 200);
        // The first one has no operators.
        assert_eq!(first.get(PATH, &alice).await.status, 403);

        service.account.set_disabled(&"alice".parse().unwrap(), true).await.unwrap();
        assert_eq!(service.get(PATH, &alice).await.status, 401);
    }
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn a_program_that_may_read_the_profile_of_an_operator_does_not_list_users() {
    let first = Service::start().await;
    let (service, alice) = operated_with(&first, with_app()).await;
    let cookie = session(&service, "alice").await;
    let code = code(&service, &cookie, &of_app()).await;
    let response = redeem(&service, ("app", "app-secret"), &[("code", &code), ("redirect_uri", APP)]).await;
    let token = bearer(&response.json()["access_token"]);
    assert_eq!(service.get("/api/v2/users/me", &token).await.status, 200);
    let (status, error) = service.get(PATH, &token).await.error();
    assert!(status == 403 && error.contains("only our own programs"), "{error}");
    assert_eq!(service.get(PATH, &alice).await.status, 200);
    let apps = service.restrict(&alice, &["apps"]).await;
    let (status, error) = service.get(PATH, &apps).await.error();
    assert!(status == 403 && error.contains("the scope `profile`"), "{error}");
}

// Conformance: console: users, for operators
#[tokio::test]
async fn the_audit_log_has_who_read_which_users() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let (first, audit) = Service::start_audited(&log).await;
    let (service, alice) = operated(&first).await;
    let (operator, bob) = (id_of(&service, &alice).await, service.user("bob").await);
    let bob_id = id_of(&service, &bob).await;
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = record_here(&audit);
    let read = async |path: &str, authorization: &str| {
        service.get(path, authorization).await;
        let text = fs::read_to_string(&log).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let (one, search) = (format!("{PATH}/{bob_id}"), format!("{PATH}?search=bob@example"));
    for (path, event, object) in [
        (PATH, "users read", "2 in the list, alice to bob"),
        (search.as_str(), "users read", "1 in the list, bob to bob"),
        (one.as_str(), "user read", bob_id.as_str()),
    ] {
        let lines = read(path, &alice).await;
        let line = lines.last().unwrap();
        let expected = json!([event, operator, object]);
        assert_eq!(json!([line["event"], line["actor"], line["object"]]), expected, "{line}");
    }
    let before = read(&format!("{PATH}?search=nobody"), &alice).await.len();
    assert_eq!(before, 3, "a list without users tells nothing");
    let lines = read(&one, &bob).await;
    assert!(lines.iter().filter(|line| line["event"] == "user read").count() == 1, "{lines:?}");
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn a_list_has_profiles_and_no_secrets() {
    let first = Service::start().await;
    let (service, alice) = operated(&first).await;
    let bob = id_of(&service, &service.user("bob").await).await;
    service.account.set_disabled(&"bob".parse().unwrap(), true).await.unwrap();
    let list = service.get(PATH, &alice).await;
    assert_eq!(list.headers["cache-control"], "no-store");
    let mut listed = list.json()[1].clone();
    assert!(listed["created"].take().as_str().unwrap().starts_with("2026-01-01T00:00:00"), "{listed}");
    let expected = json!({
        "username": "bob", "email": "bob@example.com", "created": null, "name": {}, "valid": false, "_id": bob,
        "disabled": true,
    });
    assert_eq!(listed, expected);
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn pages_continue_each_other_and_have_every_user_once() {
    for first in Service::start_on_each_store().await {
        let (service, alice) = operated(&first).await;
        copy(&service, &alice).await;
        let all = pages(&service, &alice, "").await;
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [100, MANY - 99]);
        let all = all.concat();
        assert!(all.len() == MANY + 1 && all.is_sorted_by(|one, next| one < next), "{all:?}");

        let found = pages(&service, &alice, "?search=%20EXAMPLE.org").await;
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [100, MANY - 100]);
        assert_eq!(found.concat(), all[1..]);
        for (search, name) in [("ser-07", "user-070"), (&format!("{:024}", 12)[..], "user-012"), ("LICE@ex", "alice")] {
            let found = pages(&service, &alice, &format!("?search={search}")).await.concat();
            assert_eq!(found.first().map(String::as_str), Some(name), "{search}: {found:?}");
        }
        assert_eq!(pages(&service, &alice, "?search=%26after%3Da").await.concat(), [""; 0]);
        assert_eq!(names(&service.get(&format!("{PATH}?after=user-127"), &alice).await.json()).len(), 2);
        for query in ["?after=NO%20NAME", &format!("?search={}", "a".repeat(255))] {
            assert_eq!(service.get(&format!("{PATH}{query}"), &alice).await.status, 400, "{query}");
        }
    }
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn a_page_without_users_is_not_the_last_while_names_are_left() {
    let first = Service::start().await;
    let (service, alice) = operated(&first).await;
    service.user("zoe").await;
    for number in 0..SEARCHED {
        list_name(&service, &format!("gone-{number:03}")).await;
    }
    assert_eq!(pages(&service, &alice, "?search=zoe").await, [vec![], vec!["zoe".to_owned()]]);
    assert_eq!(pages(&service, &alice, "").await.concat(), ["alice", "zoe"]);
}

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test]
async fn one_user_is_shown_with_what_they_have() {
    for first in Service::start_on_each_store().await {
        let (service, alice) = operated(&first).await;
        let bob = service.user("bob").await;
        let path = format!("{PATH}/{}", id_of(&service, &bob).await);
        let details = async || service.get(&path, &alice).await.json();
        // The registration began a session.
        let began = details().await["last_session"].clone();
        service.pass(60);
        session(&service, "bob").await;
        assert_ne!(details().await["last_session"], began);

        for app_id in ["b-app", "a-app", "gone-app"] {
            service.application(&bob, app_id).await;
        }
        let gone = service.restrict(&bob, &["apps:gone-app"]).await;
        assert_eq!(service.call("DELETE", "/api/v2/applications/gone-app", &gone, Value::Null).await.status, 204);
        let shared = service.application(&alice, "shared-app").await;
        let put = service.call("PUT", "/api/v2/applications/shared-app/collaborators/bob", &shared, json!(["devices"]));
        assert_eq!(put.await.status, 201);
        service.gateway(&bob, "his-gw").await;
        let found = details().await;
        assert_eq!(found["applications"], json!(["a-app", "b-app", "shared-app"]));
        assert_eq!((&found["gateways"], &found["more"]), (&json!(["his-gw"]), &json!(false)));
        assert_eq!((&found["username"], &found["disabled"]), (&json!("bob"), &json!(false)));

        let unknown = service.get(&format!("{PATH}/0102030405060708090a0b0c"), &alice).await;
        assert_eq!(unknown.error().0, 404);
        assert_eq!(service.get(&format!("{PATH}/bob"), &alice).await.error().0, 400);
    }
}
