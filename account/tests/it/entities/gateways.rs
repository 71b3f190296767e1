//! Gateways: created, changed, transferred, deleted.

use airlock_account::{RouterSettings, Settings};
use serde_json::{Value, json};

use crate::service::Service;

pub(crate) const GW: &str = "/api/v2/gateways/my-gw";

pub(crate) fn network() -> Settings {
    let router = |id: &str| RouterSettings {
        id: id.parse().unwrap(),
        address: format!("{id}.example.com:1901"),
        mqtt_address: format!("mqtts://{id}.example.com:8883"),
    };
    let public_url = Some("https://account.example.com".parse().unwrap());
    Settings { routers: vec![router("router-eu"), router("router-us")], public_url, ..Settings::default() }
}

fn router(id: &str) -> Value {
    json!({
        "id": id, "address": format!("{id}.example.com:1901"), "mqtt_address": format!("mqtts://{id}.example.com:8883"),
    })
}

pub(crate) async fn patch(service: &Service, authorization: &str, body: Value) -> u16 {
    service.call("PATCH", GW, authorization, body).await.status.as_u16()
}

// Conformance: The creator of an application or gateway is its first collaborator
// Conformance: `id`, `frequency_plan`, `frequency_plan_url`, `attributes`, `router`
// Conformance: Creating takes `id`, `frequency_plan`, `location`, `auto_update`
// Conformance: GET, POST /gateways; 409 when the id is taken
#[tokio::test]
async fn a_new_gateway_has_the_exact_json_that_clients_read() {
    let service = Service::start_with(network()).await;
    let general = service.user("alice").await;
    let place = json!({"longitude": 4.88968, "latitude": 52.37403, "altitude": 7});
    for (id, member) in [("my-gw", "antenna_location"), ("other-gw", "location")] {
        let body = json!({
            "id": id, "frequency_plan": "EU_863_870", (member): place, "auto_update": true, "activated": true,
            "attributes": {"brand": "Acme", "placement": "outdoor"}, "router": "router-us", "key": "mine",
            "owner": {"id": "0", "username": "bob"}, "collaborators": [], "token": {},
        });
        let response = service.post("/api/v2/gateways", &general, body).await;
        assert_eq!(response.status, 201, "{response:?}");
        let created = response.json();
        let user_id = service.get("/api/v2/users/me", &general).await.json()["_id"].clone();
        let all = ["settings", "delete", "collaborators", "status", "location", "owner", "messages"];
        let all = all.map(|right| format!("gateway:{right}"));
        let expected = json!({
            "id": id, "activated": false, "frequency_plan": "EU_863_870",
            "frequency_plan_url": "https://account.example.com/api/v2/frequency-plans/EU_863_870",
            "auto_update": true, "beta_updates": false, "location_public": false, "status_public": false,
            "owner_public": false, "antenna_location": place,
            "attributes": {"brand": "Acme", "placement": "outdoor"}, "router": router("router-us"),
            "fallback_routers": [router("router-eu")], "owner": {"id": user_id, "username": "alice"},
            "collaborators": [{"username": "alice", "email": "alice@example.com", "rights": all}],
            "key": created["key"],
        });
        assert_eq!(created, expected);
        assert!(created["key"].as_str().unwrap().starts_with("airlock-account."));
        let mine = service.restrict(&general, &[&format!("gateways:{id}")]).await;
        assert_eq!(service.get(&format!("/gateways/{id}"), &mine).await.json(), created);
    }
    let listed = service.get("/gateways", &general).await.json();
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&json!("my-gw"), &json!("other-gw")));
}

#[tokio::test]
async fn users_cannot_publish_what_they_may_not_see() {
    let service = Service::start_with(network()).await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let hers = service.gateway(&alice, "my-gw").await;
    let flags = [("location_public", "location"), ("owner_public", "owner"), ("status_public", "status")];
    for (flag, right) in flags {
        let give = async |rights: Value| {
            let path = format!("{GW}/collaborators/bob");
            assert_eq!(service.call("PUT", &path, &hers, rights).await.status, 201);
            service.restrict(&bob, &["gateways:my-gw"]).await
        };
        let narrow = give(json!(["gateway:settings"])).await;
        assert_eq!(patch(&service, &narrow, json!({(flag): true})).await, 403, "{flag}");
        assert_eq!(service.get(GW, &hers).await.json()[flag], false, "{flag}");
        let wide = give(json!(["gateway:settings", format!("gateway:{right}")])).await;
        assert_eq!(patch(&service, &wide, json!({(flag): true})).await, 204, "{flag}");
        let narrow = give(json!(["gateway:settings"])).await;
        assert_eq!(patch(&service, &narrow, json!({(flag): true})).await, 204, "{flag} is so already");
        assert_eq!(patch(&service, &narrow, json!({(flag): false})).await, 204, "{flag} may be hidden");
    }
}

// Conformance: `location_public`, `owner_public`, `status_public`
// Conformance: `auto_update`
// Conformance: PATCH /gateways/{gw_id}; 400, 401, 403, 404
#[tokio::test]
async fn an_update_changes_only_the_given_fields() {
    let service = Service::start_with(network()).await;
    let general = service.user("alice").await;
    let mine = service.gateway(&general, "my-gw").await;
    let first = json!({"attributes": {"brand": "Acme", "model": "A1", "description": "on the roof"}});
    assert_eq!(patch(&service, &mine, first).await, 204);
    let before = service.get(GW, &mine).await.json();
    let cases = [
        (json!({}), json!({})),
        (
            json!({"attributes": {"model": "A2", "brand": null}}),
            json!({"attributes": {"description": "on the roof", "model": "A2"}}),
        ),
        (
            json!({"frequency_plan": "US"}),
            json!({
                "frequency_plan": "US_902_928",
                "frequency_plan_url": "https://account.example.com/api/v2/frequency-plans/US_902_928",
            }),
        ),
        (
            json!({"router": "router-us"}),
            json!({"router": router("router-us"), "fallback_routers": [router("router-eu")]}),
        ),
        (
            json!({"fallback_routers": ["router-us", "router-eu"]}),
            json!({"fallback_routers": [router("router-us"), router("router-eu")]}),
        ),
        (json!({"auto_update": true, "beta_updates": true}), json!({"auto_update": true, "beta_updates": true})),
        (
            json!({"antenna_location": {"longitude": 4.5, "latitude": 52.5, "altitude": 0}}),
            json!({"antenna_location": {"longitude": 4.5, "latitude": 52.5, "altitude": 0}}),
        ),
        (
            json!({"antenna_location": {"longitude": 0, "latitude": 0, "altitude": 30}}),
            json!({"antenna_location": {"longitude": 4.5, "latitude": 52.5, "altitude": 30}}),
        ),
        (
            json!({"id": "other", "key": "k.k", "token": {"access_token": "t"}, "activated": true, "created": "now",
            "collaborators": [], "deleted": "now", "rights": [], "owner": before["owner"]}),
            json!({}),
        ),
    ];
    let mut expected = before;
    for (body, change) in cases {
        assert_eq!(patch(&service, &mine, body.clone()).await, 204, "{body}");
        for (member, value) in change.as_object().unwrap() {
            expected[member] = value.clone();
        }
        assert_eq!(service.get(GW, &mine).await.json(), expected, "{body}");
    }
    let whole = service.get(GW, &mine).await.json();
    assert_eq!(patch(&service, &mine, whole.clone()).await, 204, "what was read can be sent back");
    assert_eq!(service.get(GW, &mine).await.json(), whole);
}

// Conformance: PATCH /gateways/{gw_id}; 400, 401, 403, 404
// Conformance: 400: an invalid gateway or collaborator, a scope that the client lacks
#[tokio::test]
async fn refuses_invalid_updates_and_changes_nothing() {
    let service = Service::start_with(network()).await;
    let general = service.user("alice").await;
    let mine = service.gateway(&general, "my-gw").await;
    let before = service.get(GW, &mine).await.text;
    let many: serde_json::Map<_, _> = (0..21).map(|number| (format!("a{number}"), json!("x"))).collect();
    let cases = [
        (json!({"frequency_plan": "EU868"}), 400),
        (json!({"frequency_plan": ""}), 400),
        (json!({"router": "router-xx"}), 400),
        (json!({"router": "Router"}), 400),
        (json!({"fallback_routers": ["router-eu", "router-xx"]}), 400),
        (json!({"fallback_routers": vec!["router-eu"; 11]}), 400),
        (json!({"antenna_location": {"latitude": 90.1, "longitude": 0}}), 400),
        (json!({"antenna_location": {"latitude": 0, "longitude": -180.1}}), 400),
        (json!({"antenna_location": {"latitude": 0, "longitude": 0, "altitude": -12_001}}), 400),
        (json!({"antenna_location": {"latitude": 52, "longitude": 4, "altitude": 40_000_001}}), 400),
        (json!({"antenna_location": {"latitude": "52"}}), 400),
        (json!({"antenna_location": {"altitude": 1.5}}), 400),
        (json!({"attributes": {"placement": "moon"}}), 400),
        (json!({"attributes": {"": "x"}}), 400),
        (json!({"attributes": {"brand": "x".repeat(201)}}), 400),
        (json!({"attributes": {"brand": "a\u{0}b"}}), 400),
        (json!({"attributes": {"brand": 7}}), 400),
        (json!({"attributes": many}), 403),
        (json!({"location_public": "yes"}), 400),
        (json!({"owner": "nobody"}), 404),
        (json!({"owner": "*"}), 400),
        (json!({"auto_update": true, "owner": "nobody"}), 404),
        (json!("EU"), 400),
    ];
    for (body, status) in cases {
        assert_eq!(service.call("PATCH", GW, &mine, body.clone()).await.error().0, status, "{body}");
    }
    assert_eq!(service.get(GW, &mine).await.text, before);
    for body in [json!({"id": "new-gw"}), json!({"id": "New", "frequency_plan": "EU"}), json!({"frequency_plan": "EU"})]
    {
        assert_eq!(service.post("/gateways", &general, body.clone()).await.error().0, 400, "{body}");
    }
    assert_eq!(service.get("/gateways", &general).await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn only_the_owner_can_transfer_a_gateway() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        service.user("carol").await;
        let hers = service.gateway(&alice, "my-gw").await;
        let settings = json!(["gateway:settings", "gateway:owner"]);
        let path = format!("{GW}/collaborators/bob");
        assert_eq!(service.call("PUT", &path, &hers, settings).await.status, 201);
        let his = service.restrict(&bob, &["gateways:my-gw"]).await;
        assert_eq!(patch(&service, &his, json!({"owner": "bob"})).await, 403);
        assert_eq!(patch(&service, &his, json!({"owner": "alice"})).await, 204, "she is the owner already");
        assert!(service.get(GW, &his).await.json().get("key").is_none(), "the key says where the gateway is");

        let less = json!(["gateway:settings", "gateway:owner", "gateway:collaborators"]);
        assert_eq!(service.call("PUT", &format!("{GW}/collaborators/alice"), &hers, less).await.status, 201);
        assert_eq!(patch(&service, &hers, json!({"owner": "carol"})).await, 204);
        assert_eq!(service.get(GW, &hers).await.json()["owner"]["username"], "carol");
        let carol = service.general("carol").await;
        assert_eq!(service.get("/gateways", &carol).await.json()[0]["id"], "my-gw");
        let hers_now = service.restrict(&carol, &["gateways:my-gw"]).await;
        let rights = service.get(&format!("{GW}/rights"), &hers_now).await.json();
        assert_eq!(rights, json!(["gateway:settings", "gateway:collaborators", "gateway:owner"]));
        assert_eq!(patch(&service, &hers, json!({"owner": "alice"})).await, 403, "she gave it away");
    }
}

// Conformance: DELETE /gateways/{gw_id}; 401, 403, 404
#[tokio::test]
async fn a_deleted_gateway_is_gone_and_its_id_is_not_reused() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let mine = service.gateway(&general, "my-gw").await;
        let key = format!("Key {}", service.get(GW, &mine).await.json()["key"].as_str().unwrap());
        assert_eq!(service.call("DELETE", GW, &mine, Value::Null).await.status, 204);
        for (authorization, status) in [("", 404), (general.as_str(), 404), (mine.as_str(), 404), (key.as_str(), 401)] {
            assert_eq!(service.get(GW, authorization).await.status, status);
        }
        assert_eq!(service.call("DELETE", GW, &mine, Value::Null).await.status, 404);
        assert_eq!(service.get("/gateways", &general).await.json(), json!([]));
        let body = json!({"id": "my-gw", "frequency_plan": "EU"});
        assert_eq!(service.post("/gateways", &general, body).await.error().0, 409);
        let scope = json!({"scope": ["gateways:my-gw"]});
        assert_eq!(service.post("/users/restrict-token", &general, scope).await.status, 403);
    }
}
