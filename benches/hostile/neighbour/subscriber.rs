//! The MQTT client that receives the neighbour's uplinks, in a session that outlives its connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use tokio::{task::JoinHandle, time::sleep};

use super::{Seen, Target};

/// Subscribes, and then takes what comes.
pub(super) async fn start(target: &Target, seen: &Arc<Seen>) -> JoinHandle<()> {
    let mut options = MqttOptions::new("subscriber", target.mqtt.ip().to_string(), target.mqtt.port());
    options.set_credentials(&target.app_id, &target.key).set_clean_session(false);
    let (client, mut events) = AsyncClient::new(options, 10);
    client.subscribe("+/devices/+/up", QoS::AtLeastOnce).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        // Without the client, the event loop would end.
        let _client = client;
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::Publish(publish))) => seen.deliver(&publish.payload),
                Ok(_) => {}
                // It connects again with the next poll.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    })
}

impl Seen {
    fn deliver(&self, payload: &[u8]) {
        let now = Instant::now();
        let number = std::str::from_utf8(payload).ok().and_then(volume);
        if let Some(number) = number {
            // A repetition does not count.
            self.uplinks.lock().unwrap()[number].delivered.get_or_insert(now);
        }
    }
}

/// The number that the payload carried.
fn volume(message: &str) -> Option<usize> {
    let (_, rest) = message.split_once("\"volume\":")?;
    rest[..rest.find(|letter: char| !letter.is_ascii_digit())?].parse().ok()
}
