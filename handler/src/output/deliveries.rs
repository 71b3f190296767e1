//! The fate of a message at each output, as far as outputs know: how it is told from others.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use api::rest::handler::{Delivery, DeliveryState};
use base64::{Engine, engine::general_purpose::STANDARD};
use history::{Kind, Record};
use outputs::RecentDelivery;
use serde_json::Value;
use server::usage::Usage;
use types::{AppId, DevId, Timestamp};

use super::{Event, Message, repeated::MARK};

/// Time before and after a message was recorded in which outputs may have taken it.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// The mark of messages that are sent again.
const AGAIN: &str = "is_retry";

/// A message that was published, and recorded.
pub struct PublishedMessage {
    /// Its application.
    pub app_id: AppId,
    /// The device that it is about.
    pub dev_id: DevId,
    /// The name of its event, such as `up` or `down/sent`.
    pub event: String,
    /// A moment before outputs took it.
    pub before: Timestamp,
    /// A moment after that.
    after: Timestamp,
    /// The message as it would be sent again; none if its device is gone.
    pub again: Option<Message>,
    /// Pays for looking for it.
    pub usage: Usage,
    identity: Identity,
    hash: u64,
}

/// The part that tells it from other messages of the device.
enum Identity {
    /// Its frame counter, its bytes in Base64, and when it was received. A correction has the same.
    Uplink(u64, String, String),
    /// The whole body, which another one at another time may have, too.
    Event(Value),
}

impl PublishedMessage {
    pub(crate) fn of(record: &Record, again: Option<Message>, usage: Usage) -> Self {
        let identity = match &record.kind {
            Kind::Uplink => {
                Identity::Uplink(record.counter.into(), STANDARD.encode(&record.payload), record.received.to_rfc3339())
            }
            Kind::Event(_) => Identity::Event(unmarked(&record.result).0),
        };
        let hash = match &record.kind {
            Kind::Uplink => hash(
                &record.dev_id,
                "up",
                &(record.counter, &*record.payload, record.received.to_rfc3339().as_str(), 0_u32),
            ),
            Kind::Event(name) => hash(&record.dev_id, name, members(&record.result)),
        };
        Self {
            app_id: record.app_id.clone(),
            dev_id: record.dev_id.clone(),
            event: record.kind.as_str().to_owned(),
            before: record.id.recorded().minus(TAKEN_WITHIN),
            after: record.id.recorded().plus(TAKEN_WITHIN),
            again,
            usage,
            identity,
            hash,
        }
    }

    /// Tells it from others that were delivered, as [`identity`] does.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The latest moment at which outputs took it; none if no other message is like it.
    pub(super) fn accepted_until(&self) -> Option<Timestamp> {
        matches!(self.identity, Identity::Event(_)).then_some(self.after)
    }

    /// Returns true if a message with this body, which outputs took at this time, is it, or is it again.
    pub fn is_it(&self, body: &str, taken: Timestamp) -> bool {
        let (body, is_again) = unmarked(body);
        match &self.identity {
            Identity::Event(event) => body == *event && (is_again || taken <= self.after),
            Identity::Uplink(counter, payload, time) => {
                body["counter"].as_u64().unwrap_or_default() == *counter
                    && body["payload_raw"].as_str().unwrap_or_default() == payload
                    && body["metadata"]["time"].as_str() == Some(time)
                    && body["revision"].as_u64().unwrap_or_default() == 0
            }
        }
    }
}

/// The delivery of a message to subscribers: it went to those that were there, and nothing is kept of it.
pub fn unkept(kind: &str, subscribers: usize) -> Delivery {
    Delivery { kind: kind.to_owned(), subscribers: Some(subscribers), ..Delivery::default() }
}

/// Tells a message from others of its application, of which outputs remember that they were delivered. It is the same if
/// the message is sent again.
pub fn identity(Message { dev_id, event, .. }: &Message, body: &str) -> u64 {
    match event {
        Event::Up(uplink) => {
            let payload = uplink.payload_raw.as_deref().unwrap_or_default();
            hash(dev_id, "up", &(uplink.counter, payload, uplink.metadata.time.as_str(), uplink.revision))
        }
        event => hash(dev_id, event.name(), members(body)),
    }
}

/// Another version of Rust may make others. Then what was accepted before is not known to be delivered.
fn hash(dev_id: &DevId, event: &str, rest: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    dev_id.as_str().hash(&mut hasher);
    event.hash(&mut hasher);
    rest.hash(&mut hasher);
    // Zero stands for none.
    hasher.finish().max(1)
}

/// The members of an event, without the mark that it is sent again.
fn members(body: &str) -> &str {
    let body = body.trim();
    let members = body.strip_prefix('{').and_then(|body| body.strip_suffix('}')).unwrap_or_default();
    members.strip_suffix(MARK).map_or(members, |rest| rest.strip_suffix(',').unwrap_or(rest)).trim()
}

/// The delivery of a message that an output confirmed.
pub fn delivered(kind: String, name: String, delivery: &RecentDelivery) -> Delivery {
    let RecentDelivery { at, status, attempts, duration, .. } = *delivery;
    Delivery {
        kind,
        name,
        state: DeliveryState::Delivered,
        attempts,
        delivered_at: Some(at),
        status,
        duration_us: Some(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
        ..Delivery::default()
    }
}

/// A body without the mark of messages that are sent again, and whether it had that.
fn unmarked(body: &str) -> (Value, bool) {
    let mut body: Value = serde_json::from_str(body).unwrap_or_default();
    let mark = body.as_object_mut().and_then(|members| members.remove(AGAIN));
    (body, mark.is_some())
}

#[cfg(test)]
mod tests {
    use types::DownlinkEvent;

    use super::*;
    use crate::output::RepeatedEvent;

    fn taken() -> Timestamp {
        Timestamp::from_millis(9000)
    }

    fn message(identity: Identity) -> PublishedMessage {
        PublishedMessage {
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            event: "up".to_owned(),
            before: Timestamp::from_millis(0),
            after: taken(),
            again: None,
            usage: Usage::default(),
            identity,
            hash: 0,
        }
    }

    #[test]
    fn an_uplink_is_told_from_others_by_counter_bytes_and_time() {
        let message = message(Identity::Uplink(7, "AQI=".to_owned(), "2026-11-22T16:45:55Z".to_owned()));
        let body = |counter: u64, payload: &str, time: &str| {
            let metadata = serde_json::json!({ "time": time });
            serde_json::json!({ "counter": counter, "payload_raw": payload, "is_retry": true, "metadata": metadata })
                .to_string()
        };
        assert!(message.is_it(&body(7, "AQI=", "2026-11-22T16:45:55Z"), taken()));
        assert!(!message.is_it(&body(8, "AQI=", "2026-11-22T16:45:55Z"), taken()));
        assert!(!message.is_it(&body(7, "AQM=", "2026-11-22T16:45:55Z"), taken()));
        assert!(!message.is_it(&body(7, "AQI=", "2026-11-22T16:45:56Z"), taken()));
        let correction = body(7, "AQI=", "2026-11-22T16:45:55Z").replacen('{', r#"{"revision":1,"#, 1);
        assert!(!message.is_it(&correction, taken()) && !message.is_it("null", taken()));
    }

    #[test]
    fn an_event_is_told_from_others_by_its_body_and_time() {
        let (no, again) = (r#"{"error":"no"}"#, r#"{ "error": "no", "is_retry": true }"#);
        let message = message(Identity::Event(unmarked(no).0));
        assert!(message.is_it(no, taken()) && message.is_it(again, taken()));
        assert!(!message.is_it(r#"{"error":"yes"}"#, taken()) && !message.is_it("", taken()));
        let later = Timestamp::from_millis(9001);
        assert!(!message.is_it(no, later), "the next uplink failed in the same way");
        assert!(message.is_it(again, later), "it was sent again");
    }

    #[test]
    fn an_event_has_the_same_identity_when_it_is_sent_again() {
        let message = |event| Message { app_id: "my-app".parse().unwrap(), dev_id: "dev-1".parse().unwrap(), event };
        let of = |message: &Message| identity(message, &serde_json::to_string(&message.event).unwrap());
        let acknowledged = || Event::DownlinkAck(DownlinkEvent::default());
        for (event, recorded) in
            [(acknowledged(), serde_json::to_string(&acknowledged()).unwrap()), (Event::Delete, String::new())]
        {
            let again = Event::Repeated(RepeatedEvent::new(event.name(), &recorded).unwrap());
            let published = hash(&"dev-1".parse().unwrap(), event.name(), members(&recorded));
            assert_eq!(of(&message(event)), published, "{recorded}");
            assert_eq!(of(&message(again)), published, "{recorded}");
        }
        assert_ne!(of(&message(acknowledged())), of(&message(Event::DownlinkScheduled(DownlinkEvent::default()))));
        assert_eq!(members(r#"{"a":{}}"#), r#""a":{}"#);
    }
}
