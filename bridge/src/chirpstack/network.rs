//! ChirpStack for programs that deal with its events themselves.

use std::sync::Arc;

use futures::future::BoxFuture;
use server::telemetry::Health;
use tokio::sync::watch;

use super::{
    bridge::output,
    brokers::{network_source, source},
    settings::ChirpStackSettings,
    source::Events,
    topic::Topic,
};
use crate::{
    Environment, Error, Handle, Network, metrics, output::Output, receive::report_connection, state_dir::StateDir,
};

/// Connections to ChirpStack: its events, from MQTT or Redis, and its commands.
pub struct ChirpStackNetwork {
    events: Events,
    /// Without a broker of ChirpStack, commands cannot be sent.
    commands: Option<Arc<Output>>,
    connected: Vec<(&'static str, watch::Receiver<bool>)>,
    _state_dir: StateDir,
}

impl ChirpStackNetwork {
    /// Checks the settings, and connects in the background. Neither the API nor a broker for decoded events is used.
    /// Topics of events have no prefix.
    pub fn start(settings: &ChirpStackSettings, environment: &Environment, handle: Handle) -> Result<Self, Error> {
        metrics::describe();
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let events = Events::start(network_source(settings, &client_id)?, settings, &client_id, move |delivery| {
            handle(delivery)
        });
        let mut connected = vec![("events from ChirpStack", events.subscribed())];
        let mut commands = None;
        if !settings.mqtt.url.is_empty() {
            let down = output(source(settings, &client_id, "down")?, String::new(), settings);
            connected.push(("commands to ChirpStack", down.publisher.connected()));
            commands = Some(Arc::new(down));
        }
        Ok(Self { events, commands, connected, _state_dir: state_dir })
    }
}

impl Network for ChirpStackNetwork {
    fn send<'a>(&'a self, topic: &'a str, downlink: Vec<u8>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match (&self.commands, Topic::parse(topic, "")) {
                (Some(commands), Some(topic)) => commands.publish(topic, downlink).await,
                _ => false,
            }
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for (_, connected) in &self.connected {
                // It fails only when the connection's task has ended.
                _ = connected.clone().wait_for(|connected| *connected).await;
            }
        })
    }

    fn report_to(&self, health: &Health) {
        self.connected.iter().for_each(|(name, connected)| report_connection(health, name, connected));
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.events.drain())
    }
}
