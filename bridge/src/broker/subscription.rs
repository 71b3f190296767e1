//! Receives messages, each once from the processes that share a subscription, and those of a device in their order.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use server::telemetry::Health;
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    delivery::Delivery,
    metrics,
    mqtt::{Endpoint, Group, Membership, Subscriber, Subscription},
    receive::{receive, report_connection},
    state_dir::StateDir,
};

/// The processes that share what matches.
const GROUP: &str = "airlock";
/// Maximum number of messages that are not acknowledged yet. So few that one application alone is not refused for
/// having too many in progress.
const IN_FLIGHT_MAX: u16 = 64;

/// A message of the broker.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// Where it was published.
    pub topic: String,
    /// Its content.
    pub payload: Bytes,
}

/// Deals with messages.
pub trait BrokerReceiver: Send + Sync {
    /// Whether a message is dealt with; otherwise it comes again. Those of a topic come one after the other.
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, bool>;
}

/// A subscription that is made again whenever the connection is lost.
pub struct BrokerSubscription {
    subscriber: Subscriber,
    stopping: CancellationToken,
    _state_dir: StateDir,
}

impl BrokerSubscription {
    pub(super) fn start(
        endpoint: Endpoint,
        filter: &str,
        receiver: impl BrokerReceiver + 'static,
        state_dir: StateDir,
    ) -> Self {
        let subscription = Subscription {
            filters: vec![filter.to_owned()],
            group: Some(Group { name: GROUP, membership: Membership::Shared }),
            in_flight_max: IN_FLIGHT_MAX,
            keeps_session: true,
            tries_mqtt5: true,
            on_granted: None,
        };
        let (receiver, stopping) = (Arc::new(receiver), CancellationToken::new());
        let stopped = stopping.clone();
        let work = move |delivery| -> BoxFuture<'static, ()> {
            let (receiver, stopped) = (receiver.clone(), stopped.clone());
            Box::pin(async move { deal_with(delivery, receiver.as_ref(), &stopped).await })
        };
        let subscriber = receive(endpoint, subscription, str::to_owned, work);
        Self { subscriber, stopping, _state_dir: state_dir }
    }

    /// Reports the connection as a health check.
    pub fn report_to(&self, health: &Health) {
        report_connection(health, "subscribed to the MQTT broker", &self.subscriber.subscribed());
    }

    /// Receives no more, and disconnects.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.subscriber.drain().await;
    }
}

/// Offers a message until it is dealt with, and acknowledges it then. What is not dealt with when the process stops
/// comes again on its next start.
async fn deal_with(delivery: Delivery, receiver: &dyn BrokerReceiver, stopping: &CancellationToken) {
    let Delivery { topic, payload, ack, .. } = delivery;
    let mut backoff = Backoff::new();
    while !receiver.receive(ReceivedMessage { topic: topic.clone(), payload: payload.clone() }).await {
        metrics::retried();
        if stopping.run_until_cancelled(backoff.pause()).await.is_none() {
            return;
        }
    }
    ack.acknowledge().await;
}
