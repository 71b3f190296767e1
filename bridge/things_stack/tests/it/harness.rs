//! The Things Stack's MQTT server and API, a broker for applications, and a bridge between them.

use bridge::{Environment, Error, Running};
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::{
    Mosquitto, MqttClient, THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, soon, things_stack_uplink,
};
use things_stack::{ThingsStackApplication, ThingsStackBridge, ThingsStackSettings};

use crate::environment::environment;

/// The application's id without its tenant, as the API has it.
pub const APPLICATION_ID: &str = "sensors";

/// A network: both brokers, the API, and what a bridge needs to know of them.
pub struct Network {
    pub server: Mosquitto,
    pub broker: Mosquitto,
    pub api: ThingsStackApi,
    pub settings: ThingsStackSettings,
    pub dir: TempDir,
}

impl Network {
    /// None when the test is skipped.
    pub async fn start() -> Option<Self> {
        let (server, broker) = (Mosquitto::start()?, Mosquitto::start()?);
        server::system::install_crypto();
        let api = ThingsStackApi::start().await;
        let dir = tempfile::tempdir().unwrap();
        let key_file = dir.path().join("key");
        std::fs::write(&key_file, format!("{THINGS_STACK_KEY}\n")).unwrap();
        let mut settings = ThingsStackSettings {
            applications: vec![ThingsStackApplication { id: THINGS_STACK_APPLICATION.to_owned(), key_file: None }],
            key_file: Some(key_file),
            refresh_interval_ms: 50,
            ..ThingsStackSettings::default()
        };
        settings.mqtt.url = server.url();
        settings.api.url = api.url();
        settings.to.url = broker.url();
        Some(Self { server, broker, api, settings, dir })
    }

    /// A device without formatters of its own.
    pub fn device(&self, device: &str) {
        self.api.set_device(APPLICATION_ID, device, json!({"ids": {"device_id": device}}));
    }

    /// Sets the application's default formatters.
    pub fn default_script(&self, up: &str, down: &str) {
        self.api.set_default(APPLICATION_ID, &javascript(up, down));
    }

    /// A bridge, or why it cannot start.
    pub async fn try_bridge(&self) -> Result<ThingsStackBridge, Error> {
        self.try_bridge_with(None).await
    }

    /// The same with a history.
    ///
    /// A program that another test starts may inherit the lock of a stopped bridge's directory, until it is executed.
    pub async fn try_bridge_with(&self, history: Option<history::Settings>) -> Result<ThingsStackBridge, Error> {
        let mut attempts = 0..500;
        loop {
            let environment = Environment { history: history.clone(), ..environment(self.dir.path(), "bridge") };
            match ThingsStackBridge::start(&self.settings, environment).await {
                Err(Error::Locked { .. }) if attempts.next().is_some() => {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                started => return started,
            }
        }
    }

    /// A running bridge.
    pub async fn bridge(&self) -> ThingsStackBridge {
        let bridge = self.try_bridge().await.unwrap();
        soon("the bridge", bridge.ready()).await;
        bridge
    }

    /// The Things Stack's own connection to its server.
    pub async fn things_stack(&self) -> MqttClient {
        MqttClient::connect(&self.server.url()).await
    }

    /// An application that receives everything that the bridge publishes.
    pub async fn application(&self) -> MqttClient {
        let mut client = MqttClient::connect(&self.broker.url()).await;
        for kind in ["up", "up/normalized", "join", "service/data"] {
            client.subscribe(&format!("v3/+/devices/+/{kind}")).await;
        }
        // Not those that applications publish.
        for kind in ["queued", "sent", "ack", "nack", "failed", "invalidated"] {
            client.subscribe(&format!("v3/+/devices/+/down/{kind}")).await;
        }
        client
    }
}

/// Formatters in JavaScript.
pub fn javascript(up: &str, down: &str) -> Value {
    json!({
        "up_formatter": "FORMATTER_JAVASCRIPT", "up_formatter_parameter": up,
        "down_formatter": "FORMATTER_JAVASCRIPT", "down_formatter_parameter": down,
    })
}

/// The topic of a kind of message of a device.
pub fn topic(device: &str, kind: &str) -> String {
    format!("v3/{THINGS_STACK_APPLICATION}/devices/{device}/{kind}")
}

/// Publishes an uplink as The Things Stack does.
pub async fn send(things_stack: &mut MqttClient, device: &str, counter: u32, payload: &str) {
    let message = things_stack_uplink(device, counter, payload);
    things_stack.publish(&topic(device, "up"), message.to_string()).await;
}

/// Receives the next uplink, and checks that nothing came before it.
pub async fn next_up(application: &mut MqttClient) -> Value {
    let message = application.next().await;
    assert!(message.topic.ends_with("/up"), "{} {}", message.topic, String::from_utf8_lossy(&message.payload));
    message.json()
}

/// Receives a report of a failure, and the uplink after it.
pub async fn next_report_and_up(application: &mut MqttClient) -> (Value, Value) {
    let message = application.next().await;
    assert_eq!(message.kind(), "service/data", "{}", String::from_utf8_lossy(&message.payload));
    (message.json()["service_data"].clone(), next_up(application).await)
}
