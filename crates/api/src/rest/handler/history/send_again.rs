//! Bodies about stored messages that are sent again, which v2 did not have.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{DevId, Timestamp};

use super::super::super::json::is_default;

/// Maximum number of receivers that are told apart.
const RECEIVERS_MAX: usize = 200;

/// Which stored messages to send again, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SendAgain {
    /// The id of the only message to send; then the other filters do not matter. A correction stands for the message that
    /// it corrects.
    #[serde(skip_serializing_if = "is_default")]
    pub id: String,
    /// The device; all if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "Option<DevId>")]
    pub dev_id: String,
    /// Recorded at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Recorded before this time; now if it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// `up`, or the name of an event such as `down/sent`; all if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: String,
    /// The LoRaWAN port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// Only uplinks whose functions failed, or whose validator refused them; of events, failed downlinks and joins.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: bool,
    /// Text in the fields, the failure, the logs or the warnings, as JSON has it.
    #[serde(skip_serializing_if = "is_default")]
    pub text: String,
    /// A condition on a field, such as `fields.temperature > 30`.
    #[serde(skip_serializing_if = "is_default")]
    pub field: String,
    /// The number of the version of the functions that ran.
    #[serde(skip_serializing_if = "is_default")]
    pub version: u32,
    /// Where to go on: `next` of the last report.
    #[serde(skip_serializing_if = "is_default")]
    pub after: String,
    /// Who gets them; whoever gets live messages if it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<SendTo>,
    /// Maximum number of messages to send each second; 200 if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    pub per_s: u32,
    /// True to count them only.
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
}

/// Who gets messages again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendTo {
    /// Subscribers over MQTT, on the usual topics.
    Mqtt,
    /// Subscribers over MQTT on `<app_id>/<these one or two levels>/devices/<dev_id>/…`.
    Topic(String),
    /// The webhook with this id.
    Webhook(String),
    /// The outputs of the operator with this name.
    Output(String),
}

/// Results for the messages since the report before. Each counts once, in one of the numbers that follow `examined`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SendReport {
    /// Number of messages that were looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub examined: u64,
    /// Number of those that all who want them have taken, into their queues; in a dry run, of those that somebody
    /// wants.
    #[serde(skip_serializing_if = "is_default")]
    pub sent: u64,
    /// Number of those that somebody did not take: see `receivers`. Others may have.
    #[serde(skip_serializing_if = "is_default")]
    pub refused: u64,
    /// Number of those that nobody wants: there is no subscriber, and no output for them.
    #[serde(skip_serializing_if = "is_default")]
    pub unwanted: u64,
    /// Number of those that were not sent, because their device is gone.
    #[serde(skip_serializing_if = "is_default")]
    pub device_gone: u64,
    /// Number of those that were not sent, because their validator refused them, so that they were never published.
    #[serde(skip_serializing_if = "is_default")]
    pub never_published: u64,
    /// Number of those that were not sent, because what is stored cannot be read.
    #[serde(skip_serializing_if = "is_default")]
    pub unreadable: u64,
    /// Who refused messages, such as `webhook my-hook`: at most 200. MQTT sessions are named by a hash.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub receivers: BTreeMap<String, RefusedMessages>,
    /// Files of history that could not be read, so that their messages are missing: at most 200.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unreadable_files: BTreeSet<String>,
    /// Where to go on after this report; omitted in the last one.
    #[serde(skip_serializing_if = "is_default")]
    pub next: String,
    /// True if this is the last report. If none says so, the last `next` says where to go on.
    #[serde(skip_serializing_if = "is_default")]
    pub done: bool,
    /// The reason why it ended too early.
    #[serde(skip_serializing_if = "is_default")]
    pub error: String,
    /// With `error`: whether it may go on if it is asked for again.
    #[serde(skip_serializing_if = "is_default")]
    pub temporary: bool,
}

/// Messages that a receiver refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedMessages {
    /// Number of messages.
    pub count: u64,
    /// The reason for the first of them.
    pub reason: String,
    /// The id of the record of the first of them.
    pub id: String,
}

impl RefusedMessages {
    /// Adds messages to those that a receiver refused; another receiver only while there is room.
    pub fn add_to(receivers: &mut BTreeMap<String, Self>, receiver: String, refused: Self) {
        let has_room = receivers.len() < RECEIVERS_MAX;
        match receivers.get_mut(&receiver) {
            Some(known) => known.count += refused.count,
            None if has_room => _ = receivers.insert(receiver, refused),
            None => {}
        }
    }
}
