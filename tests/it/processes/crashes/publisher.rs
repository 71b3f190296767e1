//! An MQTT client that publishes downlinks.

use base64::{Engine, engine::general_purpose::STANDARD};
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use serde_json::json;
use tokio::time::timeout;

use super::PATIENCE;
use crate::harness::Owner;

/// Publishes one downlink after the other.
pub(super) struct Publisher {
    options: MqttOptions,
    client: AsyncClient,
    events: EventLoop,
    app_id: String,
}

impl Publisher {
    pub(super) fn connect(owner: &Owner, address: &str) -> Self {
        let (host, port) = address.rsplit_once(':').unwrap();
        let mut options = MqttOptions::new("publisher", host, port.parse().unwrap());
        options.set_credentials(owner.app_id.as_str(), owner.key.expose());
        let (client, events) = AsyncClient::new(options.clone(), 10);
        Self { options, client, events, app_id: owner.app_id.to_string() }
    }

    /// Publishes a downlink. Returns true if the broker has acknowledged it.
    pub(super) async fn publish(&mut self, dev_id: &str, number: u32) -> bool {
        let topic = format!("{}/devices/{dev_id}/down", self.app_id);
        let payload = STANDARD.encode(number.to_be_bytes());
        let downlink = json!({"port": 1, "schedule": "last", "payload_raw": payload}).to_string();
        self.client.publish(topic, QoS::AtLeastOnce, false, downlink).await.unwrap();
        let is_acknowledged = timeout(PATIENCE, self.acknowledged()).await.unwrap_or(false);
        if !is_acknowledged {
            // The client would send it again, and its acknowledgement would count for the next downlink.
            (self.client, self.events) = AsyncClient::new(self.options.clone(), 10);
        }
        is_acknowledged
    }

    async fn acknowledged(&mut self) -> bool {
        loop {
            match self.events.poll().await {
                Ok(Event::Incoming(Packet::PubAck(_))) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}
