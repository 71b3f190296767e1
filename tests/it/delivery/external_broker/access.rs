//! Answers to brokers of others that ask what clients may do, in the form of each product. The rows of RabbitMQ are the
//! requests of its plugins; those of the others are from their documentation.

use airlock::settings::Settings;
use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use serde_json::{Value, json};
use types::{ApplicationRight, Credential};

use crate::harness::{Network, Owner};

const SECRET: &str = "0123456789abcdef-secret";

/// Services that answer, the owner of an application there, and that of another one.
struct World {
    network: Network,
    one: Owner,
    other: Owner,
    base: String,
}

impl World {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adjust: impl FnOnce(&mut Settings)) -> Self {
        let secret_file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret_file.path(), SECRET).unwrap();
        let network = Network::with(|settings| {
            settings.external_broker.access_listen = "127.0.0.1:0".to_owned();
            settings.external_broker.access_secret_file = Some(secret_file.path().to_owned());
            adjust(settings);
        })
        .await;
        let (one, other) = (network.owner("one").await, network.owner("other").await);
        let overview = network.stack.overview();
        let address = overview.lines().find_map(|line| line.trim().strip_prefix("access  ")).unwrap();
        let base = format!("{address}{SECRET}");
        Self { network, one, other, base }
    }

    fn key(&self) -> &str {
        self.one.key.expose()
    }

    fn other_key(&self) -> &str {
        self.other.key.expose()
    }

    async fn rabbitmq(&self, path: &str, form: &[(&str, &str)]) -> String {
        let url = format!("{}/rabbitmq/{path}", self.base);
        let by_post = reqwest::Client::new().post(&url).form(form).send().await.unwrap().text().await.unwrap();
        let query = reqwest::Url::parse_with_params(&url, form).unwrap();
        let by_get = reqwest::get(query).await.unwrap().text().await.unwrap();
        assert_eq!(by_post, by_get);
        by_post
    }

    /// The status and, if it is JSON, the body.
    async fn post(&self, path: &str, hook: &str, body: &Value) -> (u16, Value) {
        let request = reqwest::Client::new().post(format!("{}{path}", self.base)).header("vernemq-hook", hook);
        let response = request.json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap_or_default())
    }

    async fn emqx(&self, path: &str, body: Value) -> String {
        let (status, body) = self.post(&format!("/emqx/{path}"), "", &body).await;
        assert_eq!(status, 200);
        body["result"].as_str().unwrap().to_owned()
    }

    async fn vernemq(&self, hook: &str, body: Value) -> Value {
        let (status, body) = self.post("/vernemq", hook, &body).await;
        assert_eq!(status, 200);
        body
    }
}

// Conformance: The requests of RabbitMQ, EMQX
#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_gets_the_rules_of_the_embedded_broker() {
    let world = World::start().await;
    let user = |username, password, client_id| {
        [("username", username), ("password", password), ("vhost", "/"), ("client_id", client_id)]
    };
    assert_eq!(world.rabbitmq("user", &user("one-app", world.key(), "client-1")).await, "allow");
    assert_eq!(world.rabbitmq("user", &user("other-app", world.other_key(), "client-2")).await, "allow");
    for (username, password, client_id) in [
        ("one-app", world.other_key(), "client-3"),
        ("one-app", "wrong", "client-3"),
        ("One App", world.key(), "client-3"),
        // Clients of other protocols have no client id.
        ("one-app", world.key(), ""),
        // It belongs to another application, whose messages may wait there.
        ("one-app", world.key(), "client-2"),
        // It is like that of a handler.
        ("one-app", world.key(), "airlock-0123456789abcdef-in"),
    ] {
        let answer = world.rabbitmq("user", &user(username, password, client_id)).await;
        assert_eq!(answer, "deny", "{username} {client_id}");
    }
    for (vhost, expected) in [("/", "allow"), ("prod", "deny")] {
        let asked = [("username", "one-app"), ("vhost", vhost), ("ip", "::1")];
        assert_eq!(world.rabbitmq("vhost", &asked).await, expected);
    }
    for (resource, name, permission, expected) in [
        ("exchange", "amq.topic", "write", "allow"),
        ("exchange", "amq.topic", "read", "allow"),
        ("exchange", "amq.topic", "configure", "deny"),
        ("exchange", "amq.direct", "write", "deny"),
        ("queue", "mqtt-subscription-client-1qos1", "configure", "allow"),
        ("queue", "mqtt-subscription-client-1qos0", "read", "allow"),
        ("queue", "mqtt-subscription-client-2qos1", "read", "deny"),
        ("queue", "mqtt-will-client-1", "configure", "allow"),
        ("queue", "mqtt-will-client-1qos1", "configure", "deny"),
        ("queue", "anything", "read", "deny"),
        ("topic", "amq.topic", "write", "deny"),
    ] {
        let asked = [("username", "one-app"), ("vhost", "/"), ("resource", resource), ("name", name)];
        let asked = [&asked[..], &[("permission", permission), ("tags", "")]].concat();
        assert_eq!(world.rabbitmq("resource", &asked).await, expected, "{resource} {name} {permission}");
    }
    for (client_id, permission, routing_key, expected) in [
        ("client-1", "write", "one-app.devices.dev-1.down", "allow"),
        ("client-1", "write", "one-app.devices.dev-1.up", "deny"),
        ("client-1", "write", "other-app.devices.dev-1.down", "deny"),
        ("client-1", "write", "one-app/devices/dev-1/down", "deny"),
        ("client-1", "read", "one-app.devices.*.up", "allow"),
        ("client-1", "read", "one-app.devices.#", "allow"),
        // Something else may be there.
        ("client-1", "read", "one-app.#", "deny"),
        ("client-1", "read", "*.devices.*.up", "deny"),
        ("client-1", "read", "#", "deny"),
        ("client-1", "read", "one-app/devices.#", "deny"),
        ("client-2", "read", "one-app.#", "deny"),
        ("unknown", "read", "one-app.#", "deny"),
        ("", "read", "one-app.#", "deny"),
    ] {
        let asked = [("username", "one-app"), ("vhost", "/"), ("resource", "topic"), ("name", "amq.topic")];
        let more = [("permission", permission), ("routing_key", routing_key), ("variable_map.client_id", client_id)];
        let asked = [&asked[..], &more[..]].concat();
        assert_eq!(world.rabbitmq("topic", &asked).await, expected, "{client_id} {permission} {routing_key}");
    }
    world.network.stack.stop().await;
}

// Conformance: The requests of RabbitMQ, EMQX
#[tokio::test(flavor = "multi_thread")]
async fn emqx_gets_the_rules_of_the_embedded_broker() {
    let world = World::start().await;
    let connect = |password: &str| json!({"clientid": "c", "username": "one-app", "password": password});
    assert_eq!(world.emqx("authentication", connect("wrong")).await, "deny");
    let asked = |action: &str, topic: &str| json!({"clientid": "c", "username": "one-app", "action": action, "topic": topic, "qos": 1, "retain": false});
    assert_eq!(
        world.emqx("authorization", asked("subscribe", "one-app/devices/#")).await,
        "deny",
        "it has not connected"
    );
    assert_eq!(world.emqx("authentication", connect(world.key())).await, "allow");
    for (action, topic, expected) in [
        ("subscribe", "one-app/devices/+/up", "allow"),
        ("subscribe", "$share/group/one-app/devices/+/up", "allow"),
        // Downlinks, which handlers share there.
        ("subscribe", "$share/airlock/one-app/devices/+/down", "deny"),
        ("subscribe", "one-app/#", "deny"),
        ("subscribe", "+/devices/+/up", "deny"),
        ("subscribe", "other-app/devices/+/up", "deny"),
        ("publish", "one-app/devices/dev-1/down", "allow"),
        ("publish", "one-app/devices/dev-1/up", "deny"),
        ("publish", "other-app/devices/dev-1/down", "deny"),
        ("all", "one-app/devices/dev-1/down", "deny"),
    ] {
        assert_eq!(world.emqx("authorization", asked(action, topic)).await, expected, "{action} {topic}");
    }
    // A connection lasts as long as its token, and with a key for as long as it likes.
    let Credential::Token(token) = &world.one.token else { panic!("owners have tokens") };
    let (_, answer) = world.post("/emqx/authentication", "", &connect(token.expose())).await;
    assert!(answer["expire_at"].as_u64() > Some(1_700_000_000), "{answer}");
    let (_, answer) = world.post("/emqx/authentication", "", &connect(world.key())).await;
    assert_eq!(answer, json!({"result": "allow", "is_superuser": false}));
    // What cannot be read is denied: EMQX ignores every other status than 200.
    assert_eq!(world.emqx("authentication", json!({"clientid": "c"})).await, "deny");
    assert_eq!(world.emqx("authorization", json!([])).await, "deny");
    world.network.stack.stop().await;
}

// Conformance: The requests of RabbitMQ, EMQX
#[tokio::test(flavor = "multi_thread")]
async fn vernemq_gets_the_rules_and_narrowed_filters() {
    let world = World::start().await;
    let refused = json!({"result": {"error": "not_allowed"}});
    for suffix in ["", "_m5"] {
        let client = |more: Value| {
            let mut hook = json!({"username": "one-app", "client_id": format!("c{suffix}"), "mountpoint": ""});
            hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            hook
        };
        let register = format!("auth_on_register{suffix}");
        assert_eq!(world.vernemq(&register, client(json!({"password": "wrong"}))).await, refused);
        let shown = client(json!({"password": world.key(), "peer_addr": "127.0.0.1", "peer_port": 8888}));
        assert_eq!(world.vernemq(&register, shown).await, json!({"result": "ok"}));
        let publish = format!("auth_on_publish{suffix}");
        for (topic, expected) in [("one-app/devices/dev-1/down", json!({"result": "ok"})), ("a/b", refused.clone())] {
            let message = client(json!({"topic": topic, "qos": 1, "payload": "e30=", "retain": false}));
            assert_eq!(world.vernemq(&publish, message).await, expected, "{topic}");
        }
        let ok = |topics: Value| match suffix {
            "" => json!({"result": "ok", "topics": topics}),
            _ => json!({"result": "ok", "modifiers": {"topics": topics}}),
        };
        let subscribe = format!("auth_on_subscribe{suffix}");
        let asked = json!([{"topic": "+/devices/+/up", "qos": 1, "no_local": true}, {"topic": "#", "qos": 0}]);
        let narrowed = json!([
            {"topic": "one-app/devices/+/up", "qos": 1, "no_local": true}, {"topic": "one-app/devices/#", "qos": 0},
        ]);
        assert_eq!(world.vernemq(&subscribe, client(json!({"topics": asked}))).await, ok(narrowed));
        let asked = json!([{"topic": "+/devices/+/up", "qos": 1}, {"topic": "other-app/devices/#", "qos": 0}]);
        let expected = match suffix {
            "" => {
                ok(json!([{"topic": "one-app/devices/+/up", "qos": 1}, {"topic": "other-app/devices/#", "qos": 128}]))
            }
            // Older releases subscribe the client to what has a code.
            _ => refused.clone(),
        };
        assert_eq!(world.vernemq(&subscribe, client(json!({"topics": asked}))).await, expected);
        assert_eq!(world.vernemq(&subscribe, client(json!({"topics": []}))).await, refused);
        let ended = client(json!({"topics": ["+/devices/+/up"]}));
        assert_eq!(world.vernemq(&format!("on_unsubscribe{suffix}"), ended).await, ok(json!(["one-app/devices/+/up"])));
        assert_eq!(world.vernemq("on_publish", client(json!({}))).await, refused);
    }
    world.network.stack.stop().await;
}

// Conformance: The requests of RabbitMQ, EMQX
#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_gets_the_rules_of_the_embedded_broker() {
    let world = World::start().await;
    let user = |password: &str| json!({"username": "one-app", "password": password, "clientid": "c"});
    assert_eq!(world.post("/mosquitto/user", "", &user("wrong")).await.0, 403);
    assert_eq!(world.post("/mosquitto/user", "", &user(world.key())).await.0, 200);
    assert_eq!(world.post("/mosquitto/superuser", "", &json!({"username": "one-app"})).await.0, 403);
    for (acc, topic, expected) in [
        (1, "one-app/devices/dev-1/up", 200),
        (1, "other-app/devices/dev-1/up", 403),
        (2, "one-app/devices/dev-1/down", 200),
        (2, "other-app/devices/dev-1/down", 403),
        (4, "one-app/devices/+/up", 200),
        (4, "#", 403),
        (8, "one-app/devices/+/up", 200),
        (7, "one-app/devices/dev-1/down", 403),
    ] {
        let asked = json!({"username": "one-app", "clientid": "c", "topic": topic, "acc": acc});
        assert_eq!(world.post("/mosquitto/acl", "", &asked).await.0, expected, "{acc} {topic}");
    }
    world.network.stack.stop().await;
}

// Conformance: The requests of RabbitMQ, EMQX
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_and_a_missing_right_count_at_once() {
    let world = World::start().await;
    let account = AccountClient::new(&world.network.stack.settings().client.auth_server).unwrap();
    let rights = vec![ApplicationRight::MessagesUpRead];
    let new = NewAccessKey { name: "reader".to_owned(), rights };
    account.add_access_key(&world.one.token, &world.one.app_id, &new).await.unwrap();
    let keys = account.access_keys(&world.one.token, &world.one.app_id).await.unwrap();
    let key = keys.into_iter().find(|key| key.name == "reader").unwrap().key.unwrap();
    let connect = json!({"clientid": "c", "username": "one-app", "password": key.expose()});
    assert_eq!(world.emqx("authentication", connect).await, "allow");
    let asked =
        |action: &str, topic: &str| json!({"clientid": "c", "username": "one-app", "action": action, "topic": topic});
    assert_eq!(world.emqx("authorization", asked("publish", "one-app/devices/dev-1/down")).await, "deny");
    assert_eq!(world.emqx("authorization", asked("subscribe", "one-app/devices/#")).await, "allow");
    account.delete_access_key(&world.one.token, &world.one.app_id, "reader").await.unwrap();
    let revoked = async {
        while world.emqx("authorization", asked("subscribe", "one-app/devices/#")).await == "allow" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::harness::MESSAGE_TIMEOUT, revoked).await.expect("the right ends");
    world.network.stack.stop().await;
}

/// It would get what waits for the other.
// Conformance: They give no session to a key that may read less
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_read_gets_no_session_of_one_that_may() {
    let world = World::start().await;
    let account = AccountClient::new(&world.network.stack.settings().client.auth_server).unwrap();
    let new = NewAccessKey { name: "writer".to_owned(), rights: vec![ApplicationRight::MessagesDownWrite] };
    let writer = account.add_access_key(&world.one.token, &world.one.app_id, &new).await.unwrap().key.unwrap();
    let connect = |client_id: &str, key: &str| json!({"clientid": client_id, "username": "one-app", "password": key});
    assert_eq!(world.emqx("authentication", connect("reader", world.key())).await, "allow");
    assert_eq!(world.emqx("authentication", connect("reader", writer.expose())).await, "deny");
    assert_eq!(world.emqx("authentication", connect("writer", writer.expose())).await, "allow");
    assert_eq!(world.emqx("authentication", connect("writer", world.key())).await, "allow");
    world.network.stack.stop().await;
}

// Conformance: They give no session to a key that may read less
#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_a_bounded_number_of_client_ids() {
    let world = World::with(|settings| settings.external_broker.clients_per_application_max = 2).await;
    let connect = |client_id: &str, app_id: &str, key: &str| {
        let asked = json!({"clientid": client_id, "username": app_id, "password": key});
        world.emqx("authentication", asked)
    };
    for (client_id, expected) in [("a", "allow"), ("b", "allow"), ("c", "deny"), ("a", "allow")] {
        assert_eq!(connect(client_id, "one-app", world.key()).await, expected, "{client_id}");
    }
    assert_eq!(connect("c", "other-app", world.other_key()).await, "allow", "each application has its own");
    world.network.stack.stop().await;
}

/// Without this rule, one application could use an id that another one needs.
#[tokio::test(flavor = "multi_thread")]
async fn client_ids_name_their_application_if_the_operator_wants_it() {
    let world = World::with(|settings| settings.external_broker.client_ids_name_application = true).await;
    for (client_id, expected) in [("one-app:a", "allow"), ("other-app:a", "deny"), ("a", "deny"), ("one-app", "deny")] {
        let asked = json!({"clientid": client_id, "username": "one-app", "password": world.key()});
        assert_eq!(world.emqx("authentication", asked).await, expected, "{client_id}");
    }
    let asked = json!({"clientid": "other-app:a", "username": "other-app", "password": world.other_key()});
    assert_eq!(world.emqx("authentication", asked).await, "allow", "nobody had taken it");
    world.network.stack.stop().await;
}

// Conformance: They give no session to a key that may read less
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_without_the_secret() {
    let world = World::start().await;
    let connect = json!({"clientid": "c", "username": "one-app", "password": world.key()});
    for wrong in ["0123456789abcdef-wrong", "%30123456789abcdef-secret", ""] {
        let url = format!("{}/emqx/authentication", world.base.replace(SECRET, wrong));
        let response = reqwest::Client::new().post(url).json(&connect).send().await.unwrap();
        assert_eq!(response.status(), 404, "{wrong}");
    }
    assert_eq!(world.emqx("authentication", connect).await, "allow");
    world.network.stack.stop().await;
}
