//! Messages, as they are handed over and as they are stored.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use server::ledger::Owner;
use types::{AppId, DevId, Timestamp};

/// All events, in the words of the MQTT topics.
pub const EVENTS: [&str; 12] = [
    "up",
    "up/errors",
    "activations",
    "activations/errors",
    "down/scheduled",
    "down/sent",
    "down/acks",
    "down/errors",
    "create",
    "update",
    "delete",
    "silent",
];
/// Maximum size of the body of a message. One that is larger is dropped.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// The event by which a destination learns how many messages it will not get.
pub(crate) const DROPPED: &str = "dropped";

/// A message of an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputMessage {
    /// The device that it is about; none if it is about the destination itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev_id: Option<DevId>,
    /// Event that it reports, in the words of the MQTT topics: `up`, `down/sent`, `activations`.
    pub event: String,
    /// Time when it was accepted.
    pub time: Timestamp,
    /// Tells it from others about the same device and event, also when it was delivered; the same when it is sent again.
    /// 0 if nobody will ask for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub identity: u64,
    /// The same JSON that MQTT clients get.
    pub body: Box<RawValue>,
}

/// A message that will not be sent again, unless somebody asks for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Names it among those of its destination.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Content that its receiver did not accept.
    pub message: OutputMessage,
    /// Time when it was given up.
    pub failed_at: Timestamp,
    /// Number of times that it was sent by the process that gave it up.
    pub attempts: u32,
    /// Last answer of the receiver.
    pub reason: String,
}

/// A message on its way to one destination.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The same for each attempt, so that receivers recognize a message that they already have.
    pub(crate) id: String,
    pub(crate) app_id: AppId,
    /// Owner of the application.
    pub(crate) owner: Owner,
    pub(crate) message: OutputMessage,
}

fn is_zero(identity: &u64) -> bool {
    *identity == 0
}

/// The topic that MQTT clients would get a message on.
pub(crate) fn topic(app_id: &AppId, message: &OutputMessage) -> String {
    let event = &message.event;
    match &message.dev_id {
        Some(dev_id) if is_own_topic(event) => format!("{app_id}/devices/{dev_id}/{event}"),
        Some(dev_id) => format!("{app_id}/devices/{dev_id}/events/{event}"),
        None => format!("{app_id}/events/{event}"),
    }
}

/// Returns true if the topic of an event is not below `events`, as all others are.
pub(crate) fn is_own_topic(event: &str) -> bool {
    event == "up"
}
