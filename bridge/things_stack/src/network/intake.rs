//! Messages of The Things Stack to the receivers of their applications.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bridge::{
    codec::single_flight::LookUpError,
    hand_over::{HandOver, network::Receiver},
    metrics,
};
use link::delivery::Delivery;
use types::NetworkEvent;

use super::{
    super::application::{Application, topic::Topic},
    devices::Devices,
    event::{IdentifiedEvent, read},
};

/// Hands messages over to the receivers of their applications.
pub(super) struct Intake {
    /// By the id and tenant of the application.
    pub(super) receivers: HashMap<String, (Arc<Application>, Arc<dyn Receiver>)>,
    pub(super) devices: Arc<Devices>,
    pub(super) hand_over: HandOver,
}

impl Intake {
    /// Hands a message over, then acknowledges it.
    pub(super) async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        let topic = Topic::parse(&topic, "");
        let found = topic.and_then(|topic| Some((topic, self.receivers.get(topic.application)?)));
        // The filters let no others through.
        let Some((topic, (application, receiver))) = found else { return ack.acknowledge().await };
        if self.take(topic, &payload, application, receiver.as_ref()).await {
            ack.acknowledge().await;
        }
    }

    /// Hands a message over. Returns true if its source may forget it.
    async fn take(&self, topic: Topic<'_>, payload: &[u8], application: &Application, receiver: &dyn Receiver) -> bool {
        let IdentifiedEvent { event, identity } = match read(topic, payload) {
            Ok(Some(said)) => said,
            Ok(None) => {
                self.hand_over.traffic.ignored(topic.device, topic.rest);
                return true;
            }
            Err(error) => {
                tracing::warn!(%topic, %error, "dropped a message that cannot be read");
                self.hand_over.traffic.malformed(topic.rest == "up", topic.device, error);
                return true;
            }
        };
        let dev_eui = event.device().dev_eui;
        let euis = (event.device().app_eui.unwrap_or_default(), dev_eui);
        self.devices.heard(application, euis, topic.device);
        let key = self.hand_over.dedup.key_by_id(topic, &identity, payload);
        // Only a device that is not registered yet needs what the API says.
        let is_first = AtomicBool::new(true);
        let complete = || self.complete(topic, application, event.clone(), is_first.swap(false, Ordering::Relaxed));
        self.hand_over.hand_over(receiver, (dev_eui, key), complete).await.count(|result| count(topic, result))
    }

    /// Adds what only the API knows, unless `is_provisional` will do.
    async fn complete(
        &self,
        topic: Topic<'_>,
        application: &Application,
        mut event: NetworkEvent,
        is_provisional: bool,
    ) -> Option<NetworkEvent> {
        if matches!(event, NetworkEvent::Downlink(_)) {
            return Some(event);
        }
        let device = event.device_mut();
        if is_provisional {
            device.is_provisional = true;
            return Some(event);
        }
        match self.devices.attributes(application, topic.device).await {
            Ok(attributes) => device.tags.clone_from(&attributes),
            Err(error) => device.is_provisional = matches!(error, LookUpError::Unreachable { .. }),
        }
        Some(event)
    }
}

fn count(topic: Topic<'_>, result: &'static str) {
    metrics::received(topic.rest == "up", result);
}
