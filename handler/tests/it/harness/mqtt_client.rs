//! An application's MQTT client.

use std::{collections::VecDeque, net::SocketAddr};

use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};

use crate::harness::soon;

pub struct MqttClient {
    client: AsyncClient,
    events: EventLoop,
    /// Messages that arrived while the client waited for something else.
    early: VecDeque<(String, String)>,
}

impl MqttClient {
    /// Connects as `app_id` and subscribes to `filter`.
    pub async fn connect(address: SocketAddr, app_id: &str, filter: &str) -> Self {
        let mut options = MqttOptions::new("", address.ip().to_string(), address.port());
        options.set_credentials(app_id, "account.key").set_max_packet_size(1 << 20, 1 << 20);
        let (client, events) = AsyncClient::new(options, 10);
        let mut this = Self { client, events, early: VecDeque::new() };
        this.client.subscribe(filter, QoS::AtMostOnce).await.unwrap();
        this.wait_for(|packet| matches!(packet, Packet::SubAck(_))).await;
        this
    }

    /// Publishes with QoS 1, and waits for the PUBACK.
    pub async fn publish(&mut self, topic: &str, body: &str) {
        self.client.publish(topic, QoS::AtLeastOnce, false, body).await.unwrap();
        self.wait_for(|packet| matches!(packet, Packet::PubAck(_))).await;
    }

    /// The next message: topic and body.
    pub async fn next(&mut self) -> (String, String) {
        while self.early.is_empty() {
            self.wait_for(|packet| matches!(packet, Packet::Publish(_))).await;
        }
        self.early.pop_front().unwrap()
    }

    async fn wait_for(&mut self, matches: impl Fn(&Packet) -> bool) {
        loop {
            let Event::Incoming(packet) = soon("an MQTT packet", self.events.poll()).await.unwrap() else { continue };
            let is_match = matches(&packet);
            if let Packet::Publish(message) = packet {
                self.early.push_back((message.topic, String::from_utf8(message.payload.into()).unwrap()));
            }
            if is_match {
                return;
            }
        }
    }
}
