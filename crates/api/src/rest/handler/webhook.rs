//! Bodies about webhooks, which v2 did not have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use types::{Change, Secret, Timestamp, WebhookId};

use super::super::json::is_default;

/// A webhook to create or to replace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWebhook")]
pub struct NewWebhook {
    /// Where messages are sent with POST. `{app_id}`, `{dev_id}` and `{event}` may stand after the host.
    pub url: String,
    /// Which events are sent, such as `up` or `down/acks`; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Headers of each request, by name. The same templates may stand in their values. They are never shown again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, Secret>,
    /// The key that signs requests: `whsec_` and 24 to 64 bytes in base64. It is never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<Secret>,
}

/// Changes to a webhook. Members that are left out stay as they are; `null` removes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    /// The `revision` of the webhook that the change starts from. If the webhook has another one by now, nothing is
    /// changed, with status 409. Without it, the webhook is changed whatever it is by now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "no_null")]
    #[schemars(with = "String")]
    pub revision: Option<String>,
    /// Where messages are sent. On another scheme, host or port, headers do not stay: each must be set or removed.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[schemars(with = "String")]
    pub url: Change<String>,
    /// Which events are sent, in place of those until now; `null` stands for all.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[schemars(with = "Option<Vec<String>>")]
    pub events: Change<Vec<String>>,
    /// Headers by name: a value adds or replaces one, `null` removes it, and those that are not named stay. `null` in
    /// place of the object removes all.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[schemars(with = "Option<BTreeMap<String, Option<String>>>")]
    pub headers: Change<BTreeMap<String, Option<Secret>>>,
    /// The key that signs requests; with `null`, they are not signed any more.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[schemars(with = "Option<String>")]
    pub secret: Change<Secret>,
}

/// In other members `null` removes, which would mean nothing here.
fn no_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

/// A webhook without its secrets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    /// Unique within the application.
    pub id: WebhookId,
    /// Identifies what is set; each change makes another one. A change can require it.
    #[serde(default)]
    pub revision: String,
    /// Where messages are sent.
    pub url: String,
    /// Which events are sent; all if there are none.
    pub events: Vec<String>,
    /// The names of its headers.
    pub header_names: Vec<String>,
    /// True if its requests are signed.
    pub is_signed: bool,
    /// The reason why it sends nothing, if it is stopped. What waits for it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Number of messages that wait for it; omitted if none does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waiting: usize,
    /// Attempts of which none got through; omitted while messages do, or if another handler makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// Attempts to deliver of which none got through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failing {
    /// When the first of them failed.
    pub since: Timestamp,
    /// When the last of them failed.
    pub last: Timestamp,
    /// The answer to the last one, or the error.
    pub reason: String,
}

/// The receiver's answer to a sample message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WebhookAnswer {
    /// True if the receiver took it.
    pub is_taken: bool,
    /// The reason why it did not: its answer, or the error.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reason: String,
}

/// The webhooks of an application.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// The webhooks, ordered by id.
    pub webhooks: Vec<Webhook>,
}

/// A message that a webhook did not take.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// Names it among those of the webhook.
    pub id: String,
    /// The device that it is about.
    pub dev_id: String,
    /// The event.
    pub event: String,
    /// When it was accepted.
    pub time: Timestamp,
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Number of times that it was sent.
    pub attempts: u32,
    /// The receiver's last answer.
    pub reason: String,
    /// The message.
    #[schemars(with = "serde_json::Value")]
    pub body: Box<RawValue>,
}

/// Some of the messages that a webhook did not take.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterList {
    /// The messages, the oldest first.
    pub dead_letters: Vec<DeadLetter>,
    /// Number of them.
    pub total: usize,
    /// True if the webhook has taken any message.
    #[serde(default)]
    pub has_delivered: bool,
}

/// Which messages to send again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resend {
    /// Their ids; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
}

/// Number of messages that are sent again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Resent {
    /// Their number.
    pub resent: usize,
}
