//! Operator commands, on every store.

use airlock_account::{LISTED_MAX, OperatorClient};
use api::rest::account::{ListedUser, NewUser};
use serde_json::{Value, json};
use types::{Scope, Secret, ServiceName};

use crate::service::{PASSWORD, Service};

fn names(users: &[ListedUser]) -> Vec<String> {
    users.iter().map(|info| info.user.username.to_string()).collect()
}

#[tokio::test]
async fn lists_every_user_once_by_their_current_name() {
    for service in Service::start_on_each_store().await {
        for username in ["carol", "alice"] {
            service.user(username).await;
        }
        let bob = NewUser {
            username: "bob".parse().unwrap(),
            email: "b@example.com".into(),
            password: Secret::new(PASSWORD),
        };
        assert!(service.account.add_user(bob).await.unwrap().valid);
        let renamed = service.general("carol").await;
        let response = service.call("PATCH", "/api/v2/users/me", &renamed, json!({"username": "dora"})).await;
        assert_eq!(response.status, 204);
        let all = service.account.list_users(None).await.unwrap();
        assert_eq!(names(&all), ["alice", "bob", "dora"]);
        assert!(all.len() < LISTED_MAX);
        let behind = service.account.list_users(Some(&"alice".parse().unwrap())).await.unwrap();
        assert_eq!(names(&behind), ["bob", "dora"]);
        assert_eq!(all.iter().map(|info| info.user.valid).collect::<Vec<_>>(), [false, true, false]);
        service.account.confirm_user(&"dora".parse().unwrap()).await.unwrap();
        assert!(service.account.show_user(&"dora".parse().unwrap()).await.unwrap().user.valid);
        service.account.show_user(&"carol".parse().unwrap()).await.unwrap_err();
    }
}

#[tokio::test]
async fn lists_all_clients_and_components_until_deleted() {
    for service in Service::start_on_each_store().await {
        let alice = service.user("alice").await;
        service.handler(&alice, "her-handler").await;
        service.account.component_token(ServiceName::Router, &"a-router".parse().unwrap()).await.unwrap();
        let components = service.account.list_components(None).await.unwrap();
        let whose = |index: usize| components[index].collaborators.as_ref().unwrap().len();
        assert_eq!((components.len(), whose(0), whose(1)), (2, 0, 1));

        let body = json!({"name": "her-tool", "uri": "app://callback", "scope": ["apps"]});
        assert_eq!(service.post("/api/v2/clients", &alice, body).await.status, 201);
        let own = OperatorClient {
            id: "our-tool".parse().unwrap(),
            description: String::new(),
            scope: vec![Scope::Apps],
            redirect_uris: vec!["https://example.com/callback".to_owned(), "/oauth/callback/own".to_owned()],
            first_party: false,
            public: false,
            legacy: false,
        };
        assert!(service.account.register_client(own.clone()).await.unwrap().is_some());
        service.account.register_client(own).await.unwrap_err();
        let listed = async || {
            let clients = service.account.list_clients(None).await.unwrap();
            clients.into_iter().map(|client| (client.name.to_string(), client.accepted)).collect::<Vec<_>>()
        };
        let expected = [("airlock", true), ("her-tool", false), ("our-tool", true), ("ttnctl", true)];
        assert_eq!(listed().await, expected.map(|(id, accepted)| (id.to_owned(), accepted)));
        for id in ["her-tool", "our-tool"] {
            service.account.remove_client(&id.parse().unwrap()).await.unwrap();
        }
        assert_eq!(listed().await.len(), 2);
        assert_eq!(service.call("GET", "/api/v2/clients", &alice, Value::Null).await.json(), json!([]));
    }
}

#[tokio::test]
async fn third_party_clients_cannot_use_passwords() {
    let service = Service::start().await;
    service.user("alice").await;
    let own = |id: &str, first_party| OperatorClient {
        id: id.parse().unwrap(),
        description: String::new(),
        scope: vec![Scope::Profile],
        redirect_uris: Vec::new(),
        first_party,
        public: false,
        legacy: false,
    };
    for (id, first_party, status) in [("ours", true, 200), ("theirs", false, 400)] {
        let secret: Secret = service.account.register_client(own(id, first_party)).await.unwrap().unwrap();
        let body = json!({
            "grant_type": "password", "username": "alice", "password": PASSWORD,
            "client_id": id, "client_secret": secret.expose(),
        });
        assert_eq!(service.post("/users/token", "", body).await.status, status, "{id}");
    }
}
