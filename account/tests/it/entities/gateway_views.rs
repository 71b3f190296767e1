//! Views of a gateway: public, the gateway's own, and its firmware's.

use serde_json::{Value, json};
use types::ServiceName;

use crate::{
    entities::gateways::{GW, network, patch},
    oauth::claims::part,
    service::{Service, send},
};

// Conformance: `id`, `frequency_plan`, `frequency_plan_url`, `attributes`, `router`
// Conformance: `location_public`, `owner_public`, `status_public`
// Conformance: A router has `id`, `address`, `mqtt_address`
// Conformance: Of gateways: `gateway:settings`, `gateway:delete`, `gateway:collaborators`
// Conformance: GET /gateways/{gw_id}; 404
#[tokio::test]
async fn anybody_sees_the_public_part_of_a_gateway() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let mine = service.gateway(&alice, "my-gw").await;
        assert_eq!(
            patch(&service, &mine, json!({"antenna_location": {"latitude": 52.0, "longitude": 4.0}})).await,
            204
        );
        let members = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        for stranger in ["", bob.as_str(), alice.as_str()] {
            let seen = service.get(GW, stranger).await;
            assert_eq!((seen.status.as_u16(), &seen.headers["cache-control"]), (200, &"no-store".parse().unwrap()));
            let hidden = ["owner", "collaborators", "key", "token"];
            assert!(hidden.iter().all(|member| seen.json().get(member).is_none()), "{seen:?}");
            assert_ne!(seen.json()["antenna_location"]["latitude"], 52.0);
            assert_eq!(seen.json()["router"], Value::Null, "there is none in this network");
        }
        let public = json!({"location_public": true, "owner_public": true, "status_public": true});
        assert_eq!(patch(&service, &mine, public).await, 204);
        let seen = service.get("/gateways/my-gw", "").await.json();
        assert_eq!(seen["antenna_location"], json!({"longitude": 4.0, "latitude": 52.0}));
        assert_eq!(seen["owner"]["username"], "alice");
        assert!(!members(&seen).contains(&"key".to_owned()));
        assert_eq!(service.get("/gateways/no-gw", "").await.error(), (404, "gateway `no-gw` not found".to_owned()));
        assert_eq!(service.get(GW, "Bearer e30.e30.AA").await.status, 401, "a broken token is not like none");
    }
}

#[tokio::test]
async fn who_lacks_rights_to_a_gateway_is_told_so() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let hers = service.gateway(&alice, "my-gw").await;
        let shared = json!(["gateway:status"]);
        let collaborator = format!("{GW}/collaborators/bob");
        assert_eq!(service.call("PUT", &collaborator, &hers, shared).await.status, 201);
        let his = service.restrict(&bob, &["gateways:my-gw"]).await;
        assert_eq!(service.call("DELETE", &collaborator, &hers, Value::Null).await.status, 204);
        for token in [&his, &bob] {
            for (method, body) in [("PATCH", json!({"status_public": true})), ("DELETE", Value::Null)] {
                let answer = service.call(method, GW, token, body.clone()).await;
                assert_eq!(answer.status, 403, "everybody can see that it exists: {answer:?}");
            }
        }
        assert_eq!(service.call("DELETE", "/api/v2/gateways/no-gw", &bob, Value::Null).await.status, 404);
        let hers = service.application(&alice, "my-app").await;
        assert!(!hers.is_empty());
        let answer = service.call("DELETE", "/api/v2/applications/my-app", &bob, Value::Null).await;
        assert_eq!(answer.status, 404, "an application of others is as one that does not exist");
    }
}

#[tokio::test]
async fn the_operators_components_see_whose_a_gateway_is() {
    for service in Service::start_on_each_store().await {
        let alice = service.user("alice").await;
        service.gateway(&alice, "my-gw").await;
        service.application(&alice, "my-app").await;
        let ours = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
        let ours = format!("Bearer {}", ours.expose());
        let seen = service.get(GW, &ours).await.json();
        assert_eq!(seen["owner"]["username"], "alice");
        assert!(["key", "collaborators"].iter().all(|member| seen.get(*member).is_none()), "{seen}");
        let theirs = service.handler(&alice, "her-handler").await;
        let theirs = service.get("/api/v2/components/handlers/her-handler/token", &theirs).await.json();
        let theirs = format!("Bearer {}", theirs["token"].as_str().unwrap());
        let for_devices = service.restrict(&ours, &["apps:my-app"]).await;
        for token in [&theirs, &for_devices] {
            assert!(service.get(GW, token).await.json().get("owner").is_none());
        }
    }
}

// Conformance: `collaborators`, `key`, `token`, `activated`
#[tokio::test]
async fn a_gateway_is_activated_by_using_its_key() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let mine = service.gateway(&general, "my-gw").await;
        service.gateway(&general, "other-gw").await;
        let place = json!({"antenna_location": {"latitude": 52.0, "longitude": 4.0}, "status_public": true});
        assert_eq!(patch(&service, &mine, place).await, 204);
        let own = service.get(GW, &mine).await.json();
        let key = own["key"].as_str().unwrap();
        for wrong in ["airlock-account.wrong", "other.wrong"] {
            assert_eq!(service.get(GW, &format!("Key {wrong}")).await.status, 401);
        }
        assert_eq!(service.get("/gateways/other-gw", &format!("Key {key}")).await.status, 401);
        assert_eq!(service.get("/gateways/no-gw", &format!("Key {key}")).await.status, 401);
        assert_eq!(service.get(GW, &mine).await.json()["activated"], false);

        for scheme in ["Key", "key"] {
            let seen = service.get(GW, &format!("{scheme} {key}")).await.json();
            assert_eq!((&seen["key"], &seen["activated"]), (&json!(key), &json!(true)));
            assert_eq!(seen["antenna_location"]["latitude"], 52.0);
            assert_eq!(seen["token"]["expires_in"], 8_035_200);
            assert!(seen.get("owner").is_none() && seen.get("collaborators").is_none());
        }
        assert_eq!(service.get(GW, &mine).await.json()["activated"], true);
        let rights = service.get(&format!("{GW}/rights"), &format!("Key {key}")).await.json();
        assert_eq!(rights, json!(["gateway:location"]));

        for authorization in [format!("Key {key}"), mine] {
            let response = service.get(&format!("{GW}/token"), &authorization).await;
            assert_eq!(
                (response.status.as_u16(), &response.headers["cache-control"]),
                (200, &"no-store".parse().unwrap())
            );
            let response = response.json();
            assert_eq!(response.as_object().unwrap().len(), 2, "{response}");
            let token = response["access_token"].as_str().unwrap();
            let now = service.now_seconds();
            let expected = json!({
                "iss": "airlock-account", "sub": "my-gw", "type": "gateway", "iat": now - 60, "exp": now + 8_035_200,
                "scope": [], "interchangeable": false, "owner": part(&general, 1)["sub"], "location_public": false,
                "status_public": true,
            });
            assert_eq!(part(token, 1), expected);
            assert_eq!(service.get("/api/v2/users/me", &format!("Bearer {token}")).await.status, 403);
        }
    }
}

#[tokio::test]
async fn the_firmware_gets_only_what_it_reads() {
    let service = Service::start_with(network()).await;
    let mine = service.gateway(&service.user("alice").await, "my-gw").await;
    let key = service.get(GW, &mine).await.json()["key"].as_str().unwrap().to_owned();
    let request = service.request("GET", GW, &format!("Key {key}")).header("user-agent", "TTNGateway/1.0");
    let seen = send(request).await.json();
    let addresses = |id: &str| {
        let (address, mqtt_address) = (format!("{id}.example.com:1901"), format!("mqtts://{id}.example.com:8883"));
        json!({"address": address, "mqtt_address": mqtt_address})
    };
    let expected = json!({
        "activated": true, "frequency_plan": "EU_863_870",
        "frequency_plan_url": "https://account.example.com/api/v2/frequency-plans/EU_863_870",
        "auto_update": false, "beta_updates": false, "location_public": false, "status_public": false,
        "owner_public": false, "router": addresses("router-eu"), "fallback_routers": [addresses("router-us")],
        "key": key,
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn urls_in_responses_cannot_be_changed_by_headers() {
    let service = Service::start().await;
    service.gateway(&service.user("alice").await, "my-gw").await;
    let plan = "/api/v2/frequency-plans/EU_863_870";
    let with_host = async |host: &'static str| {
        send(service.request("GET", GW, "").header("host", host)).await.json()["frequency_plan_url"].clone()
    };
    let direct = service.get(GW, "").await.json()["frequency_plan_url"].clone();
    assert_eq!(direct, format!("{}{plan}", service.base));
    assert_eq!(with_host("account.example.com:8000").await, format!("http://account.example.com:8000{plan}"));
    for host in ["user@evil.example", "evil.example/path", "a b", "\"><script>"] {
        assert_eq!(with_host(host).await, plan, "{host}");
    }
}
