//! Downlink commands in, encoded commands to ChirpStack; what became of each into history.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::{
    codec::outcome::{CodecError, Input},
    message::raw_object::RawObject,
    metrics,
    publish::output::{Output, PublishOutcome},
    receive::dedup::Dedup,
    record::{
        Recorder,
        event::{DOWNLINK_FAILED, DOWNLINK_SCHEDULED, ReceivedEvent},
    },
};
use bytes::Bytes;
use futures::future::{BoxFuture, join};
use link::delivery::Delivery;
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use types::Clock;

use super::{
    codec::directory::{Device, Directory, Profile},
    event::{
        log_event::{Code, LogEvent},
        topic::Topic,
    },
};

/// Marks commands that a bridge has passed on. ChirpStack ignores members that it does not know.
const MARK: &str = "airlockBridge";
/// Maximum number of characters that are shown of a value that is wrong.
const SHOWN_CHARS_MAX: usize = 40;

/// Encodes the objects of downlink commands.
pub(super) struct Downlinks {
    pub(super) directory: Arc<Directory>,
    /// Output for commands to ChirpStack.
    pub(super) chirpstack: Output,
    /// Output on which applications publish commands, and receive the reasons of refusals.
    pub(super) applications: Arc<Output>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) dedup: Dedup,
    pub(super) clock: Arc<dyn Clock>,
}

/// `deviceInfo` of an event about a command, which has none itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceInfo<'a> {
    tenant_id: &'a str,
    application_id: &'a str,
    device_profile_id: &'a str,
    device_profile_name: &'a str,
    device_name: &'a str,
    dev_eui: &'a str,
    tags: BTreeMap<&'a str, &'a str>,
}

impl Downlinks {
    /// Passes a command on, or publishes the reason of the failure; then acknowledges it.
    pub(super) async fn handle(&self, Delivery { topic, payload, is_duplicate, ack, .. }: Delivery) {
        let Some(topic) = Topic::parse(&topic, &self.applications.prefix) else {
            // The filter lets no other topic through.
            return ack.acknowledge().await;
        };
        let key = self.dedup.key(topic, &payload[..]);
        // The same command twice is two downlinks, unless the broker says that it sends it again.
        if is_duplicate && self.dedup.contains(key) {
            metrics::downlink("duplicate");
            return ack.acknowledge().await;
        }
        let outcome = match self.translate(topic, &payload).await {
            Ok(Some(command)) => self.pass_on(topic, command.into()).await,
            Ok(None) => own_command(topic),
            Err(error) => self.refuse(topic, &error).await,
        };
        if outcome.is_settled() {
            self.dedup.add(key);
            ack.acknowledge().await;
        }
    }

    /// The command for ChirpStack, with `data` in place of `object`; none for a command that a bridge passed on.
    async fn translate(&self, topic: Topic<'_>, payload: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
        let mut command = RawObject::parse(payload)
            .map_err(|error| CodecError::Command(format!("the command is not a JSON object: {error}")))?;
        if command.raw(MARK).is_some() {
            return Ok(None);
        }
        check_device(&command, topic)?;
        check_types(&command)?;
        let failed = |error: serde_json::Error| CodecError::Command(error.to_string());
        command.set(MARK, to_raw_value(&true).map_err(failed)?, "");
        if !command.has("object") {
            metrics::downlink("forwarded");
            return serde_json::to_vec(&command).map(Some).map_err(failed);
        }
        let device = self.directory.device(&topic.dev_eui.to_ascii_lowercase()).await?;
        if *device.application_id != *topic.application_id {
            return Err(CodecError::Command("the device belongs to another application than the topic's".to_owned()));
        }
        let profile = self.directory.profile(&device.profile_id).await?;
        let port = port(&command)?;
        let input = Input {
            port: port.unwrap_or(0),
            time_ms: self.clock.now().as_millis(),
            seed: 0,
            variables: device.variables.get(),
        };
        let object = command.raw("object").map(RawValue::get).unwrap_or_default();
        let encoded = profile.codec.encode(object, &input).await?;
        let port = encoded.port.filter(|port| *port > 0).or(port);
        let port = port.ok_or_else(|| {
            CodecError::Command("no port: set `fPort` in the command, or let encodeDownlink return it".to_owned())
        })?;
        command.set("data", to_raw_value(&STANDARD.encode(&encoded.bytes)).map_err(failed)?, "object");
        command.set("fPort", to_raw_value(&port).map_err(failed)?, "data");
        command.remove("object");
        command.remove("f_port");
        metrics::downlink("encoded");
        serde_json::to_vec(&command).map(Some).map_err(failed)
    }

    /// Passes a command on, and puts it into history once ChirpStack's broker has it.
    async fn pass_on(&self, topic: Topic<'_>, command: Bytes) -> PublishOutcome {
        let outcome = self.chirpstack.publish(topic, command.clone()).await;
        if outcome == PublishOutcome::Published {
            self.record(topic, DOWNLINK_SCHEDULED, command, None).await;
        }
        outcome
    }

    async fn refuse(&self, topic: Topic<'_>, error: &CodecError) -> PublishOutcome {
        metrics::downlink("refused");
        let info = self.device_info(topic).await;
        let log = LogEvent::failure(error, Code::DownlinkCodec, self.clock.now(), info.as_deref());
        let log = log.to_json().map(Bytes::from);
        let body = log.as_ref().cloned().unwrap_or_default();
        let recorded = self.record(topic, DOWNLINK_FAILED, body, Some(error.to_string()));
        join(self.applications.publish_written(topic.with("event/log"), log), recorded).await.0
    }

    /// Puts what became of a command into history. What this returns resolves when it is there, or is counted as lost.
    fn record(
        &self,
        topic: Topic<'_>,
        kind: &'static str,
        body: Bytes,
        failure: Option<String>,
    ) -> BoxFuture<'static, ()> {
        let received = self.clock.now();
        let event = ReceivedEvent { kind, received, body, failure };
        self.recorder.record_event((topic.application_id, topic.dev_eui), || Some(event))
    }

    /// Returns `deviceInfo` of the device, with only its EUI if nothing else is known.
    async fn device_info(&self, topic: Topic<'_>) -> Option<Box<RawValue>> {
        let device = self.directory.device(&topic.dev_eui.to_ascii_lowercase()).await.ok();
        // Whoever names a device of another application learns nothing about it.
        let device = device.filter(|device| *device.application_id == *topic.application_id);
        let profile = match &device {
            Some(device) => self.directory.profile(&device.profile_id).await.ok(),
            None => None,
        };
        to_raw_value(&DeviceInfo::new(topic, device.as_deref(), profile.as_deref())).ok()
    }
}

impl<'a> DeviceInfo<'a> {
    fn new(topic: Topic<'a>, device: Option<&'a Device>, profile: Option<&'a Profile>) -> Self {
        let tags =
            profile.into_iter().flat_map(Profile::tags).chain(device.into_iter().flat_map(|device| &device.tags));
        Self {
            tenant_id: profile.map_or("", Profile::tenant_id),
            application_id: topic.application_id,
            device_profile_id: device.map_or("", |device| &device.profile_id),
            device_profile_name: profile.map_or("", Profile::name),
            device_name: device.map_or("", |device| &device.name),
            dev_eui: topic.dev_eui,
            tags: tags.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        }
    }
}

/// The port of a command, which proto3 JSON also allows to be a string; none if it is missing or zero.
fn port(command: &RawObject<'_>) -> Result<Option<u8>, CodecError> {
    let Some(text) = command.raw("fPort").or_else(|| command.raw("f_port")).map(RawValue::get) else { return Ok(None) };
    let number: Option<f64> = if text == "null" { Some(0.0) } else { text.trim_matches('"').parse().ok() };
    match number.filter(|number| number.fract() == 0.0 && (0.0..=255.0).contains(number)) {
        Some(number) => Ok(Some(number as u8).filter(|port| *port > 0)),
        None => Err(CodecError::Command(format!("`fPort` is {text}: it must be a number from 1 to 255"))),
    }
}

/// Drops a command that came back.
fn own_command(topic: Topic<'_>) -> PublishOutcome {
    metrics::downlink("own");
    tracing::error!(
        %topic,
        "a command for ChirpStack came back: events come from and go to the same broker. Set `to_prefix`, as in `airlock/`"
    );
    PublishOutcome::Dropped
}

/// Refuses members of other types than ChirpStack reads, which it says in nothing but its own log.
fn check_types(command: &RawObject<'_>) -> Result<(), CodecError> {
    let wrong = |name: &str, is_valid: fn(&Value) -> bool| {
        let value: Value = command.get(name)?;
        (!value.is_null() && !is_valid(&value)).then(|| value.to_string())
    };
    let is_number = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| text.parse::<u32>().is_ok());
    for (names, is_valid, expected) in [
        (&["confirmed", "isEncrypted", "is_encrypted"][..], Value::is_boolean as fn(&Value) -> bool, "true or false"),
        (&["id", "expiresAt", "expires_at"], Value::is_string, "a text"),
        (&["data"], is_base64, "Base64 in a text"),
        (&["fCntDown", "f_cnt_down"], is_number, "a number"),
        (&["object"], Value::is_object, "an object"),
    ] {
        if let Some((name, found)) = names.iter().find_map(|name| Some((name, wrong(name, is_valid)?))) {
            return Err(CodecError::Command(format!("`{name}` is {}: it must be {expected}", cut(found))));
        }
    }
    port(command).map(drop)
}

/// In any of the alphabets that ChirpStack reads, with or without what fills it up.
fn is_base64(value: &Value) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    value.as_str().is_some_and(|text| text.trim_end_matches('=').bytes().all(is_digit))
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Refuses a command whose body names another device than its topic, as ChirpStack does without a word.
fn check_device(command: &RawObject<'_>, topic: Topic<'_>) -> Result<(), CodecError> {
    let named: Option<String> = command.get("devEui").or_else(|| command.get("dev_eui"));
    match named {
        Some(named) if named.eq_ignore_ascii_case(topic.dev_eui) => Ok(()),
        Some(named) => Err(CodecError::Command(format!("`devEui` is {named}, but the topic's is {}", topic.dev_eui))),
        None => Err(CodecError::Command("`devEui` is missing: it must be that of the topic".to_owned())),
    }
}
