//! A broker, a stand-in for ChirpStack's API, and a bridge between them.

use std::time::Duration;

use api::chirpstack::CodecRuntime;
use bridge::{Environment, Error, Running};
use chirpstack::{ChirpStackBridge, ChirpStackSettings};
use serde_json::{Value, json};
use server::status::ErrorChain;
use tempfile::TempDir;
use testing::{
    CHIRPSTACK_APPLICATION, CHIRPSTACK_TENANT, CHIRPSTACK_TOKEN, ChirpStackApi, Mosquitto, MqttClient, MqttMessage,
    soon,
};

use crate::environment::environment;

/// A network: the broker, the API, and what a bridge needs to know of them.
pub struct Network {
    pub broker: Mosquitto,
    pub api: ChirpStackApi,
    pub settings: ChirpStackSettings,
    pub dir: TempDir,
}

impl Network {
    /// None when the test is skipped.
    pub async fn start() -> Option<Self> {
        Self::with_broker(Mosquitto::start()?).await
    }

    pub async fn with_broker(broker: Mosquitto) -> Option<Self> {
        server::system::install_crypto();
        let api = ChirpStackApi::start().await;
        let dir = tempfile::tempdir().unwrap();
        let token_file = dir.path().join("token");
        std::fs::write(&token_file, format!("{CHIRPSTACK_TOKEN}\n")).unwrap();
        let mut settings = ChirpStackSettings::default();
        settings.mqtt.url = broker.url();
        settings.grpc.url = api.url();
        settings.grpc.token_file = Some(token_file);
        settings.refresh_interval_ms = 50;
        Some(Self { broker, api, settings, dir })
    }

    /// A device with its own device profile, which has the same id.
    pub fn device(&self, dev_eui: &str, script: &str) {
        self.api.set_profile(dev_eui, CodecRuntime::Js, script);
        self.api.set_device(dev_eui, dev_eui, &[]);
    }

    /// Returns the environment of a bridge, with `directory` for it alone.
    pub fn environment(&self, directory: &str) -> Environment {
        environment(self.dir.path(), directory)
    }

    pub async fn try_bridge(&self) -> Result<ChirpStackBridge, Error> {
        ChirpStackBridge::start(&self.settings, self.environment("bridge")).await
    }

    /// The error with which a bridge does not start. Waits while another program has its lock, as [`Self::bridge`] does.
    pub async fn refusal(&self) -> String {
        let refused = async {
            loop {
                match self.try_bridge().await.err().unwrap() {
                    Error::Locked { .. } => tokio::time::sleep(Duration::from_millis(10)).await,
                    error => return ErrorChain(&error).to_string(),
                }
            }
        };
        soon("a free directory", refused).await
    }

    /// A running bridge.
    ///
    /// A program that another test starts may inherit the lock of a stopped bridge's directory, until it is executed.
    pub async fn bridge(&self) -> ChirpStackBridge {
        let mut attempts = 0..500;
        let bridge = loop {
            match self.try_bridge().await {
                Err(Error::Locked { .. }) if attempts.next().is_some() => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                started => break started.unwrap(),
            }
        };
        soon("the bridge", bridge.ready()).await;
        bridge
    }

    /// ChirpStack's connection to the broker.
    pub async fn chirpstack(&self) -> MqttClient {
        MqttClient::connect(&self.broker.url()).await
    }

    /// An application that receives everything that the bridge publishes.
    pub async fn application(&self) -> MqttClient {
        let mut client = MqttClient::connect(&self.broker.url()).await;
        client.subscribe("airlock/#").await;
        client
    }
}

/// The topic of an event of a device.
pub fn topic(dev_eui: &str, event: &str) -> String {
    format!("application/{CHIRPSTACK_APPLICATION}/device/{dev_eui}/event/{event}")
}

/// The topic of commands for a device, as an application publishes them.
pub fn command_topic(dev_eui: &str) -> String {
    format!("airlock/application/{CHIRPSTACK_APPLICATION}/device/{dev_eui}/command/down")
}

/// An `up` event in the form that ChirpStack was recorded to send.
pub fn uplink(dev_eui: &str, counter: u32, data: &str) -> Value {
    json!({
        "deduplicationId": format!("{dev_eui}-{counter}"),
        "time": "2026-11-22T16:45:55.231022372+00:00",
        "deviceInfo": device_info(dev_eui),
        "devAddr": "00030000", "adr": false, "dr": 5, "fCnt": counter, "fPort": 2, "confirmed": false, "data": data,
        "rxInfo": [{
            "gatewayId": "0102030405060708", "uplinkId": 604252606, "nsTime": "2026-11-22T16:45:55.026368273+00:00",
            "rssi": -60, "snr": 7.5, "channel": 1, "location": {"latitude": 52.5, "longitude": 13.4},
            "context": "JAQpvg==", "crcStatus": "CRC_OK",
        }],
        "txInfo": {"frequency": 868300000, "modulation": {
            "lora": {"bandwidth": 125000, "spreadingFactor": 7, "codeRate": "CR_4_5"},
        }},
        "regionConfigId": "eu868",
    })
}

pub fn device_info(dev_eui: &str) -> Value {
    json!({
        "tenantId": CHIRPSTACK_TENANT, "tenantName": "lab", "applicationId": CHIRPSTACK_APPLICATION,
        "applicationName": "lab", "deviceProfileId": dev_eui, "deviceProfileName": dev_eui, "deviceName": dev_eui,
        "devEui": dev_eui, "deviceClassEnabled": "CLASS_A", "tags": {},
    })
}

/// Publishes an uplink of a device whose profile has the same id.
pub async fn send(chirpstack: &mut MqttClient, dev_eui: &str, counter: u32, data: &str) {
    let event = serde_json::to_vec(&uplink(dev_eui, counter, data)).unwrap();
    chirpstack.publish(&topic(dev_eui, "up"), event).await;
}

/// Receives the next `up` event, and checks that nothing came before it.
pub async fn next_up(application: &mut MqttClient) -> Value {
    let message = application.next().await;
    assert_eq!(message.kind(), "event/up", "{}", String::from_utf8_lossy(&message.payload));
    message.json()
}

/// Receives a `log` event and the `up` event after it.
pub async fn next_log_and_up(application: &mut MqttClient) -> (Value, Value) {
    let message: MqttMessage = application.next().await;
    assert_eq!(message.kind(), "event/log", "{}", String::from_utf8_lossy(&message.payload));
    (message.json(), next_up(application).await)
}
