//! Turns a record into the message to send again, if there is one.

use history::{Kind as RecordKind, Outcome, Record, RecordId};
use serde_json::value::RawValue;
use types::DevicePath;

use crate::{
    Error,
    output::{Event, Message, RepeatedEvent},
    payload::{Decoded, Validity},
    registry::device::Device,
    uplink::{Uplinks, message::message, stored::whole_payload},
};

/// A record, and the result of preparing it.
pub(super) struct Prepared {
    pub(super) id: RecordId,
    pub(super) fate: Fate,
}

/// Result of preparing a record.
pub(super) enum Fate {
    /// It is sent in this form.
    Sent(Box<Message>),
    /// Its device is gone, so it is not sent.
    DeviceGone,
    /// It was not published when it came, because its validator refused it.
    NeverPublished,
    /// Its content cannot be parsed.
    Unreadable,
}

impl Prepared {
    pub(super) fn message(&self) -> Option<&Message> {
        match &self.fate {
            Fate::Sent(message) => Some(message),
            _ => None,
        }
    }
}

/// Makes the message of a record, with the fields of its newest correction.
pub(super) async fn prepare(uplinks: &Uplinks, record: Record, newest: Option<Record>) -> Result<Prepared, Error> {
    let id = record.id;
    let path = DevicePath { app_id: &record.app_id, dev_id: &record.dev_id };
    let Some(device) = uplinks.devices.find(path).await? else {
        return Ok(Prepared { id, fate: Fate::DeviceGone });
    };
    let event = match &record.kind {
        RecordKind::Uplink if newest.as_ref().unwrap_or(&record).outcome == Outcome::Invalid => {
            return Ok(Prepared { id, fate: Fate::NeverPublished });
        }
        RecordKind::Uplink => Some(uplink(&device, &record, newest.as_ref(), uplinks.shows_version)),
        RecordKind::Event(name) => RepeatedEvent::new(name, &record.result).map(Event::Repeated),
    };
    let (app_id, dev_id) = (record.app_id, record.dev_id);
    let sent = |event| Fate::Sent(Box::new(Message { app_id, dev_id, event }));
    Ok(Prepared { id, fate: event.map_or(Fate::Unreadable, sent) })
}

fn uplink(device: &Device, record: &Record, newest: Option<&Record>, shows_version: bool) -> Event {
    let newest = newest.unwrap_or(record);
    let validity = if newest.outcome == Outcome::Decoded { Validity::Valid } else { Validity::NotConverted };
    let (fields, normalized) = (json(&newest.result), json(&newest.normalized));
    let decoded = Decoded { fields, normalized, validity, ..Decoded::default() };
    let mut uplink = message(device, whole_payload(record), decoded);
    uplink.is_retry = true;
    uplink.revision = newest.revision;
    uplink.corrects = newest.corrects.map(|id| id.to_string()).unwrap_or_default();
    uplink.metadata.functions_version = newest.version.filter(|_| shows_version).unwrap_or_default();
    Event::Up(Box::new(uplink))
}

/// None if it is empty.
fn json(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}
