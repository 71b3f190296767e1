//! Fifty concurrent requests for the same thing: one succeeds, the others fail cleanly, on every store.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    oauth::authorize::{code, of_app, session, with_app},
    service::Service,
};

const TRIES: usize = 50;
/// The number of users; each needs a login, which is slow on purpose.
const TRIES_OF_USERS: usize = 5;
const ROUNDS: usize = 20;
const ROUNDS_OF_CODES: usize = 50;

async fn at_once(service: &Service, calls: impl Iterator<Item = (&'static str, String, String, Value)>) -> Statuses {
    let mut running = tokio::task::JoinSet::new();
    for (method, path, authorization, body) in calls {
        let request = service.request(method, &path, &authorization);
        let request = if body.is_null() { request } else { request.json(&body) };
        running.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    let mut statuses = Statuses::new();
    for status in running.join_all().await {
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}

type Statuses = BTreeMap<u16, usize>;

// Conformance: POST /applications; 409 when the id is taken
// Conformance: GET, POST /gateways; 409 when the id is taken
// Conformance: 409: an id or the name of a key is taken
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_create_one_entity_per_id() {
    let sorts = [
        ("/api/v2/applications", "/api/v2/applications", json!({"id": "my-id", "name": ""})),
        ("/api/v2/gateways", "/api/v2/gateways", json!({"id": "my-id", "frequency_plan": "EU_863_870"})),
        ("/api/v2/components/brokers", "/api/v2/components", json!({"id": "my-id"})),
        ("/api/v2/clients", "/api/v2/clients", json!({"name": "my-id", "uri": "app://callback", "scope": ["apps"]})),
    ];
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        for (path, list, body) in &sorts {
            let call = |_| ("POST", (*path).to_owned(), general.clone(), body.clone());
            let statuses = at_once(&service, (0..TRIES).map(call)).await;
            assert_eq!(statuses, Statuses::from([(201, 1), (409, TRIES - 1)]), "{path}");
            assert_eq!(service.get(list, &general).await.json().as_array().unwrap().len(), 1, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_create_one_user_per_name() {
    for service in Service::start_on_each_store().await {
        let call = |number| {
            let body = json!({"username": "alice", "email": "a@example.com", "password": format!("password {number}")});
            ("POST", "/api/v2/users".to_owned(), String::new(), body)
        };
        assert_eq!(at_once(&service, (0..8).map(call)).await, Statuses::from([(201, 1), (409, 7)]));
    }
}

// Conformance: `name` (unique in the application), `key`, `rights`
// Conformance: 409: an id or the name of a key is taken
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_create_one_key_per_name() {
    for service in Service::start_on_each_store().await {
        let mine = service.application(&service.user("alice").await, "my-app").await;
        let path = "/api/v2/applications/my-app/access-keys";
        let call = |name: String| ("POST", path.to_owned(), mine.clone(), json!({"name": name, "rights": ["devices"]}));
        let same = at_once(&service, (0..TRIES).map(|_| call("same".to_owned()))).await;
        assert_eq!(same, Statuses::from([(204, 1), (409, TRIES - 1)]));
        let different = at_once(&service, (0..TRIES).map(|number| call(format!("key {number}")))).await;
        assert_eq!(different, Statuses::from([(204, TRIES)]));
        assert_eq!(service.get(path, &mine).await.json().as_array().unwrap().len(), 2 + TRIES);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_claims_give_an_eui_to_one_application() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let mut applications = Vec::new();
        for number in 0..10 {
            let app_id = format!("app-{number}");
            applications.push((service.application(&general, &app_id).await, app_id));
        }
        let call = |try_number: usize| {
            let (authorization, app_id) = &applications[try_number % applications.len()];
            let path = format!("/applications/{app_id}/euis/70B3D57ED0000001");
            ("PUT", path, authorization.clone(), Value::Null)
        };
        let statuses = at_once(&service, (0..TRIES).map(call)).await;
        assert_eq!(statuses, Statuses::from([(204, 5), (409, 45)]), "all tries of the one that was first");
        let listed = service.get("/applications", &general).await.json();
        let owners = listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|application| application["euis"].as_array().unwrap().contains(&json!("70B3D57ED0000001")));
        assert_eq!(owners.count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_never_list_an_eui_twice() {
    const EUI: &str = "70B3D57ED0000001";
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let first = service.application(&general, "app-1").await;
        let second = service.application(&general, "app-2").await;
        let path = |app_id: &str| format!("/applications/{app_id}/euis/{EUI}");
        for round in 0..ROUNDS {
            service.call("PUT", &path("app-1"), &first, Value::Null).await;
            let call = |number: usize| match number % 4 {
                0 => ("DELETE", path("app-1"), first.clone(), Value::Null),
                1 | 2 => ("PUT", path("app-1"), first.clone(), Value::Null),
                _ => ("PUT", path("app-2"), second.clone(), Value::Null),
            };
            at_once(&service, (0..TRIES).map(call)).await;
            let listed = service.get("/applications", &general).await.text;
            assert!(listed.matches(EUI).count() <= 1, "round {round}: {listed}");
            service.call("DELETE", &path("app-2"), &second, Value::Null).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_collaborators_who_remove_each_other_leave_one() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        for round in 0..10 {
            let id = format!("id-{round}");
            let sorts = [
                (service.application(&alice, &id).await, "apps", "/applications", "collaborators"),
                (service.gateway(&alice, &id).await, "gateways", "/gateways", "gateway:collaborators"),
                (service.handler(&alice, &id).await, "components", "/components/handlers", "component:collaborators"),
            ];
            for (hers, scope, root, right) in sorts {
                let path = |username: &str| format!("{root}/{id}/collaborators/{username}");
                assert_eq!(service.call("PUT", &path("bob"), &hers, json!([right])).await.status, 201);
                let his = service.restrict(&bob, &[&format!("{scope}:{id}")]).await;
                let both = [(path("bob"), hers), (path("alice"), his)];
                let calls = both.map(|(path, authorization)| ("DELETE", path, authorization, Value::Null));
                let statuses = at_once(&service, calls.into_iter()).await;
                // The second one is no collaborator anymore, or would be the last to leave.
                assert_eq!(statuses.get(&204), Some(&1), "{root}: {statuses:?}");
            }
        }
    }
}

// Conformance: The last collaborator with the right `collaborators` cannot be removed
#[tokio::test(flavor = "multi_thread")]
async fn fifty_collaborators_who_leave_at_once_leave_one() {
    for service in Service::start_on_each_store().await {
        let alice = service.user("alice").await;
        let hers = service.gateway(&alice, "my-gw").await;
        let mut leavers = vec![("alice".to_owned(), hers.clone())];
        for number in 1..TRIES_OF_USERS {
            let username = format!("user-{number}");
            let general = service.user(&username).await;
            let path = format!("/gateways/my-gw/collaborators/{username}");
            assert_eq!(service.call("PUT", &path, &hers, json!(["gateway:collaborators"])).await.status, 201);
            leavers.push((username, service.restrict(&general, &["gateways:my-gw"]).await));
        }
        let leave = |number: usize| {
            let (username, authorization) = &leavers[number % leavers.len()];
            ("DELETE", format!("/gateways/my-gw/collaborators/{username}"), authorization.clone(), Value::Null)
        };
        let statuses = at_once(&service, (0..TRIES).map(leave)).await;
        assert_eq!(statuses.get(&204), Some(&(leavers.len() - 1)), "{statuses:?}");
        let mut left = 0;
        for (_, authorization) in &leavers {
            left += usize::from(service.get("/gateways/my-gw/rights", authorization).await.status == 200);
        }
        assert_eq!(left, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_redeemed_concurrently_makes_one_grant() {
    for service in Service::start_on_each_store_with(with_app()).await {
        service.user("alice").await;
        let cookie = session(&service, "alice").await;
        for _ in 0..ROUNDS_OF_CODES {
            let code = code(&service, &cookie, &of_app()).await;
            let body = json!({
                "grant_type": "authorization_code", "code": code, "redirect_uri": "https://app.example.com/callback",
                "client_id": "app", "client_secret": "app-secret",
            });
            let call = |_| ("POST", "/users/token".to_owned(), String::new(), body.clone());
            let statuses = at_once(&service, (0..TRIES).map(call)).await;
            assert_eq!(statuses, Statuses::from([(200, 1), (400, TRIES - 1)]));
        }
    }
}
