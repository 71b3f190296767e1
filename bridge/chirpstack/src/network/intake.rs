//! Events of ChirpStack to the receivers of their applications.

use std::sync::Arc;

use bridge::{
    codec::single_flight::LookUpError,
    hand_over::{HandOver, HandedOver, network::Receiver},
    metrics,
};
use link::delivery::Delivery;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use types::NetworkEvent;

use crate::{
    codec::directory::{Device, Directory},
    event::topic::Topic,
    network::{report::Report, routes::Routes},
};

/// Hands events over to the receivers of their applications.
pub(crate) struct Intake {
    pub(crate) routes: Arc<Routes>,
    /// Without it, devices have neither variables nor a JoinEUI.
    pub(crate) directory: Option<Arc<Directory>>,
    pub(crate) hand_over: HandOver,
    pub(crate) stopping: CancellationToken,
}

impl Intake {
    /// Hands an event over, then acknowledges it.
    pub(crate) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let api = self.directory.as_deref().map(Directory::api);
        let route = self.stopping.run_until_cancelled(self.routes.find(topic.application_id, api)).await;
        let is_done = match route {
            Some(Some(route)) => self.take(topic, &payload, route.receiver.as_ref()).await,
            Some(None) => {
                self.hand_over.traffic.without_route(topic.dev_eui, topic.application_id);
                true
            }
            None => false,
        };
        if is_done {
            ack.acknowledge().await;
        }
    }

    /// Hands an event over. Returns true if it may be acknowledged.
    async fn take(&self, topic: Topic<'_>, payload: &[u8], receiver: &dyn Receiver) -> bool {
        let Some(name) = topic.event() else { return true };
        let Report { event, deduplication_id } = match Report::read(name, topic.dev_eui, payload) {
            Ok(report) => report,
            Err(error) => {
                tracing::warn!(%topic, %error, "dropped an event that cannot be read");
                self.hand_over.traffic.malformed(name == "up", topic.dev_eui, error);
                return true;
            }
        };
        let Some(event) = event else {
            self.hand_over.traffic.ignored(topic.dev_eui, name);
            return true;
        };
        let key = self.hand_over.dedup.key_by_id(topic, &deduplication_id, payload);
        let complete = || self.complete(topic, event.clone());
        let outcome = self.hand_over.hand_over(receiver, (event.device().dev_eui, key), complete).await;
        if outcome == HandedOver::Withdrawn {
            tracing::warn!(%topic, "dropped an event of a device that belongs to another application than the topic's");
        }
        outcome.count(|result| count(name, result))
    }

    /// Adds what only the API knows; none if it says that the device belongs to another application.
    async fn complete(&self, topic: Topic<'_>, mut event: NetworkEvent) -> Option<NetworkEvent> {
        let Some(directory) = &self.directory else { return Some(event) };
        let dev_eui = topic.dev_eui.to_ascii_lowercase();
        let is_here = |known: &Device| *known.application_id == *topic.application_id;
        let known = match directory.device(&dev_eui).await {
            // It may have moved since.
            Ok(known) if !is_here(&known) => directory.device_now(&dev_eui).await,
            known => known,
        };
        match known {
            Ok(known) if !is_here(&known) => return None,
            Ok(known) => add(&mut event, &known),
            Err(error) => {
                event.device_mut().is_provisional = matches!(error, LookUpError::Unreachable { .. });
                if let NetworkEvent::Uplink(uplink) = &mut event {
                    uplink.warnings.push(format!("the variables of the device are not known: {error}"));
                }
            }
        }
        Some(event)
    }
}

fn add(event: &mut NetworkEvent, known: &Device) {
    // A device that does not join has none, and nobody else's is taken for it.
    event.device_mut().app_eui = Some(known.join_eui.parse().unwrap_or_default());
    if let NetworkEvent::Uplink(uplink) = event {
        uplink.variables = Some(known.variables.clone()).filter(|variables| !is_empty(variables));
    }
}

fn is_empty(object: &RawValue) -> bool {
    object.get() == "{}"
}

fn count(name: &str, result: &'static str) {
    metrics::received(name == "up", result);
}
