//! MQTT: publishes messages, and receives the downlinks that applications publish.
//!
//! The two use separate connections, so that neither direction delays the other.

mod fields;
mod publisher;
mod subscriber;

use std::time::Duration;

use client::mqtt::Connection;
use mqtt::{Endpoint, PACKET_BYTES_MAX};
use rumqttc::{AsyncClient, MqttOptions};
use types::Random;

pub use self::{
    publisher::{MqttOutput, MqttOutputSettings},
    subscriber::{DownlinkSubscriber, PublishedDownlink},
};

/// How many requests rumqttc queues. Few, because it sends them slowly after a reconnection.
const REQUESTS_MAX: usize = 64;

const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Makes a connection to a broker. `role` is part of its client identifier.
fn connection(endpoint: &Endpoint, role: &str, random: &dyn Random) -> (AsyncClient, Connection) {
    let client_id = format!("handler-{role}-{:016x}", u64::from_be_bytes(random.array()));
    let mut options = MqttOptions::new(client_id, endpoint.address.ip().to_string(), endpoint.address.port());
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_credentials(endpoint.username.as_str(), endpoint.password.expose())
        .set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
    Connection::new(options, REQUESTS_MAX, Some(u64::from_be_bytes(random.array())))
}
