//! ChirpStack's side, and a server that it brings devices to.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::{
    CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ChirpStackApi, Mosquitto, MqttClient,
};

use crate::harness::{
    MESSAGE_TIMEOUT, Owner, next, remove_time,
    server_process::{ServerProcess, get, serve},
};

pub(crate) const DEVICE: &str = "a300000000000001";
pub(crate) const DECODER: &str = "function decodeUplink(input) { \
    return {data: {n: input.bytes[0], offset: (input.variables || {}).offset, at: input.recvTime.getUTCFullYear()}} }";

/// ChirpStack's broker and API.
pub(crate) struct ChirpStack {
    pub(crate) broker: Mosquitto,
    pub(crate) api: ChirpStackApi,
    /// URL for settings: of the API, or of a proxy in front of it.
    pub(crate) api_url: String,
    /// The default, unless a test takes the API away.
    pub(crate) api_wait_ms_max: u64,
    pub(crate) client: MqttClient,
}

impl ChirpStack {
    pub(crate) async fn start() -> Option<Self> {
        server::system::install_crypto();
        let (broker, api) = (Mosquitto::start()?, ChirpStackApi::start().await);
        api.set_device(DEVICE, "profile", &[("offset", "5")]);
        let client = MqttClient::connect(&broker.url()).await;
        let api_url = api.url();
        Some(Self { broker, api, api_url, api_wait_ms_max: 10_000, client })
    }

    /// Settings that lead its application, given by id or name, to one of ours.
    pub(crate) fn settings(&self, dir: &Path, application: &str, members: &str) {
        self.settings_from(dir, &format!("chirpstack.mqtt.url = '{}'", self.broker.url()), application, members);
    }

    pub(crate) fn settings_from(&self, dir: &Path, source: &str, application: &str, members: &str) {
        let token_file = dir.join("chirpstack.key");
        std::fs::write(&token_file, CHIRPSTACK_TOKEN).unwrap();
        let text = format!(
            "[[bridge]]\n{source}\nchirpstack.api_wait_ms_max = {}\n\
             chirpstack.grpc = {{ url = '{}', token_file = '{}' }}\n\n\
             [[bridge.applications]]\napplication = '{application}'\napp_id = 'meadow-app'\n{members}\n",
            self.api_wait_ms_max,
            self.api_url,
            token_file.display(),
        );
        std::fs::write(dir.join("airlock.toml"), text).unwrap();
    }

    pub(crate) async fn send(&mut self, dev_eui: &str, event: &str, body: &Value) {
        let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{dev_eui}/event/{event}");
        self.client.publish(&topic, body.to_string()).await;
    }

    pub(crate) async fn uplink(&mut self, dev_eui: &str, name: &str, counter: u32) {
        self.send(dev_eui, "up", &uplink(dev_eui, name, counter)).await;
    }
}

pub(crate) fn device_info(dev_eui: &str, name: &str) -> Value {
    json!({
        "applicationId": CHIRPSTACK_APPLICATION, "applicationName": CHIRPSTACK_APPLICATION_NAME, "deviceName": name,
        "deviceProfileId": "profile", "devEui": dev_eui, "tags": {"room": "kitchen"},
    })
}

pub(crate) fn uplink(dev_eui: &str, name: &str, counter: u32) -> Value {
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
pub(crate) struct Server {
    pub(crate) process: ServerProcess,
    pub(crate) owner: Owner,
    pub(crate) listener: MqttClient,
}

impl Server {
    pub(crate) async fn start(dir: &Path) -> Self {
        Self::start_with(serve(dir).stderr(Stdio::null()), dir).await
    }

    pub(crate) async fn start_with(command: &mut Command, dir: &Path) -> Self {
        let process = ServerProcess::spawn(command);
        let owner = process.owner(dir, "meadow").await;
        owner.set_functions([DECODER, "", ""]).await.unwrap();
        let listener = owner.listen_at(process.place("MQTT")).await;
        Self { process, owner, listener }
    }

    pub(crate) async fn next(&mut self) -> (String, Value) {
        next(&mut self.listener).await
    }

    /// Waits until a metric that starts like this is exported.
    pub(crate) async fn wait_for_metric(&self, metric: &str) {
        let found = async {
            while !get(self.process.place("metrics")).lines().any(|line| line.starts_with(metric)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, found).await.unwrap_or_else(|_| panic!("no {metric}"));
    }
}

/// The next event about a downlink.
pub(crate) async fn next_downlink_event(server: &mut Server) -> (String, Value) {
    loop {
        let (topic, mut message) = server.next().await;
        if let Some((_, event)) = topic.split_once("/events/down/") {
            assert!(remove_time(&mut message), "{message}");
            return (event.to_owned(), message);
        }
    }
}

pub(crate) async fn send_down(server: &mut Server, dev_id: &str, downlink: Value) {
    server.listener.publish(&format!("meadow-app/devices/{dev_id}/down"), downlink.to_string()).await;
}

pub(crate) async fn start(application: &str, members: &str) -> Option<(ChirpStack, Server, TempDir)> {
    let (chirpstack, dir) = (ChirpStack::start().await?, tempfile::tempdir().unwrap());
    chirpstack.settings(dir.path(), application, members);
    let server = Server::start(dir.path()).await;
    Some((chirpstack, server, dir))
}
