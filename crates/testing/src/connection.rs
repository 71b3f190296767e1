//! Connections between a test and a server: a client of MQTT, and a proxy that cuts connections.

mod mqtt_client;
mod proxy;

pub use self::{
    mqtt_client::{MqttClient, MqttMessage},
    proxy::Proxy,
};
