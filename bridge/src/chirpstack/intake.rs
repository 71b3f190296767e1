//! Events of ChirpStack to the receivers of their applications.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use types::{NetworkDevice, NetworkEvent};

use super::{
    directory::{Device, Directory},
    report::Report,
    routes::Routes,
    topic::Topic,
};
use crate::{dedup::Dedup, delivery::Delivery, hand_over::HandOver, metrics, network::Receiver};

/// Hands events over to the receivers of their applications.
pub(super) struct Intake {
    pub(super) routes: Arc<Routes>,
    /// Without it, devices have neither variables nor a JoinEUI.
    pub(super) directory: Option<Arc<Directory>>,
    pub(super) dedup: Dedup,
    pub(super) hand_over: HandOver,
    pub(super) stopping: CancellationToken,
}

impl Intake {
    /// Hands an event over, then acknowledges it.
    pub(super) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, "") else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let api = self.directory.as_deref().map(Directory::api);
        let route = self.stopping.run_until_cancelled(self.routes.find(topic.application_id, api)).await;
        let is_done = match route {
            Some(Some(route)) => self.take(topic, &payload, route.receiver.as_ref()).await,
            Some(None) => {
                metrics::event("ignored");
                true
            }
            None => false,
        };
        if is_done {
            ack.acknowledge().await;
        }
    }

    /// Whether the event may be acknowledged.
    async fn take(&self, topic: Topic<'_>, payload: &[u8], receiver: &dyn Receiver) -> bool {
        let Some(name) = topic.event() else { return true };
        let Report { event, deduplication_id } = match Report::read(name, topic.dev_eui, payload) {
            Ok(report) => report,
            Err(error) => {
                tracing::warn!(%topic, %error, "dropped an event that cannot be read");
                count(name, "malformed");
                return true;
            }
        };
        let Some(mut event) = event else {
            metrics::event("ignored");
            return true;
        };
        let key = match deduplication_id.as_str() {
            "" => self.dedup.key(&topic.to_string(), payload),
            id => self.dedup.key(&topic.to_string(), id),
        };
        if self.dedup.contains(key) {
            count(name, "duplicate");
            return true;
        }
        if !self.complete(topic, &mut event).await {
            tracing::warn!(%topic, "dropped an event of a device that belongs to another application than the topic's");
            metrics::dropped("foreign");
            return true;
        }
        let is_done = self.hand_over.hand_over(receiver, device(&mut event).dev_eui, event).await;
        if is_done {
            self.dedup.add(key);
            count(name, "forwarded");
        }
        is_done
    }

    /// Adds what only the API knows; false if it says that the device belongs to another application.
    async fn complete(&self, topic: Topic<'_>, event: &mut NetworkEvent) -> bool {
        let Some(directory) = &self.directory else { return true };
        match directory.device(&topic.dev_eui.to_ascii_lowercase()).await {
            Ok(known) if *known.application_id != *topic.application_id => return false,
            Ok(known) => add(event, &known),
            Err(error) => {
                if let NetworkEvent::Uplink(uplink) = event {
                    uplink.warnings.push(format!("the variables of the device are not known: {error}"));
                }
            }
        }
        true
    }
}

fn add(event: &mut NetworkEvent, known: &Device) {
    // A device that does not join has none, and nobody else's is taken for it.
    device(event).app_eui = known.join_eui.parse().unwrap_or_default();
    if let NetworkEvent::Uplink(uplink) = event {
        uplink.variables = Some(known.variables.clone()).filter(|variables| !is_empty(variables));
    }
}

fn is_empty(object: &RawValue) -> bool {
    object.get() == "{}"
}

fn device(event: &mut NetworkEvent) -> &mut NetworkDevice {
    match event {
        NetworkEvent::Uplink(uplink) => &mut uplink.device,
        NetworkEvent::Join(join) => &mut join.device,
        NetworkEvent::Downlink(report) => &mut report.device,
    }
}

fn count(name: &str, result: &'static str) {
    if name == "up" {
        metrics::uplink(result);
    } else {
        metrics::event(result);
    }
}
