//! Redis is killed, hangs, loads or is full under two handlers and two discovery services.

use airlock::serve::{Service, Stack};
use serde_json::{Value, json};
use testing::{MqttClient, RedisProcess};
use tonic::Code;

use super::{Caller, rounds, soon};
use crate::harness::{Network, Owner, device, environment, next};

/// All services, and a second handler and discovery service, on one Redis.
struct Services {
    network: Network,
    owner: Owner,
    caller: Caller,
    handler: Stack,
    discovery: Stack,
}

impl Services {
    async fn start(redis: &RedisProcess) -> Self {
        let network = Network::on(redis, |settings| {
            settings.store.redis.as_mut().unwrap().response_timeout_ms = 1000;
        });
        let network = network.await;
        let owner = network.owner("patient").await;
        owner.set_functions(["function Decoder(bytes) { return { n: bytes[0] }; }", "", ""]).await.unwrap();
        owner.add_device("dev-1").await;
        let start = |service| Stack::start(network.stack.settings().clone(), Some(service), environment());
        let (handler, discovery) = tokio::join!(start(Service::Handler), start(Service::Discovery));
        let (handler, discovery, caller) = (handler.unwrap(), discovery.unwrap(), Caller::new(&owner.token));
        Self { network, owner, caller, handler, discovery }
    }

    fn applications(&self) -> [String; 2] {
        let address = |stack: &Stack| stack.handler_http_address().unwrap();
        [&self.network.stack, &self.handler].map(|stack| format!("http://{}/applications/patient-app", address(stack)))
    }

    /// All read requests of both instances.
    fn reads(&self) -> Vec<String> {
        let finders = [&self.network.stack, &self.discovery].map(|stack| stack.discovery_http_address().unwrap());
        let finds = ["handler", "handler/by-app-id/patient-app"];
        let of_application = |url: String| ["", "/devices", "/devices/dev-1"].map(|path| format!("{url}{path}"));
        let applications = self.applications().into_iter().flat_map(of_application);
        let found = finders.iter().flat_map(|at| finds.map(|path| format!("http://{at}/announcements/{path}")));
        applications.chain(found).collect()
    }

    async fn read_all(&self) -> Vec<(u16, Value)> {
        let mut responses = Vec::new();
        for url in self.reads() {
            let (status, mut body) = self.caller.ask("GET", &url, String::new()).await;
            remove_addresses(&mut body);
            responses.push((status, body));
        }
        responses
    }

    async fn stop(self) {
        self.handler.stop().await;
        self.discovery.stop().await;
        self.network.stack.stop().await;
    }
}

/// Removes the addresses of announced handlers: both have the same id, so they are those of the one that came last.
fn remove_addresses(body: &mut Value) {
    if let Some(services) = body.get_mut("services").and_then(Value::as_array_mut) {
        services.iter_mut().for_each(remove_addresses);
    } else if let Some(announcement) = body.as_object_mut() {
        announcement.retain(|name, _| !name.ends_with("_address"));
    }
}

// Conformance: Store unavailable: 503, and full recovery in every instance
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_store_is_used_again_without_loss() {
    let Some(mut redis) = RedisProcess::start() else { return };
    let services = Services::start(&redis).await;
    let before = services.read_all().await;
    assert!(before.len() == 10 && before.iter().all(|(status, _)| *status == 200), "{before:?}");
    let dev_2 = serde_json::to_string(&device(&services.owner.app_id, "dev-2")).unwrap();

    redis.stop();
    for response in services.read_all().await {
        assert_eq!(response, (503, json!(14)));
    }
    for url in services.applications() {
        assert_eq!(services.caller.ask("PUT", &format!("{url}/devices/dev-2"), dev_2.clone()).await, (503, json!(14)));
    }
    let status = services.network.manager().await.get_application(services.owner.sign(Default::default())).await;
    assert_eq!(status.unwrap_err().code(), Code::InvalidArgument, "what is wrong in itself is said all the same");
    let id = api::handler::ApplicationIdentifier { app_id: services.owner.app_id.to_string() };
    let status = services.network.manager().await.get_application(services.owner.sign(id)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(services.owner.simulate("dev-1", &[1], 1).await.is_err());

    redis.start_again();
    soon(before, || services.read_all()).await;
    // The second handler runs the function for the first time, and both see changes made through the other.
    let [first, second] = services.applications();
    // A change needs a fresh answer of the account service, which may have been away, too.
    let url = format!("{second}/devices/dev-2");
    soon(200, async || services.caller.ask("PUT", &url, dev_2.clone()).await.0).await;
    assert_eq!(services.caller.ask("GET", &format!("{first}/devices/dev-2"), String::new()).await.0, 200);
    let mut listener = listen(&services.owner, &services.handler).await;
    let uplink = json!({"payload": "Bw==", "port": 1}).to_string();
    assert_eq!(services.caller.ask("POST", &format!("{second}/devices/dev-2/simulate"), uplink).await.0, 200);
    let (topic, message) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &message["payload_fields"]), ("dev-2/up", &json!({"n": 7})));
    services.stop().await;
}

// Conformance: Deadlines of callers
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_store_delays_calls_by_the_timeout_at_most() {
    let Some(redis) = RedisProcess::start() else { return };
    let services = Services::start(&redis).await;
    let before = services.read_all().await;
    redis.freeze();
    for url in services.reads() {
        let response = services.caller.ask_within(Some("50m"), "GET", &url, String::new()).await;
        assert_eq!(response, (504, json!(4)), "{url}");
    }
    for url in services.applications() {
        assert_eq!(services.caller.ask("GET", &url, String::new()).await, (503, json!(14)), "{url}");
    }
    redis.thaw();
    soon(before, || services.read_all()).await;
    services.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_refuses_changes_and_keeps_what_it_has() {
    let Some(redis) = RedisProcess::start() else { return };
    let services = Services::start(&redis).await;
    let before = services.read_all().await;
    let [first, _] = services.applications();
    let dev_2 = serde_json::to_string(&device(&services.owner.app_id, "dev-2")).unwrap();
    redis.fill();
    for _ in 0..rounds() {
        let changed = services.caller.ask("PUT", &format!("{first}/devices/dev-2"), dev_2.clone()).await;
        assert_eq!(changed, (503, json!(14)));
        // Calls of the handler are counted in Redis, so that the reads, too, need a change.
        for (answer, before) in services.read_all().await.into_iter().zip(&before) {
            assert!(answer == *before || answer == (503, json!(14)), "{answer:?} instead of {before:?}");
        }
    }
    redis.empty();
    soon(before, || services.read_all()).await;
    assert_eq!(services.caller.ask("PUT", &format!("{first}/devices/dev-2"), dev_2).await.0, 200);
    services.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_loads_its_data_is_used_when_it_has() {
    let Some(mut redis) = RedisProcess::start() else { return };
    let services = Services::start(&redis).await;
    let before = services.read_all().await;
    redis.restart_loading();
    for answer in services.read_all().await {
        assert_eq!(answer, (503, json!(14)));
    }
    soon(before, || services.read_all()).await;
    services.stop().await;
}

/// Subscribes to the application at one handler, which has its own broker.
async fn listen(owner: &Owner, handler: &Stack) -> MqttClient {
    let address = handler.mqtt_address().unwrap().to_string();
    let mut listener = MqttClient::connect_with(&address, owner.app_id.as_str(), owner.key.expose()).await;
    listener.subscribe(&format!("{}/devices/#", owner.app_id)).await;
    listener
}
