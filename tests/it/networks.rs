//! `[[bridge]]`: devices of a network as devices of v2, in `airlock serve` as a process.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use client::mqtt::MqttClient as Listener;
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::{
    CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ChirpStackApi, Mosquitto, MqttClient, Proxy,
    RedisProcess, chirpstack_uplink,
};

use crate::{
    harness::{MESSAGE_TIMEOUT, Owner, next},
    server_process::{ServerProcess, get, serve},
};

const DEVICE: &str = "a300000000000001";
const DECODER: &str = "function decodeUplink(input) { \
    return {data: {n: input.bytes[0], offset: (input.variables || {}).offset, at: input.recvTime.getUTCFullYear()}} }";

/// ChirpStack's broker and API.
struct ChirpStack {
    broker: Mosquitto,
    api: ChirpStackApi,
    client: MqttClient,
}

impl ChirpStack {
    async fn start() -> Option<Self> {
        server::system::install_crypto();
        let (broker, api) = (Mosquitto::start()?, ChirpStackApi::start().await);
        api.set_device(DEVICE, "profile", &[("offset", "5")]);
        let client = MqttClient::connect(&broker.url()).await;
        Some(Self { broker, api, client })
    }

    /// Settings that lead its application, given by id or name, to one of ours.
    fn settings(&self, dir: &Path, application: &str, members: &str) {
        self.settings_from(dir, &format!("chirpstack.mqtt.url = '{}'", self.broker.url()), application, members);
    }

    fn settings_from(&self, dir: &Path, source: &str, application: &str, members: &str) {
        let token_file = dir.join("chirpstack.key");
        std::fs::write(&token_file, CHIRPSTACK_TOKEN).unwrap();
        let text = format!(
            "[[bridge]]\n{source}\nchirpstack.api_wait_ms_max = 500\n\
             chirpstack.grpc = {{ url = '{}', token_file = '{}' }}\n\n\
             [[bridge.applications]]\napplication = '{application}'\napp_id = 'meadow-app'\n{members}\n",
            self.api.url(),
            token_file.display(),
        );
        std::fs::write(dir.join("airlock.toml"), text).unwrap();
    }

    async fn send(&mut self, dev_eui: &str, event: &str, body: &Value) {
        let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{dev_eui}/event/{event}");
        self.client.publish(&topic, body.to_string()).await;
    }

    async fn uplink(&mut self, dev_eui: &str, name: &str, counter: u32) {
        self.send(dev_eui, "up", &uplink(dev_eui, name, counter)).await;
    }
}

fn device_info(dev_eui: &str, name: &str) -> Value {
    json!({
        "applicationId": CHIRPSTACK_APPLICATION, "applicationName": CHIRPSTACK_APPLICATION_NAME, "deviceName": name,
        "deviceProfileId": "profile", "devEui": dev_eui, "tags": {"room": "kitchen"},
    })
}

fn uplink(dev_eui: &str, name: &str, counter: u32) -> Value {
    json!({
        "deduplicationId": format!("{dev_eui}-{counter}"), "time": "2026-11-22T16:45:55.231022372+00:00",
        "deviceInfo": device_info(dev_eui, name), "fCnt": counter, "fPort": 2, "confirmed": true, "data": "AQ==",
        "rxInfo": [{"gatewayId": "0102030405060708", "rssi": -60, "snr": 7.5}],
        "txInfo": {"frequency": 868_300_000, "modulation": {
            "lora": {"bandwidth": 125_000, "spreadingFactor": 7, "codeRate": "CR_4_5"},
        }},
    })
}

/// A running server with the application `meadow-app`, and a client that receives its messages.
struct Server {
    process: ServerProcess,
    owner: Owner,
    listener: Listener,
}

impl Server {
    async fn start(dir: &Path) -> Self {
        Self::start_with(serve(dir).stderr(Stdio::null()), dir).await
    }

    async fn start_with(command: &mut Command, dir: &Path) -> Self {
        let process = ServerProcess::spawn(command);
        let owner = process.owner(dir, "meadow").await;
        owner.set_functions([DECODER, "", ""]).await.unwrap();
        let listener = owner.listen_at(process.place("MQTT")).await;
        Self { process, owner, listener }
    }

    async fn next(&mut self) -> (String, Value) {
        next(&mut self.listener).await
    }

    /// Waits until a metric that starts like this is exported.
    async fn wait_for_metric(&self, metric: &str) {
        let found = async {
            while !get(self.process.place("metrics")).lines().any(|line| line.starts_with(metric)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, found).await.unwrap_or_else(|_| panic!("no {metric}"));
    }
}

async fn start(application: &str, members: &str) -> Option<(ChirpStack, Server, TempDir)> {
    let (chirpstack, dir) = (ChirpStack::start().await?, tempfile::tempdir().unwrap());
    chirpstack.settings(dir.path(), application, members);
    let server = Server::start(dir.path()).await;
    Some((chirpstack, server, dir))
}

// The stand-in for the API works while the test waits for the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_chirpstack_looks_like_one_of_v2() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION_NAME, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen (2nd floor)", 7).await;
    assert_eq!(server.next().await, ("kitchen-2nd-floor/events/create".to_owned(), Value::Null));
    let up = json!({
        "app_id": "meadow-app", "dev_id": "kitchen-2nd-floor", "hardware_serial": "A300000000000001", "port": 2,
        "counter": 7, "confirmed": true, "payload_raw": "AQ==",
        "payload_fields": {"n": 1, "offset": "5", "at": 2026},
        "metadata": {
            "time": "2026-11-22T16:45:55.231022372Z", "frequency": 868.3, "modulation": "LORA",
            "data_rate": "SF7BW125", "coding_rate": "4/5",
            "gateways": [{
                "gtw_id": "eui-0102030405060708", "time": "", "channel": 0, "rssi": -60.0, "snr": 7.5, "rf_chain": 0,
            }],
        },
        "attributes": {"room": "kitchen"},
    });
    assert_eq!(server.next().await, ("kitchen-2nd-floor/up".to_owned(), up));

    // It stays the same device when it gets another name, and a copy of its event is dropped.
    chirpstack.uplink(DEVICE, "Kitchen (2nd floor)", 7).await;
    let join = json!({
        "deduplicationId": "j1", "time": "2026-11-22T17:00:00+00:00", "deviceInfo": device_info(DEVICE, "Cellar"),
        "devAddr": "01020304",
    });
    chirpstack.send(DEVICE, "join", &join).await;
    let activation = json!({
        "app_eui": "", "dev_eui": "A300000000000001", "dev_addr": "01020304",
        "metadata": {"time": "2026-11-22T17:00:00Z"},
    });
    assert_eq!(server.next().await, ("kitchen-2nd-floor/events/activations".to_owned(), activation));

    // A device with the same name gets an id from its EUI.
    let other = "a300000000000002";
    chirpstack.api.set_device(other, "profile", &[]);
    chirpstack.uplink(other, "Kitchen (2nd floor)", 1).await;
    assert_eq!(server.next().await.0, format!("{other}/events/create"));
    let (topic, up) = server.next().await;
    assert_eq!((topic, &up["payload_fields"]), (format!("{other}/up"), &json!({"n": 1, "at": 2026})));
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_sub_receives_a_device_of_chirpstack() {
    let Some((mut chirpstack, server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else { return };
    let (host, port) = server.process.place("MQTT").rsplit_once(':').unwrap();
    let mut command = Command::new("mosquitto_sub");
    command.args(["-h", host, "-p", port, "-t", "+/devices/+/up", "-C", "1", "-W", "20"]);
    command.args(["-u", server.owner.app_id.as_str(), "-P", server.owner.key.expose()]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    for counter in 1.. {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let up: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&up["dev_id"], &up["payload_fields"]["n"]), (&json!("kitchen"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_lead_nowhere_are_dropped_and_counted() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "").await else { return };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"refused\"} 1").await;
    let foreign = format!("application/{}/device/{DEVICE}/event/up", CHIRPSTACK_APPLICATION.replace('1', "2"));
    chirpstack.client.publish(&foreign, uplink(DEVICE, "Kitchen", 2).to_string()).await;
    server.wait_for_metric("airlock_bridge_events_total{result=\"ignored\"} 1").await;
    chirpstack.send(DEVICE, "up", &json!({"deviceInfo": {"devEui": "a300000000000009"}})).await;
    server.wait_for_metric("airlock_bridge_uplinks_total{result=\"malformed\"} 1").await;
    // What is registered by hand under the same id or EUI is found.
    server.owner.add_device("kitchen").await;
    chirpstack.uplink(DEVICE, "Kitchen", 3).await;
    server.wait_for_metric("airlock_bridge_dropped_total{reason=\"refused\"} 2").await;
    let mut device = crate::harness::device(&server.owner.app_id, "by-hand");
    device.lorawan_device.as_mut().unwrap().dev_eui = DEVICE.parse().unwrap();
    server.owner.handler.set_device(device.into()).await.unwrap();
    chirpstack.uplink(DEVICE, "Kitchen", 4).await;
    let (topic, up) = server.next().await;
    assert_eq!((topic.as_str(), &up["counter"]), ("by-hand/up", &json!(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_is_away_devices_have_no_variables_and_are_told_so() {
    let Some((mut chirpstack, dir)) = ChirpStack::start().await.zip(tempfile::tempdir().ok()) else { return };
    let proxy = Proxy::start(None).await;
    let url = chirpstack.api.url();
    chirpstack.settings(dir.path(), CHIRPSTACK_APPLICATION, "register = true\nids = 'eui'");
    let path = dir.path().join("airlock.toml");
    let text = std::fs::read_to_string(&path).unwrap().replace(&url, &format!("http://{}", proxy.address));
    std::fs::write(&path, text).unwrap();
    let mut server = Server::start(dir.path()).await;
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    assert_eq!(server.next().await.0, format!("{DEVICE}/events/create"));
    let (topic, error) = server.next().await;
    assert_eq!(topic, format!("{DEVICE}/events/up/errors"));
    assert!(error["error"].as_str().unwrap().contains("variables of the device are not known"), "{error}");
    let (_, up) = server.next().await;
    assert_eq!(up["payload_fields"], json!({"n": 1, "at": 2026}));
    // It is asked again, and not for every message.
    proxy.redirect(Some(chirpstack.api.address()));
    for counter in 2.. {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
        let (topic, message) = server.next().await;
        if topic == format!("{DEVICE}/up") && message["payload_fields"]["offset"] == "5" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_while_nobody_can_say_which_application_has_the_name() {
    let Some((mut chirpstack, dir)) = ChirpStack::start().await.zip(tempfile::tempdir().ok()) else { return };
    let proxy = Proxy::start(None).await;
    chirpstack.settings(dir.path(), CHIRPSTACK_APPLICATION_NAME, "register = true");
    let path = dir.path().join("airlock.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&chirpstack.api.url(), &format!("http://{}", proxy.address))).unwrap();
    let mut server = Server::start(dir.path()).await;
    for counter in 0..3 {
        chirpstack.uplink(DEVICE, "Kitchen", counter).await;
    }
    proxy.redirect(Some(chirpstack.api.address()));
    let mut counters = Vec::new();
    while counters.len() < 3 {
        let (topic, up) = server.next().await;
        if topic == "kitchen/up" {
            counters.push(up["counter"].as_u64().unwrap());
        }
    }
    assert_eq!(counters, [0, 1, 2]);
}

/// The store is away when the server is killed, so whatever it acknowledged by then would be lost. `member` is the
/// setting of the source's URL, which gets the address of a proxy.
async fn check_killed_without_its_store(
    chirpstack: ChirpStack,
    (member, scheme, source): (&str, &str, SocketAddr),
    mut send: impl AsyncFnMut(&Value),
) {
    let (Some(redis), dir) = (RedisProcess::start(), tempfile::tempdir().unwrap()) else { return };
    let events = Proxy::start(Some(source)).await;
    let source_setting = format!("chirpstack.{member}.url = '{scheme}://{}'", events.address);
    chirpstack.settings_from(dir.path(), &source_setting, CHIRPSTACK_APPLICATION, "register = true\nids = 'eui'");
    let address = redis.url().trim_start_matches("redis://").parse().unwrap();
    let store = Proxy::start(Some(address)).await;
    let command = || {
        let mut command = serve(dir.path());
        command.env("AIRLOCK_STORE__REDIS__URLS", format!("[\"redis://{}\"]", store.address));
        command.stderr(Stdio::null());
        command
    };
    let mut server = Server::start_with(&mut command(), dir.path()).await;
    send(&uplink(DEVICE, "Kitchen", 0)).await;
    while server.next().await.0 != format!("{DEVICE}/up") {}
    store.redirect(None);
    for counter in 1..30 {
        send(&uplink(DEVICE, "Kitchen", counter)).await;
    }
    server.wait_for_metric("airlock_bridge_retried_total").await;
    server.process.kill();
    // Nothing comes before there is somebody to receive it.
    events.redirect(None);
    store.redirect(Some(address));
    server.process = ServerProcess::spawn(&mut command());
    server.listener = server.owner.listen_at(server.process.place("MQTT")).await;
    events.redirect(Some(source));
    let mut next = 1;
    while next < 30 {
        let (topic, up) = server.next().await;
        assert_eq!(topic, format!("{DEVICE}/up"));
        let counter = up["counter"].as_u64().unwrap();
        assert!(counter <= next, "{counter} came before {next}");
        next = next.max(counter + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_has_acknowledged_nothing_that_it_had_not_accepted() {
    let Some(chirpstack) = ChirpStack::start().await else { return };
    let mut client = MqttClient::connect(&chirpstack.broker.url()).await;
    let address = chirpstack.broker.address();
    let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{DEVICE}/event/up");
    let send = async |event: &Value| client.publish(&topic, event.to_string()).await;
    check_killed_without_its_store(chirpstack, ("mqtt", "mqtt", address), send).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_continues_a_redis_stream_where_it_was() {
    let (Some(chirpstack), Some(redis)) = (ChirpStack::start().await, RedisProcess::start()) else { return };
    let address = redis.url().trim_start_matches("redis://").parse().unwrap();
    let send = async |event: &Value| {
        redis.call(&[b"XADD", b"device:stream:event", b"*", b"up", &chirpstack_uplink(event)]);
    };
    check_killed_without_its_store(chirpstack, ("redis", "redis", address), send).await;
}

/// The next event about a downlink.
async fn next_downlink_event(server: &mut Server) -> (String, Value) {
    loop {
        let (topic, message) = server.next().await;
        if let Some((_, event)) = topic.split_once("/events/down/") {
            return (event.to_owned(), message);
        }
    }
}

async fn send_down(server: &mut Server, dev_id: &str, downlink: Value) {
    server.listener.send(&dev_id.parse().unwrap(), &serde_json::from_value(downlink).unwrap()).await.unwrap();
}

/// The ports of the downlinks that wait in ChirpStack, and their ids.
fn queued(api: &ChirpStackApi) -> Vec<(u32, String)> {
    api.queued().into_iter().map(|(id, item)| (item.f_port, id)).collect()
}

async fn wait_for_queued(api: &ChirpStackApi, ports: &[u32]) -> Vec<String> {
    let found = async {
        loop {
            let queued = queued(api);
            if queued.iter().map(|(port, _)| *port).eq(ports.iter().copied()) {
                return queued.into_iter().map(|(_, id)| id).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(MESSAGE_TIMEOUT, found).await;
    found.unwrap_or_else(|_| panic!("ChirpStack has {:?} and not {ports:?}", queued(api)))
}

#[tokio::test(flavor = "multi_thread")]
async fn downlinks_leave_through_chirpstack_and_its_reports_become_events() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}

    let confirmed = json!({"port": 7, "confirmed": true, "payload_raw": "AQI="});
    send_down(&mut server, "kitchen", confirmed.clone()).await;
    assert_eq!(next_downlink_event(&mut server).await, ("scheduled".to_owned(), json!({"message": confirmed})));
    let [first] = wait_for_queued(&chirpstack.api, &[7]).await.try_into().unwrap();
    let (_, item) = chirpstack.api.queued().remove(0);
    assert_eq!((item.dev_eui.as_str(), item.confirmed, item.data), (DEVICE, true, vec![1, 2]));

    let txack = json!({
        "deviceInfo": device_info(DEVICE, "Kitchen"), "queueItemId": first, "fCntDown": 3, "gatewayId": "0102",
        "txInfo": {"frequency": 869_525_000, "power": 14},
    });
    chirpstack.send(DEVICE, "txack", &txack).await;
    let sent = json!({
        "message": {"app_id": "meadow-app", "dev_id": "kitchen", "port": 7, "confirmed": true, "payload_raw": "AQI="},
        "gateway_id": "eui-0102", "config": {"counter": 3, "frequency": 869_525_000, "power": 14},
    });
    assert_eq!(next_downlink_event(&mut server).await, ("sent".to_owned(), sent));
    let ack = json!({"deviceInfo": device_info(DEVICE, "Kitchen"), "queueItemId": first, "acknowledged": true});
    chirpstack.send(DEVICE, "ack", &ack).await;
    assert_eq!(next_downlink_event(&mut server).await, ("acks".to_owned(), json!({"message": confirmed})));

    // `replace` empties ChirpStack's queue, `last` adds to it.
    send_down(&mut server, "kitchen", json!({"port": 8, "payload_raw": "Ag=="})).await;
    wait_for_queued(&chirpstack.api, &[8]).await;
    send_down(&mut server, "kitchen", json!({"port": 9, "payload_raw": "Aw==", "schedule": "last"})).await;
    let ids = wait_for_queued(&chirpstack.api, &[8, 9]).await;
    let expired = json!({
        "deviceInfo": device_info(DEVICE, "Kitchen"), "level": "ERROR", "code": "EXPIRED",
        "description": "it has expired", "context": {"queue_item_id": ids[1]},
    });
    chirpstack.send(DEVICE, "log", &expired).await;
    let failed = loop {
        let (event, message) = next_downlink_event(&mut server).await;
        if event != "scheduled" {
            break (event, message);
        }
    };
    let message = json!({"port": 9, "payload_raw": "Aw=="});
    assert_eq!(failed, ("errors".to_owned(), json!({"error": "it has expired", "message": message})));

    // A device that ChirpStack does not have.
    server.owner.add_device("elsewhere").await;
    send_down(&mut server, "elsewhere", json!({"port": 1, "payload_raw": "AQ=="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (event, message) = next_downlink_event(&mut server).await;
    assert_eq!((event.as_str(), &message["message"]["port"]), ("errors", &json!(1)));
    server.process.stop();
}

/// Whoever may register devices here chooses their EUIs, and the bridge's API key reaches all devices.
#[tokio::test(flavor = "multi_thread")]
async fn no_downlink_reaches_a_device_of_another_application() {
    let Some((mut chirpstack, mut server, _dir)) = start(CHIRPSTACK_APPLICATION, "register = true").await else {
        return;
    };
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}
    chirpstack.api.move_device(DEVICE, "52f14cd4-c6f1-4fbd-8f87-4025e1d49242");
    send_down(&mut server, "kitchen", json!({"port": 1, "payload_raw": "AQ=="})).await;
    assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    let (event, message) = next_downlink_event(&mut server).await;
    assert_eq!((event.as_str(), queued(&chirpstack.api)), ("errors", vec![]));
    assert!(message["error"].as_str().unwrap().contains("another application of ChirpStack"), "{message}");
    server.process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downlink_waits_for_chirpstack_also_over_a_kill() {
    let Some((mut chirpstack, dir)) = ChirpStack::start().await.zip(tempfile::tempdir().ok()) else { return };
    let proxy = Proxy::start(Some(chirpstack.api.address())).await;
    chirpstack.settings(dir.path(), CHIRPSTACK_APPLICATION, "register = true");
    let path = dir.path().join("airlock.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&chirpstack.api.url(), &format!("http://{}", proxy.address))).unwrap();
    let mut server = Server::start(dir.path()).await;
    chirpstack.uplink(DEVICE, "Kitchen", 1).await;
    while server.next().await.0 != "kitchen/up" {}
    proxy.redirect(None);
    for port in [1, 2] {
        send_down(&mut server, "kitchen", json!({"port": port, "payload_raw": "AQ==", "schedule": "last"})).await;
        assert_eq!(next_downlink_event(&mut server).await.0, "scheduled");
    }
    assert_eq!(queued(&chirpstack.api), []);
    server.process.kill();
    proxy.redirect(Some(chirpstack.api.address()));
    let _process = ServerProcess::start(dir.path());
    wait_for_queued(&chirpstack.api, &[1, 2]).await;
}
