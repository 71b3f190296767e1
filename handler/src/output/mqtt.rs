//! MQTT: publishes messages on `<app_id>/devices/<dev_id>/<topic>` of the embedded broker.

mod fields;

use std::{collections::BTreeSet, sync::Arc};

use api::rest::handler::Delivery;
use async_trait::async_trait;
use bytes::Bytes;
use mqtt::{PACKET_BYTES_MAX, Publication, Published, Router, SpareRoom};
use serde_json::value::RawValue;

use crate::{
    Error,
    output::{
        Event, Message, Output, OutputSettings, PublishReceipt, PublishedMessage, Receipt, Receivers, Refused, Room,
        unkept,
    },
    status::metrics,
};

/// Room for the header of a PUBLISH packet, besides topic and body.
const HEADER_BYTES_MAX: usize = 16;

/// Hands messages to the embedded broker.
pub struct MqttOutput {
    router: Arc<Router>,
    field_topics: bool,
}

impl MqttOutput {
    /// An output to the clients of `router`.
    pub fn new(router: Arc<Router>, settings: &OutputSettings) -> Self {
        if settings.queue_messages_max.is_some() {
            tracing::warn!(
                "the setting output.queue_messages_max has no effect any more: remove it; messages reach the broker \
                 without a queue"
            );
        }
        Self { router, field_topics: settings.field_topics }
    }
}

#[async_trait]
impl Output for MqttOutput {
    fn publish(&self, message: Message) -> PublishReceipt {
        let app_id = &message.app_id;
        let wants_fields = |topic: &str| self.field_topics && self.router.has_subscribers_below(app_id, topic);
        let mut publications = publications(&message, wants_fields);
        let Some(whole) = publications.first() else { return PublishReceipt::at_once() };
        if !is_small(whole) {
            metrics::output_dropped(1);
            let instead = message.too_large(whole.payload.len(), PACKET_BYTES_MAX);
            let instead = instead.map(|instead| self::publications(&instead, |_| false)).unwrap_or_default();
            publications.splice(..1, instead);
        }
        publications.extend(publications.first().and_then(|whole| named_as_in_v2(&message, whole)));
        let published = self.router.publish(app_id, publications.into_iter().filter(is_small));
        if published.is_stored() { PublishReceipt::at_once() } else { PublishReceipt::when(stored(published)) }
    }

    async fn room(&self, messages: &[Message], to: &Receivers) -> Result<Room, Error> {
        let (Some(prefix), Some(first)) = (to.mqtt_prefix(), messages.first()) else {
            return Ok(Room::default());
        };
        let each: Vec<_> = messages.iter().map(|message| self.publications_again(message, prefix)).collect();
        // A session may get all that is published of a message, or nothing of it.
        let most = each.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let topics = each.iter().flatten().map(|publication| publication.topic.as_str());
        let SpareRoom { sessions, messages, bytes, full } = self.router.spare(&first.app_id, topics, most);
        let full = full.iter().map(|id| session(id)).collect();
        Ok(Room { receivers: sessions, messages: (messages / most).max(1), bytes, full })
    }

    async fn publish_again(&self, messages: &[Message], to: &Receivers) -> Result<Vec<Receipt>, Error> {
        let Some(prefix) = to.mqtt_prefix() else { return Ok(vec![Receipt::default(); messages.len()]) };
        let sent: Vec<_> = messages.iter().map(|message| self.send(message, prefix)).collect();
        let mut receipts = Vec::with_capacity(sent.len());
        for (receipt, waiting) in sent {
            for published in waiting {
                stored(published).await?;
            }
            receipts.push(receipt);
        }
        Ok(receipts)
    }

    async fn deliveries(&self, message: &PublishedMessage) -> Result<Vec<Delivery>, Error> {
        let publications = message.again.as_ref().map(|again| self.publications_again(again, "")).unwrap_or_default();
        let topics = publications.iter().map(|publication| publication.topic.as_str());
        let SpareRoom { sessions, full, .. } = self.router.spare(&message.app_id, topics, 1);
        Ok(vec![unkept("mqtt", sessions + full.len())])
    }
}

impl MqttOutput {
    /// Publishes a message again below these levels; the first publication is that of all of it.
    fn send(&self, message: &Message, prefix: &str) -> (Receipt, Vec<Published>) {
        let app_id = &message.app_id;
        let publications = self.publications_again(message, prefix);
        if publications.first().is_none_or(|whole| !is_small(whole)) {
            let refused = vec![Refused::too_large("mqtt")];
            return (Receipt { refused, ..Receipt::default() }, Vec::new());
        }
        let (mut taken, mut full, mut waiting) = (0, BTreeSet::new(), Vec::new());
        for publication in publications.into_iter().filter(is_small) {
            let (recipients, published) = self.router.publish_behind(app_id, publication);
            taken += recipients.taken;
            full.extend(recipients.full);
            waiting.push(published);
        }
        (Receipt { taken, refused: full.iter().map(|id| Refused::full(session(id))).collect() }, waiting)
    }

    /// Returns the publications below these levels when a message is sent again; the whole message first.
    fn publications_again(&self, message: &Message, prefix: &str) -> Vec<Publication> {
        let wants_fields = |topic: &str| self.field_topics && self.router.has_subscribers_below(&message.app_id, topic);
        let mut publications = publications_below(prefix, message, wants_fields);
        if prefix.is_empty() {
            publications.extend(publications.first().and_then(|whole| named_as_in_v2(message, whole)));
        }
        publications
    }
}

/// Returns the name of a session in reports. Its id is a hash.
fn session(id: &str) -> String {
    format!("mqtt session {id}")
}

/// The same event under the name that v2's specification gives it. The broker hands it to those who name it only.
fn named_as_in_v2(message: &Message, whole: &Publication) -> Option<Publication> {
    let name = match message.event.topic() {
        "events/down/scheduled" => "scheduled",
        "events/down/sent" => "sent",
        _ => return None,
    };
    let device = whole.topic.strip_suffix(message.event.topic())?;
    Some(Publication { topic: format!("{device}events/downlink/{name}"), payload: whole.payload.clone() })
}

async fn stored(published: Published) -> Result<(), Error> {
    let unavailable = |_| store::Error::Unavailable { what: "store messages for MQTT clients", source: None };
    Ok(published.stored().await.map_err(unavailable)?)
}

/// Returns the publications of a message: the whole and, if `wants_fields` for its topic, each field. None if it
/// cannot be serialized, which is logged.
fn publications(message: &Message, wants_fields: impl FnOnce(&str) -> bool) -> Vec<Publication> {
    publications_below("", message, wants_fields)
}

/// The same on topics with these levels between application and `devices`; none if they are empty.
pub fn publications_below(
    prefix: &str,
    message: &Message,
    wants_fields: impl FnOnce(&str) -> bool,
) -> Vec<Publication> {
    let Message { app_id, event, .. } = message;
    let topic = topic(prefix, message);
    let fields = match event {
        Event::Up(uplink) => uplink.payload_fields.as_deref().filter(|_| wants_fields(&topic)),
        _ => None,
    };
    write(&topic, event, fields).unwrap_or_else(|error| {
        tracing::error!(%app_id, %error, topic = event.topic(), "cannot serialize a message");
        metrics::output_dropped(1);
        Vec::new()
    })
}

fn topic(prefix: &str, Message { app_id, dev_id, event }: &Message) -> String {
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{app_id}/{prefix}{slash}devices/{dev_id}/{}", event.topic())
}

fn write(topic: &str, event: &Event, fields: Option<&RawValue>) -> serde_json::Result<Vec<Publication>> {
    let payload = Bytes::from(serde_json::to_vec(event)?);
    let mut publications = vec![Publication { topic: topic.to_owned(), payload }];
    if let Some(fields) = fields {
        fields::for_each(topic, fields, &mut |topic, value: &str| {
            publications.push(Publication { topic, payload: Bytes::from(value.to_owned()) });
        })?;
    }
    Ok(publications)
}

/// Returns true if a publication fits into the packets that clients take.
fn is_small(Publication { topic, payload }: &Publication) -> bool {
    topic.len() + payload.len() + HEADER_BYTES_MAX <= PACKET_BYTES_MAX
}
