//! Messages as MQTT publications: `<app_id>/devices/<dev_id>/<topic>`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use types::Random;

use super::{Message, Output, Topic};
use mqtt::Endpoint;

use crate::{Error, bus::Bus};

/// What is published over MQTT, and how much may wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How many messages may wait for the broker before new ones are dropped; of one application at most half of them.
    pub queue_messages_max: usize,
    /// Whether each field of an uplink is published on a topic of its own, too.
    pub field_topics: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queue_messages_max: 10_000, field_topics: false }
    }
}

/// Publishes messages at an MQTT broker, each at most once.
pub struct MqttOutput {
    bus: Bus,
    field_topics: bool,
}

impl MqttOutput {
    /// Connects in the background and for good.
    pub fn connect(endpoint: &Endpoint, settings: &Settings, random: Arc<dyn Random>) -> Result<Self, Error> {
        let bus = Bus::connect(endpoint, settings.queue_messages_max.clamp(1, Semaphore::MAX_PERMITS), random)?;
        Ok(Self { bus, field_topics: settings.field_topics })
    }

    /// Whether the broker is there now.
    pub fn is_connected(&self) -> bool {
        self.bus.is_connected()
    }

    /// Returns once the broker is there.
    pub async fn connected(&self) {
        self.bus.connected().await;
    }

    /// Returns once the broker is away.
    pub async fn disconnected(&self) {
        self.bus.disconnected().await;
    }

    /// Takes no more, publishes what waits, then leaves; gives up after `wait`.
    pub async fn close(&self, wait: Duration) {
        self.bus.close(wait).await;
    }

    fn publish_fields(&self, uplink: &str, body: &[u8]) {
        // A body that is no uplink has no fields.
        let Ok(Fields { payload_fields }) = serde_json::from_slice(body) else { return };
        walk(uplink, &payload_fields, &mut |topic, value| self.bus.publish(topic, Bytes::from(value.to_string())));
    }
}

impl Output for MqttOutput {
    fn publish(&self, message: Message) {
        let Message { app_id, dev_id, topic, body } = message;
        let name = format!("{app_id}/devices/{dev_id}/{topic}");
        if self.field_topics && topic == Topic::Up {
            // A copy of the handle, not of the bytes.
            self.bus.publish(name.clone(), body.clone());
            self.publish_fields(&name, &body);
        } else {
            self.bus.publish(name, body);
        }
    }
}

/// The part of an uplink that has topics of its own.
#[derive(Deserialize)]
struct Fields {
    payload_fields: Map<String, Value>,
}

/// Gives every field with its topic, an object before what is in it; names that MQTT cannot carry are left out.
fn walk(above: &str, fields: &Map<String, Value>, each: &mut impl FnMut(String, &Value)) {
    for (name, value) in fields {
        if name.is_empty() || name.contains(['+', '#', '*', '\0']) {
            continue;
        }
        let topic = format!("{above}/{name}");
        each(topic.clone(), value);
        if let Value::Object(inner) = value {
            walk(&topic, inner, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_topic_and_names_that_mqtt_cannot_carry_have_none() {
        let body = r##"{"port":1,"payload_fields":{"t":21.5,"gps":{"lat":1,"fix":[1,2]},"a+b":1,"":2,"#":3}}"##;
        let Fields { payload_fields } = serde_json::from_str(body).unwrap();
        let mut seen = Vec::new();
        walk("up", &payload_fields, &mut |topic, value| seen.push((topic, value.to_string())));
        let expected =
            [("up/t", "21.5"), ("up/gps", r#"{"lat":1,"fix":[1,2]}"#), ("up/gps/lat", "1"), ("up/gps/fix", "[1,2]")];
        assert_eq!(seen, expected.map(|(topic, value)| (topic.to_owned(), value.to_owned())));
    }
}
