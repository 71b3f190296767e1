//! The network between a test and a server: a client of MQTT, and connections that break.

mod mqtt_client;
mod proxy;

pub use self::{
    mqtt_client::{MqttClient, MqttMessage},
    proxy::Proxy,
};
