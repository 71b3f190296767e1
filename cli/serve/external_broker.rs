//! A broker that others run: messages of the handler go there, and downlinks come from there.

use std::{future::ready, sync::Arc, time::Duration};

use anyhow::Context as _;
use bridge::broker::{
    BrokerConnection, BrokerMessage, BrokerPublisher, BrokerReceiver, BrokerSubscription, ReceivedMessage, Unconfirmed,
};
use futures::future::BoxFuture;
use handler::{
    Error,
    output::{Kept, Message, Output, mqtt::publications},
};
use mqtt::{DownlinkSink, Publication, PublishedDownlink};
use server::telemetry::Health;

use super::context::Context;

/// What applications publish downlinks on.
const DOWNLINKS: &str = "+/devices/+/down";

/// A broker to which messages go.
pub(super) struct ExternalBroker {
    connection: BrokerConnection,
    publisher: Arc<BrokerPublisher>,
    announced_address: String,
    field_topics: bool,
    receives_downlinks: bool,
    health: Health,
}

/// The same when downlinks come from it.
pub(super) struct SubscribedBroker {
    publisher: Arc<BrokerPublisher>,
    /// None if this handler does not receive them.
    subscription: Option<BrokerSubscription>,
}

impl ExternalBroker {
    /// Checks the settings, and connects in the background; none if they name no broker.
    pub(super) fn connect(context: &Context) -> anyhow::Result<Option<Self>> {
        let settings = &context.settings.external_broker;
        if settings.mqtt.url.is_empty() {
            return Ok(None);
        }
        let state_dir = context.settings.data_dir.join("external-broker");
        let connection =
            BrokerConnection::new(&settings.mqtt, "external_broker.mqtt", state_dir, context.random.as_ref())
                .context("cannot use the MQTT broker of `external_broker`")?;
        let publisher = Arc::new(connection.publish(Duration::from_millis(settings.confirm_timeout_ms)));
        publisher.report_to(&context.health);
        let announced_address = settings.announced_address.clone().unwrap_or_else(|| connection.address());
        let (field_topics, health) = (context.settings.output.field_topics, context.health.clone());
        let receives_downlinks = settings.receives_downlinks;
        Ok(Some(Self { connection, publisher, announced_address, field_topics, receives_downlinks, health }))
    }

    /// Where applications connect.
    pub(super) fn address(&self) -> &str {
        &self.announced_address
    }

    /// What publishes there.
    pub(super) fn output(&self) -> Arc<dyn Output> {
        Arc::new(BrokerOutput { publisher: self.publisher.clone(), field_topics: self.field_topics })
    }

    /// Receives downlinks, and shares them with other handlers.
    pub(super) fn subscribe(self, downlinks: Arc<dyn DownlinkSink>) -> SubscribedBroker {
        let subscription = self.receives_downlinks.then(|| {
            let subscription = self.connection.subscribe(DOWNLINKS, DownlinkIntake(downlinks));
            subscription.report_to(&self.health);
            subscription
        });
        SubscribedBroker { publisher: self.publisher, subscription }
    }
}

impl SubscribedBroker {
    /// The two directions, which stop at different times: the last downlinks lead to messages.
    pub(super) fn split(self) -> (Arc<BrokerPublisher>, Option<BrokerSubscription>) {
        (self.publisher, self.subscription)
    }
}

/// Publishes messages in the broker, each as one that it confirms.
struct BrokerOutput {
    publisher: Arc<BrokerPublisher>,
    field_topics: bool,
}

impl Output for BrokerOutput {
    fn publish(&self, message: Message) -> Kept {
        // Whether anybody subscribes to single fields is known only to the broker.
        let messages: Vec<_> = publications(&message, |_| self.field_topics)
            .into_iter()
            .map(|Publication { topic, payload }| BrokerMessage { topic, payload })
            .collect();
        let device = format!("{}/{}", message.app_id, message.dev_id);
        let kind = format!("{} {}", message.app_id, message.event.topic());
        match self.publisher.publish(&device, kind, messages) {
            Ok(confirmation) => Kept::when(async {
                // It is dropped only when the process ends.
                confirmation
                    .await
                    .unwrap_or(Err(Unconfirmed::NoAnswer))
                    .map_err(|unconfirmed| unpublished(&unconfirmed))
            }),
            Err(unconfirmed) => Kept::when(ready(Err(unpublished(&unconfirmed)))),
        }
    }
}

fn unpublished(unconfirmed: &Unconfirmed) -> Error {
    Error::Unpublished(unconfirmed.to_string())
}

/// Hands downlinks to the handler.
struct DownlinkIntake(Arc<dyn DownlinkSink>);

impl BrokerReceiver for DownlinkIntake {
    fn receive(&self, ReceivedMessage { topic, payload }: ReceivedMessage) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match downlink(&topic) {
                // An error means that it may be accepted later.
                Some((app_id, dev_id)) => {
                    self.0.accept(PublishedDownlink { app_id, dev_id, body: payload }).await.is_ok()
                }
                None => {
                    tracing::debug!(topic, "dropped a downlink: its topic names no application or device");
                    true
                }
            }
        })
    }
}

/// The application and device of a topic.
fn downlink(topic: &str) -> Option<(types::AppId, types::DevId)> {
    let (app_id, rest) = topic.split_once("/devices/")?;
    let dev_id = rest.strip_suffix("/down")?;
    Some((app_id.parse().ok()?, dev_id.parse().ok()?))
}
