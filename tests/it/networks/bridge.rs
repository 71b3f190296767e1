//! `airlock bridge` as a process.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use testing::{
    CHIRPSTACK_APPLICATION, CHIRPSTACK_TOKEN, ChirpStackApi, Mosquitto, MqttClient, Proxy, RedisProcess,
    THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, chirpstack_uplink, things_stack_uplink,
};

use crate::{
    browser::{DESK, driver::Browser},
    harness::{MESSAGE_TIMEOUT, airlock, complaint},
};

pub(super) const DEVICE: &str = "a300000000000000";

/// A bridge in a process of its own.
pub(super) struct Process {
    child: Child,
    telemetry: SocketAddr,
}

impl Process {
    /// Starts a bridge, and waits until it is connected.
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let telemetry = lines.next().unwrap();
        let telemetry = telemetry.split(['/', ' ']).find_map(|word| word.parse().ok()).unwrap();
        let is_ready =
            |line: &str| line.starts_with("Decoding the events of") || line.starts_with("Decoding the messages of");
        assert!(lines.any(|line| is_ready(&line)), "it did not get ready");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, telemetry }
    }

    /// Waits until the process exports a metric that starts like this.
    pub(super) async fn wait_for_metric(&self, metric: &str) {
        let found = async {
            while !self.metrics().await.lines().any(|line| line.starts_with(metric)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, found).await.unwrap_or_else(|_| panic!("no {metric}"));
    }

    async fn metrics(&self) -> String {
        reqwest::get(format!("http://{}/metrics", self.telemetry)).await.unwrap().text().await.unwrap()
    }

    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A broker, the API with one device, and ChirpStack's connection.
pub(super) async fn network() -> Option<(Mosquitto, ChirpStackApi, MqttClient)> {
    server::system::install_crypto();
    let (broker, api) = (Mosquitto::start()?, ChirpStackApi::start().await);
    let script = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";
    api.set_profile(DEVICE, api::chirpstack::CodecRuntime::Js, script);
    api.set_device(DEVICE, DEVICE, &[]);
    let chirpstack = MqttClient::connect(&broker.url()).await;
    Some((broker, api, chirpstack))
}

pub(super) fn command(dir: &Path, broker: &str, api: &ChirpStackApi) -> Command {
    command_from(dir, ["--mqtt", broker], api)
}

/// A bridge whose events come from `source`.
fn command_from(dir: &Path, source: [&str; 2], api: &ChirpStackApi) -> Command {
    let token_file = dir.join("chirpstack.key");
    std::fs::write(&token_file, CHIRPSTACK_TOKEN).unwrap();
    let mut command = airlock(dir);
    command.env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0").args(["bridge", "chirpstack"]).args(source);
    command.args(["--grpc", &api.url(), "--token-file"]).arg(token_file);
    command
}

pub(super) fn uplink(counter: u32) -> Value {
    json!({
        "deduplicationId": counter.to_string(), "fCnt": counter, "fPort": 1, "data": "AQ==",
        "deviceInfo": {"applicationId": CHIRPSTACK_APPLICATION, "deviceProfileId": DEVICE, "devEui": DEVICE},
    })
}

/// The topic of its uplinks.
pub(super) fn topic() -> String {
    format!("application/{CHIRPSTACK_APPLICATION}/device/{DEVICE}/event/up")
}

pub(super) async fn send(chirpstack: &mut MqttClient, counter: u32) {
    chirpstack.publish(&topic(), uplink(counter).to_string()).await;
}

// The stand-in for the API works while the test waits for the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_is_killed_loses_nothing_and_keeps_the_order() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    let mut next = 0;
    for round in 0..3 {
        let process = Process::start(&mut command(dir.path(), &broker.url(), &api));
        for counter in round * 100..(round + 1) * 100 {
            send(&mut chirpstack, counter).await;
        }
        process.kill();
    }
    let process = Process::start(&mut command(dir.path(), &broker.url(), &api));
    while next < 300 {
        let up: Value = application.next().await.json();
        assert_eq!(up["object"], json!({"n": 1}));
        let counter = up["fCnt"].as_u64().unwrap();
        assert!(counter <= next, "{counter} came before {next}");
        next = next.max(counter + 1);
    }
    let metrics = process.metrics().await;
    assert!(metrics.contains("airlock_bridge_uplinks_total"), "{metrics}");
    let ready = reqwest::get(format!("http://{}/readyz", process.telemetry)).await.unwrap();
    assert!(ready.status().is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_leaves_publishes_what_it_has_and_gets_nothing_more() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    Process::start(&mut command(one.path(), &broker.url(), &api)).kill();
    for counter in 0..10 {
        send(&mut chirpstack, counter).await;
    }
    let left = command(one.path(), &broker.url(), &api).arg("--leave").output().unwrap();
    assert!(String::from_utf8_lossy(&left.stdout).contains("Left"), "{left:?}");
    receive_all(&mut application, 10).await;
    // Half of these would go to the one that has left.
    let _other = Process::start(&mut command(other.path(), &broker.url(), &api));
    for counter in 10..30 {
        send(&mut chirpstack, counter).await;
    }
    let mut missing: BTreeSet<u64> = (10..30).collect();
    while !missing.is_empty() {
        missing.remove(&application.next().await.json()["fCnt"].as_u64().unwrap());
    }
}

/// Receives uplinks until all of `counters` have come; whether each first copy was in order.
async fn receive_all(application: &mut MqttClient, counters: u64) -> bool {
    let (mut missing, mut is_in_order): (BTreeSet<u64>, _) = ((0..counters).collect(), true);
    while let Some(first) = missing.first().copied() {
        let counter = application.next().await.json()["fCnt"].as_u64().unwrap();
        is_in_order &= counter <= first;
        missing.remove(&counter);
    }
    is_in_order
}

/// Nothing reaches the output before the bridge is killed, so whatever it acknowledged by then would be lost.
async fn check_killed_while_the_output_is_held(source: [&str; 2], api: &ChirpStackApi, mut send: impl AsyncFnMut(u32)) {
    let (Some(target), dir) = (Mosquitto::start(), tempfile::tempdir().unwrap()) else { return };
    let mut application = MqttClient::connect(&target.url()).await;
    application.subscribe("application/+/device/+/event/up").await;
    let proxy = Proxy::start(Some(target.address())).await;
    let start = || {
        let mut command = command_from(dir.path(), source, api);
        Process::start(command.args(["--to", &format!("mqtt://{}", proxy.address)]))
    };
    let process = start();
    proxy.redirect(None).await;
    for counter in 0..50 {
        send(counter).await;
    }
    // The device's other messages wait behind its first one.
    process.wait_for_metric("airlock_bridge_uplinks_total{result=\"decoded\"} 1").await;
    process.kill();
    proxy.redirect(Some(target.address())).await;
    let _process = start();
    assert!(receive_all(&mut application, 50).await, "not in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_is_killed_has_acknowledged_nothing_that_was_not_published() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let send = async |counter| send(&mut chirpstack, counter).await;
    check_killed_while_the_output_is_held(["--mqtt", &broker.url()], &api, send).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_is_killed_loses_nothing_with_mqtt_3_1_1_either() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let proxy = Proxy::start_mqtt311(broker.address()).await;
    let send = async |counter| send(&mut chirpstack, counter).await;
    check_killed_while_the_output_is_held(["--mqtt", &format!("mqtt://{}", proxy.address)], &api, send).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_is_killed_loses_nothing_of_a_redis_stream_either() {
    let (Some((_broker, api, _chirpstack)), Some(redis)) = (network().await, RedisProcess::start()) else { return };
    let send = async |counter| {
        let event = chirpstack_uplink(&uplink(counter));
        redis.call(&[b"XADD", b"device:stream:event", b"*", b"up", &event]);
    };
    check_killed_while_the_output_is_held(["--redis", &redis.url()], &api, send).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_bridges_that_share_the_events_one_can_be_killed() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    let [first, second] = dirs.each_ref().map(|dir| Process::start(&mut command(dir.path(), &broker.url(), &api)));
    for counter in 0..100 {
        send(&mut chirpstack, counter).await;
    }
    // Both have a part of them.
    for process in [&first, &second] {
        process.wait_for_metric("airlock_bridge_uplinks_total{result=\"decoded\"}").await;
    }
    first.kill();
    for counter in 100..200 {
        send(&mut chirpstack, counter).await;
    }
    let _first = Process::start(&mut command(dirs[0].path(), &broker.url(), &api));
    receive_all(&mut application, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_run_reports_what_differs() {
    let Some(broker) = Mosquitto::start() else { return };
    let (api, dir) = (ChirpStackApi::start().await, tempfile::tempdir().unwrap());
    api.set_profile(DEVICE, api::chirpstack::CodecRuntime::Js, "function decodeUplink() { return {data: {n: 2}} }");
    api.set_device(DEVICE, DEVICE, &[]);
    let mut command = command(dir.path(), &broker.url(), &api);
    command.args(["--shadow", "--count", "2", "--report", "report.json", "--report", "report.html"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Comparing the codecs of")), "it did not get ready");
    let mut chirpstack = MqttClient::connect(&broker.url()).await;
    for (counter, number) in [(1, 2.0), (2, 3.0)] {
        let event = json!({
            "deduplicationId": counter.to_string(), "fPort": 1, "data": "AQ==", "object": {"n": number},
            "deviceInfo": {"deviceProfileId": DEVICE, "devEui": DEVICE},
        });
        chirpstack.publish(&topic(), event.to_string()).await;
    }
    let text: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success());
    assert!(text.iter().any(|line| line == "2 messages: 1 equal, 1 different"), "{text:#?}");
    assert!(text.iter().any(|line| line.trim() == "n: there 3.0, here 2"), "{text:#?}");
    let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("report.json")).unwrap()).unwrap();
    assert_eq!((&report["totals"]["equal"], &report["totals"]["different"]), (&json!(1), &json!(1)));
    assert_eq!(report["codecs"][DEVICE]["causes"], json!({"a number": 1}));
    let Some(browser) = Browser::start(&format!("file://{}/", dir.path().display()), "shadow", DESK).await else {
        return;
    };
    browser.look_at_report("report.html", "Shadow run of Airlock").await;
}

#[tokio::test]
async fn a_bridge_without_what_it_needs_says_what_to_give() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&[][..], "give the broker's URL, such as mqtt://localhost:1883, with --mqtt"),
        (&["--mqtt", "localhost:1883"][..], "must be like mqtt://host:1883"),
        (&["--mqtt", "mqtt://me:hush@localhost"][..], "set `username` and `password_file`"),
        (
            &["--mqtt", "mqtt://127.0.0.1:1"][..],
            "give the URL of ChirpStack, such as http://localhost:8080, with --grpc",
        ),
        (&["--mqtt", "mqtt://127.0.0.1:1", "--grpc", "http://127.0.0.1:1"][..], "give its file, with --token-file"),
    ] {
        let text = complaint(&airlock(dir.path()).args(["bridge", "chirpstack"]).args(arguments).output().unwrap());
        assert!(text.contains(expected) && !text.contains("hush"), "{arguments:?}: {text}");
    }
}

/// The Things Stack keeps nothing for a client that is not connected; its storage integration does.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_bridge_to_the_things_stack_catches_up_in_order() {
    server::system::install_crypto();
    let (Some(server), Some(broker)) = (Mosquitto::start(), Mosquitto::start()) else { return };
    let (api, dir) = (ThingsStackApi::start().await, tempfile::tempdir().unwrap());
    let script = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";
    let formatters = json!({"up_formatter": "FORMATTER_JAVASCRIPT", "up_formatter_parameter": script});
    api.set_device("sensors", "dev1", json!({"formatters": formatters}));
    let key_file = dir.path().join("app.key");
    std::fs::write(&key_file, THINGS_STACK_KEY).unwrap();
    let start = || {
        let mut command = airlock(dir.path());
        command
            .env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0")
            .args(["bridge", "things-stack", "--key-file"])
            .arg(&key_file);
        command.args(["--api", &api.url(), "--mqtt", &server.url(), "--to", &broker.url()]);
        Process::start(command.args(["--application", THINGS_STACK_APPLICATION]))
    };
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("v3/+/devices/+/up").await;
    let mut things_stack = MqttClient::connect(&server.url()).await;
    let mut send_all = async |counters: std::ops::Range<u32>| {
        for counter in counters {
            let mut uplink = things_stack_uplink("dev1", counter, "AQ==");
            uplink["received_at"] = json!(types::Clock::now(&server::system::SystemClock).to_rfc3339());
            api.store(uplink.clone());
            let topic = format!("v3/{THINGS_STACK_APPLICATION}/devices/dev1/up");
            things_stack.publish(&topic, uplink.to_string()).await;
        }
    };
    for round in 0..3 {
        let process = start();
        process.wait_for_metric("airlock_bridge_catch_ups_total").await;
        send_all(round * 100..round * 100 + 50).await;
        process.kill();
        send_all(round * 100 + 50..(round + 1) * 100).await;
    }
    let _process = start();
    let mut next = 0;
    while next < 300 {
        let up = application.next().await.json();
        assert_eq!(up["uplink_message"]["decoded_payload"], json!({"n": 1}));
        let counter = up["uplink_message"]["f_cnt"].as_u64().unwrap();
        assert!(counter <= next, "{counter} came before {next}");
        next = next.max(counter + 1);
    }
}
