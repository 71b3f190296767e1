//! A crash between any two writes: the next call sees a consistent state, or repairs it.

use serde_json::{Value, json};

use crate::service::{PASSWORD, Service, TestResponse};

const WRITES_MAX: i64 = 12;

async fn stopping(call: impl AsyncFn(&Service, &str) -> TestResponse, then: impl AsyncFn(&Service, &str, i64)) {
    for writes in 0..WRITES_MAX {
        let (service, store) = Service::start_on_failing_store().await;
        let general = service.user("alice").await;
        service.user("bob").await;
        service.application(&general, "old-app").await;
        store.fail_after(writes);
        let response = call(&service, &general).await;
        store.recover();
        if response.status.is_success() {
            assert!(writes > 0, "a call that changes something writes something");
            return;
        }
        assert_eq!(response.error().0, 503, "after {writes} writes");
        then(&service, &general, writes).await;
    }
    panic!("it never succeeded");
}

#[tokio::test]
async fn a_crash_while_registering_leaves_the_name_free() {
    let body = json!({"username": "carol", "email": "carol@example.com", "password": PASSWORD});
    let register = async |service: &Service| service.post("/api/v2/users", "", body.clone()).await;
    let again = async |service: &Service, _: &str, writes: i64| {
        assert_eq!(register(service).await.status, 201, "after {writes} writes");
        assert_eq!(service.login("carol", PASSWORD, Value::Null).await.status, 200);
    };
    stopping(async |service, _| register(service).await, again).await;
}

#[tokio::test]
async fn a_crash_while_creating_leaves_a_whole_application_or_none() {
    for euis in [json!(null), json!(["70B3D57ED0000001", "70B3D57ED0000002"])] {
        let body = json!({"id": "my-app", "name": "", "euis": euis});
        let create =
            async |service: &Service, general: &str| service.post("/applications", general, body.clone()).await;
        let again = async |service: &Service, general: &str, writes: i64| {
            let status = create(service, general).await.status.as_u16();
            assert_eq!(status, if writes == 0 { 201 } else { 409 }, "after {writes} writes");
            let mine = service.restrict(general, &["apps:my-app"]).await;
            let application = service.get("/applications/my-app", &mine).await.json();
            if euis.is_null() {
                assert_eq!(application["euis"].as_array().unwrap().len(), 1, "after {writes} writes");
            } else {
                assert_eq!(application["euis"], euis, "after {writes} writes");
            }
            let listed = service.get("/applications", general).await.json();
            assert_eq!(listed[0], application, "after {writes} writes");
        };
        stopping(create, again).await;
    }
}

#[tokio::test]
async fn a_crash_while_creating_leaves_a_gateway_or_component_that_can_be_found() {
    let sorts = [
        (
            0,
            "/gateways",
            json!({"id": "my-id", "frequency_plan": "EU"}),
            "gateways:my-id",
            "/gateways/my-id",
            "/gateways",
        ),
        // The operator's roll comes first, so that it has everything that there is.
        (
            1,
            "/components/brokers",
            json!({"id": "my-id"}),
            "components:my-id",
            "/components/brokers/my-id",
            "/components",
        ),
    ];
    for (writes_before, path, body, scope, own, list) in sorts {
        let create = async |service: &Service, general: &str| service.post(path, general, body.clone()).await;
        let again = async |service: &Service, general: &str, writes: i64| {
            if writes <= writes_before {
                assert_eq!(create(service, general).await.status, 201);
            }
            let mine = service.restrict(general, &[scope]).await;
            assert_eq!(service.get(own, &mine).await.status, 200, "after {writes} writes");
            assert_eq!(service.get(list, general).await.json()[0]["id"], "my-id", "after {writes} writes");
        };
        stopping(create, again).await;
    }
}

#[tokio::test]
async fn a_crash_while_registering_a_client_leaves_it_free_or_owned() {
    let body = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
    let create = async |service: &Service, general: &str| service.post("/api/v2/clients", general, body.clone()).await;
    let again = async |service: &Service, general: &str, writes: i64| {
        assert_eq!(create(service, general).await.status, 201, "after {writes} writes");
        assert_eq!(service.get("/api/v2/clients", general).await.json().as_array().unwrap().len(), 1);
        assert_eq!(service.account.clients_undecided().await.unwrap().len(), 1);
    };
    stopping(create, again).await;
}

#[tokio::test]
async fn a_crash_while_changing_an_eui_leaves_one_owner_or_none() {
    const OLD: &str = "/applications/old-app/euis/70B3D57ED0000001";
    const NEW: &str = "/applications/new-app/euis/70B3D57ED0000001";
    let call = async |service: &Service, general: &str, method: &str, path: &str| {
        let app_id = path.split('/').nth(2).unwrap();
        let mine = service.restrict(general, &[&format!("apps:{app_id}")]).await;
        service.call(method, path, &mine, Value::Null).await
    };
    let add = async |service: &Service, general: &str| call(service, general, "PUT", OLD).await;
    let once = async |service: &Service, general: &str, writes: i64| {
        service.application(general, "new-app").await;
        let theirs = call(service, general, "PUT", NEW).await.status.as_u16();
        // The second write is the claim: before it the EUI is free, after it it belongs to the first application.
        assert_eq!(theirs, if writes < 2 { 204 } else { 409 }, "after {writes} writes");
        let ours = call(service, general, "PUT", OLD).await.status.as_u16();
        assert_eq!(ours, if writes < 2 { 409 } else { 204 }, "after {writes} writes");
    };
    stopping(add, once).await;

    let remove = async |service: &Service, general: &str| call(service, general, "DELETE", OLD).await;
    let with_eui = async |service: &Service, general: &str| {
        let added = add(service, general).await;
        if added.status.is_success() { remove(service, general).await } else { added }
    };
    let free_or_ours = async |service: &Service, general: &str, writes: i64| {
        if writes < 3 {
            return;
        }
        service.application(general, "new-app").await;
        let theirs = call(service, general, "PUT", NEW).await.status.as_u16();
        // Three writes add it. The next one removes it, and what remains of the claim blocks nobody.
        assert_eq!(theirs, if writes == 3 { 409 } else { 204 }, "after {writes} writes");
    };
    stopping(with_eui, free_or_ours).await;
}

#[tokio::test]
async fn a_crash_while_adding_a_collaborator_is_repaired_on_access() {
    const BOB: &str = "/applications/old-app/collaborators/bob";
    let add = async |service: &Service, general: &str| {
        let mine = service.restrict(general, &["apps:old-app"]).await;
        service.call("PUT", BOB, &mine, json!(["devices"])).await
    };
    let comes = async |service: &Service, _: &str, writes: i64| {
        let bob = service.general("bob").await;
        let scope = json!({"scope": ["apps:old-app"]});
        let restricted = service.post("/users/restrict-token", &bob, scope).await;
        assert_eq!(restricted.status, if writes == 0 { 403 } else { 200 }, "after {writes} writes");
        if writes > 0 {
            let his = crate::service::bearer(&restricted.json()["access_token"]);
            assert_eq!(service.get("/applications/old-app", &his).await.status, 200);
            assert_eq!(service.get("/applications", &bob).await.json()[0]["id"], "old-app");
        }
    };
    stopping(add, comes).await;
}
