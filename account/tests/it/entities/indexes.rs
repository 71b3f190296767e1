//! Lists of a user's entities: others can add to them, but neither fill them up nor hide what is in them.

use serde_json::{Value, json};
use store::{Batch, Commit, Key, Tag};

use crate::service::Service;

const FULL: usize = 1000;

async fn put(service: &Service, entries: impl Iterator<Item = (Key, String)>) {
    for (key, value) in entries {
        let written = service.store.commit(Batch::new().put(key, value.into_bytes())).await;
        assert_eq!(written.unwrap(), Commit::Done);
    }
}

async fn id_of(service: &Service, authorization: &str) -> String {
    service.get("/api/v2/users/me", authorization).await.json()["_id"].as_str().unwrap().to_owned()
}

fn entry(user_id: &str, index: &str, number: usize) -> (Key, String) {
    let path = format!("{index}/app-{number:04}");
    (Key::new(&Tag::user(user_id).unwrap(), &path).unwrap(), "null".to_owned())
}

/// Copies an application, without its key, to as many ids as one user can create.
async fn copy(service: &Service, app_id: &str, authorization: &str) {
    let key = format!("/applications/{app_id}/access-keys/default%20key");
    assert_eq!(service.call("DELETE", &key, authorization, Value::Null).await.status, 204);
    let key = |id: &str| Key::new(&Tag::application(id).unwrap(), "account").unwrap();
    let found = service.store.get(&[key(app_id)]).await.unwrap().remove(0).unwrap();
    let text = String::from_utf8(found.value.to_vec()).unwrap();
    let named = |id: &str| text.replace(&format!("\"{app_id}\""), &format!("\"{id}\""));
    let ids = (0..FULL).map(|number| format!("app-{number:04}"));
    put(service, ids.map(|id| (key(&id), named(&id)))).await;
}

async fn create(service: &Service, authorization: &str, id: &str) -> u16 {
    service.post("/applications", authorization, json!({"id": id, "name": ""})).await.status.as_u16()
}

#[tokio::test]
async fn shared_entities_neither_count_nor_hide_own_ones() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let mine = service.application(&alice, "zzz-mine").await;
    copy(&service, "zzz-mine", &mine).await;
    let user_id = id_of(&service, &alice).await;
    put(&service, (0..FULL).map(|number| entry(&user_id, "application", number))).await;
    let first = service.get("/applications", &alice).await;
    let ids = |listed: &Value| -> Vec<String> {
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let listed = ids(&first.json());
    assert_eq!((listed.len(), listed.last().unwrap().as_str()), (FULL + 1, "zzz-mine"));
    assert_eq!(first.headers["link"], "<?after=app-0999>; rel=\"next\"");
    let second = service.get("/applications?after=app-0999", &alice).await;
    assert_eq!((second.json(), second.headers.contains_key("link")), (json!([]), false));
    assert_eq!(ids(&service.get("/applications?after=app-0997", &alice).await.json()), ["app-0998", "app-0999"]);
    assert_eq!(service.get("/applications?after=NO%20ID", &alice).await.status, 400);
    assert_eq!(create(&service, &alice, "yyy-mine").await, 201);
}

#[tokio::test]
async fn a_user_creates_at_most_a_thousand_not_counting_deleted_ones() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let mine = service.application(&alice, "my-app").await;
    copy(&service, "my-app", &mine).await;
    let user_id = id_of(&service, &alice).await;
    put(&service, (1..FULL).map(|number| entry(&user_id, "made/application", number))).await;
    assert_eq!(create(&service, &alice, "one-more").await, 403);
    let first = service.restrict(&alice, &["apps:app-0001"]).await;
    for (path, authorization) in [("/applications/app-0001", &first), ("/applications/my-app", &mine)] {
        assert_eq!(service.call("DELETE", path, authorization, Value::Null).await.status, 204);
    }
    assert_eq!(create(&service, &alice, "one-more").await, 201);
    assert_eq!(create(&service, &alice, "two-more").await, 201);
    assert_eq!(create(&service, &alice, "three-more").await, 403, "two went, two came");
    let restored = service.post("/applications/app-0001/restore", &first, Value::Null).await;
    assert_eq!(restored.status, 403, "it would be one more");
    let deleted = service.get("/applications?deleted=1", &alice).await.text;
    assert!(deleted.contains("\"app-0001\""), "it can be found again");
}

#[tokio::test]
async fn everybody_but_the_owner_and_the_last_one_can_leave() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let sorts = [
        (service.application(&alice, "my-id").await, "apps:my-id", "/applications", "devices"),
        (service.gateway(&alice, "my-id").await, "gateways:my-id", "/gateways", "gateway:settings"),
        (service.handler(&alice, "my-cp").await, "components:my-cp", "/components/handlers", "component:settings"),
    ];
    for (hers, scope, root, right) in sorts {
        let id = scope.split_once(':').unwrap().1;
        let of = |username: &str| format!("{root}/{id}/collaborators/{username}");
        assert_eq!(service.call("PUT", &of("bob"), &hers, json!([right])).await.status, 201, "{root}");
        let his = service.restrict(&bob, &[scope]).await;
        assert_eq!(service.call("DELETE", &of("alice"), &his, Value::Null).await.status, 403, "{root}");
        assert_eq!(service.call("DELETE", &of("bob"), &his, Value::Null).await.status, 204, "{root}");
        let list = root.replace("/handlers", "");
        assert_eq!(service.get(&list, &bob).await.json(), json!([]), "{root}");
        assert_eq!(service.call("DELETE", &of("alice"), &hers, Value::Null).await.status, 403, "{root}");
    }
    let hers = service.restrict(&alice, &["gateways:my-id"]).await;
    let bob_too = json!(["gateway:collaborators"]);
    assert_eq!(service.call("PUT", "/gateways/my-id/collaborators/bob", &hers, bob_too).await.status, 201);
    let owner = service.call("DELETE", "/gateways/my-id/collaborators/alice", &hers, Value::Null).await;
    let text = "the owner of gateway `my-id` cannot be removed: transfer it first";
    assert_eq!(owner.error(), (403, text.to_owned()));
}
