//! A broker that others run: messages of the handler go there, and downlinks come from there.

use std::{
    future::ready,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use api::rest::handler::Delivery;
use async_trait::async_trait;
use bridge::broker::{
    Attempt, BrokerConnection, BrokerMessage, BrokerPublisher, BrokerReceiver, BrokerSubscription, Offline,
    ReceivedMessage, Unconfirmed,
};
use futures::future::BoxFuture;
use handler::{
    Error,
    output::{
        Event, Message, Output, PublishReceipt, PublishedMessage, Receipt, Receivers, Refused, Room, delivered,
        identity, mqtt::publications_below, unkept,
    },
};
use mqtt::{DownlinkRefusal, DownlinkSink, Offer, Publication, PublishedDownlink};
use outputs::Confirmed;
use server::telemetry::Health;
use types::{AppId, Clock, DevId, Timestamp};

use super::downlink_leases::DownlinkLeases;
use crate::serve::context::Context;

/// Filter of the topics that applications publish downlinks on.
const DOWNLINKS: &str = "+/devices/+/down";

/// A broker to which messages go.
pub(super) struct ExternalBroker {
    connection: BrokerConnection,
    publisher: Arc<BrokerPublisher>,
    announced_address: String,
    field_topics: bool,
    leases: DownlinkLeases,
    receives_downlinks: bool,
    health: Health,
    confirmed: Arc<Confirmed>,
    clock: Arc<dyn Clock>,
}

/// The same when downlinks come from it.
pub(super) struct SubscribedBroker {
    publisher: Arc<BrokerPublisher>,
    subscription: BrokerSubscription,
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
        let (leases, receives_downlinks) = (DownlinkLeases::new(context), settings.receives_downlinks);
        let (delivery, owners) = (&context.settings.output.delivery, context.owners.clone());
        let confirmed = Arc::new(Confirmed::new(delivery, owners, RECEIVER));
        let clock = context.clock.clone();
        Ok(Some(Self {
            connection,
            publisher,
            announced_address,
            field_topics,
            leases,
            receives_downlinks,
            health,
            confirmed,
            clock,
        }))
    }

    /// Returns the address at which applications connect.
    pub(super) fn address(&self) -> &str {
        &self.announced_address
    }

    /// Returns the output that publishes on the broker.
    pub(super) fn output(&self) -> Arc<dyn Output> {
        Arc::new(BrokerOutput {
            publisher: self.publisher.clone(),
            field_topics: self.field_topics,
            confirmed: self.confirmed.clone(),
            clock: self.clock.clone(),
        })
    }

    /// Receives downlinks, and shares them with other handlers, or takes turns with them. A handler that does not
    /// receive them may have done so before, so it leaves them to others.
    pub(super) fn subscribe(self, downlinks: Arc<dyn DownlinkSink>) -> SubscribedBroker {
        let Self { connection, publisher, leases, health, .. } = self;
        let intake = DownlinkIntake { downlinks, has_others: leases.are_shared() };
        let subscription = match self.receives_downlinks {
            true => connection.subscribe(DOWNLINKS, intake, leases),
            false => connection.leave(DOWNLINKS, intake),
        };
        subscription.report_to(&health);
        SubscribedBroker { publisher, subscription }
    }
}

impl SubscribedBroker {
    /// The two directions, which stop at different times: the last downlinks lead to messages.
    pub(super) fn split(self) -> (Arc<BrokerPublisher>, BrokerSubscription) {
        (self.publisher, self.subscription)
    }
}

/// The broker's name in reports.
const RECEIVER: &str = "broker";

/// Publishes messages in the broker, each as one that it confirms.
struct BrokerOutput {
    publisher: Arc<BrokerPublisher>,
    field_topics: bool,
    /// The newest uplinks that the broker has confirmed. Nobody waits for the confirmation of many events.
    confirmed: Arc<Confirmed>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Output for BrokerOutput {
    fn publish(&self, message: Message) -> PublishReceipt {
        // Who has sent an uplink sends it again. Nobody repeats an event.
        let offline = if matches!(message.event, Event::Up(_)) { Offline::Refuse } else { Offline::Wait };
        self.publish_below("", &message, offline)
    }

    async fn room(&self, _messages: &[Message], to: &Receivers) -> Result<Room, Error> {
        let room = match (to.mqtt_prefix(), self.publisher.is_connected()) {
            (None, _) => Room::default(),
            (Some(_), false) => Room { full: [RECEIVER.to_owned()].into(), ..Room::default() },
            // What waits there is the broker's.
            (Some(_), true) => Room { receivers: 1, messages: usize::MAX, bytes: usize::MAX, ..Room::default() },
        };
        Ok(room)
    }

    async fn publish_again(&self, messages: &[Message], to: &Receivers) -> Result<Vec<Receipt>, Error> {
        let Some(prefix) = to.mqtt_prefix() else { return Ok(vec![Receipt::default(); messages.len()]) };
        let kept: Vec<_> =
            messages.iter().map(|message| self.publish_below(prefix, message, Offline::Refuse)).collect();
        let mut receipts = Vec::with_capacity(kept.len());
        for kept in kept {
            // Others have taken them by now, and would get them twice if this ended here.
            receipts.push(match kept.wait().await {
                Ok(()) => Receipt { taken: 1, ..Receipt::default() },
                Err(error) => {
                    let refused = vec![Refused { receiver: RECEIVER.to_owned(), reason: error.to_string() }];
                    Receipt { refused, ..Receipt::default() }
                }
            });
        }
        Ok(receipts)
    }

    async fn deliveries(&self, message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        let confirmed = self.confirmed.find(&message.app_id, message.hash(), message.before).await;
        Ok(vec![match confirmed {
            Some(delivery) => delivered(RECEIVER.to_owned(), String::new(), &delivery),
            None => unkept(RECEIVER, self.publisher.is_connected().into()),
        }])
    }
}

impl BrokerOutput {
    /// The part of a message that is remembered once it is confirmed; none for events.
    fn note(&self, message: &Message) -> Option<Note> {
        let Message { app_id, dev_id, event: Event::Up(_) } = message else { return None };
        Some(Note {
            confirmed: self.confirmed.clone(),
            clock: self.clock.clone(),
            app_id: app_id.clone(),
            dev_id: dev_id.clone(),
            // Of an uplink it does not depend on the body.
            identity: identity(message, ""),
            accepted: self.clock.now(),
            began: Instant::now(),
        })
    }

    fn publish_below(&self, prefix: &str, message: &Message, offline: Offline) -> PublishReceipt {
        // Whether anybody subscribes to single fields is known only to the broker.
        let messages: Vec<_> = publications_below(prefix, message, |_| self.field_topics)
            .into_iter()
            .map(|Publication { topic, payload }| BrokerMessage { topic, payload })
            .collect();
        let device = format!("{}/{}", message.app_id, message.dev_id);
        let kind = format!("{} {}", message.app_id, message.event.topic());
        match self.publisher.publish(&device, kind, messages, offline) {
            Ok(confirmation) => {
                // What is sent again elsewhere is no delivery.
                let note = self.note(message).filter(|_| prefix.is_empty());
                PublishReceipt::when(async {
                    // It is dropped only when the process ends.
                    let confirmed = confirmation.await.unwrap_or(Err(Unconfirmed::NoAnswer));
                    confirmed.map_err(|unconfirmed| unpublished(&unconfirmed))?;
                    if let Some(note) = note {
                        note.record();
                    }
                    Ok(())
                })
            }
            Err(unconfirmed) => PublishReceipt::when(ready(Err(unpublished(&unconfirmed)))),
        }
    }
}

/// An uplink that waits for its confirmation.
struct Note {
    confirmed: Arc<Confirmed>,
    clock: Arc<dyn Clock>,
    app_id: AppId,
    dev_id: DevId,
    identity: u64,
    accepted: Timestamp,
    began: Instant,
}

impl Note {
    fn record(self) {
        let Self { confirmed, clock, app_id, dev_id, identity, accepted, began } = self;
        confirmed.record(&app_id, (&dev_id, "up", identity), accepted, (clock.now(), began.elapsed()));
    }
}

fn unpublished(unconfirmed: &Unconfirmed) -> Error {
    match unconfirmed {
        Unconfirmed::Impossible(reason) => Error::Unpublishable(reason.clone()),
        _ => Error::Unpublished(unconfirmed.to_string()),
    }
}

/// Hands downlinks to the handler.
struct DownlinkIntake {
    downlinks: Arc<dyn DownlinkSink>,
    /// True if other handlers may receive downlinks, too. One alone receives them in their order.
    has_others: bool,
}

impl BrokerReceiver for DownlinkIntake {
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt> {
        let ReceivedMessage { topic, payload, is_late, is_last_attempt } = message;
        Box::pin(async move {
            let Some((app_id, dev_id)) = downlink(&topic) else {
                tracing::debug!(topic, "dropped a downlink: its topic names no application or device");
                return Attempt::Done;
            };
            let offer = if is_last_attempt { Offer::Last } else { Offer::Again };
            let is_late = is_late && self.has_others;
            let downlink = PublishedDownlink { app_id, dev_id, body: payload, is_late, offer };
            // The broker has told its subscribers.
            match self.downlinks.accept(downlink, Box::new(|| ())).await {
                Err(DownlinkRefusal::Failed) => Attempt::Failed,
                Err(refusal) if refusal.may_succeed_later() => Attempt::Unavailable,
                _ => Attempt::Done,
            }
        })
    }
}

/// The application and device of a topic.
fn downlink(topic: &str) -> Option<(AppId, DevId)> {
    let (app_id, rest) = topic.split_once("/devices/")?;
    let dev_id = rest.strip_suffix("/down")?;
    Some((app_id.parse().ok()?, dev_id.parse().ok()?))
}
