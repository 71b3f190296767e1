//! MQTT: publishes messages on `<app_id>/devices/<dev_id>/<topic>` of the embedded broker.

mod fields;

use std::sync::Arc;

use bytes::Bytes;
use mqtt::{PACKET_BYTES_MAX, Publication, Published, Router};
use serde_json::value::RawValue;

use crate::{
    Error, metrics,
    output::{Event, Kept, Message, Output, OutputSettings},
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

impl Output for MqttOutput {
    fn publish(&self, message: Message) -> Kept {
        let app_id = &message.app_id;
        let wants_fields = |topic: &str| self.field_topics && self.router.has_subscribers_below(app_id, topic);
        let mut publications = publications(&message, wants_fields);
        let Some(whole) = publications.first() else { return Kept::at_once() };
        if !is_small(whole) {
            metrics::output_dropped(1);
            let instead = message.too_large(whole.payload.len(), PACKET_BYTES_MAX);
            let instead = instead.map(|instead| self::publications(&instead, |_| false)).unwrap_or_default();
            publications.splice(..1, instead);
        }
        publications.extend(publications.first().and_then(|whole| named_as_in_v2(&message, whole)));
        let published = self.router.publish(app_id, publications.into_iter().filter(is_small));
        if published.is_stored() { Kept::at_once() } else { Kept::when(stored(published)) }
    }
}

/// The same event under the name that v2's specification gives it. The broker hands it to those who name it only.
fn named_as_in_v2(message: &Message, whole: &Publication) -> Option<Publication> {
    let Message { app_id, dev_id, event } = message;
    let name = match event {
        Event::DownlinkScheduled(_) => "scheduled",
        Event::DownlinkSent(_) => "sent",
        _ => return None,
    };
    Some(Publication {
        topic: format!("{app_id}/devices/{dev_id}/events/downlink/{name}"),
        payload: whole.payload.clone(),
    })
}

async fn stored(published: Published) -> Result<(), Error> {
    let unavailable = |_| store::Error::Unavailable { what: "store messages for MQTT clients", source: None };
    Ok(published.stored().await.map_err(unavailable)?)
}

/// What is published for a message: it itself and, if `wants_fields` for its topic, each of its fields. Nothing if it
/// cannot be written, which is logged.
pub fn publications(message: &Message, wants_fields: impl FnOnce(&str) -> bool) -> Vec<Publication> {
    let Message { app_id, dev_id, event } = message;
    let topic = format!("{app_id}/devices/{dev_id}/{}", event.topic());
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

/// Whether clients can take it.
fn is_small(Publication { topic, payload }: &Publication) -> bool {
    topic.len() + payload.len() + HEADER_BYTES_MAX <= PACKET_BYTES_MAX
}
