//! A message in the live view.

use client::data::{DeviceEventName, Message};
use serde::Serialize;
use server::audit::visible;
use types::{DevId, HexBytes, Timestamp};

/// Maximum number of characters shown of the fields. History has the rest.
const TEXT_CHARS_MAX: usize = 1000;
/// Maximum number of bytes shown of the payload.
const PAYLOAD_BYTES_MAX: usize = 64;

/// A message, as far as it fits on a line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry {
    device: String,
    /// RFC 3339; empty if unknown.
    time: String,
    /// `up`, or the name of an event.
    pub(super) kind: String,
    pub(super) port: Option<u32>,
    payload: String,
    /// The fields, or what went wrong.
    pub(super) text: String,
    pub(super) failed: bool,
}

impl Entry {
    /// A message with its whole text.
    pub(super) fn new(dev_id: &DevId, message: &Message) -> Self {
        let entry = Self { device: dev_id.to_string(), ..Self::default() };
        match message {
            Message::Uplink(uplink) => Self {
                time: uplink.metadata.time.clone(),
                kind: "up".to_owned(),
                port: Some(uplink.port.into()),
                payload: hex(uplink.payload_raw.as_deref()),
                text: uplink.payload_fields.as_ref().map(|fields| fields.get().to_owned()).unwrap_or_default(),
                ..entry
            },
            Message::Error(error) => {
                let time = error.time.map(Timestamp::to_rfc3339).unwrap_or_default();
                Self { time, kind: "up/errors".to_owned(), text: error.error.clone(), failed: true, ..entry }
            }
            Message::Activation(activation) => Self { kind: "activations".to_owned(), text: json(activation), ..entry },
            Message::Downlink(name, event) => Self {
                kind: name.as_str().to_owned(),
                text: json(event),
                failed: *name == DeviceEventName::DownErrors,
                ..entry
            },
            Message::Device(name, event) => Self { kind: name.as_str().to_owned(), text: json(event), ..entry },
            Message::Silent(silent) => Self {
                time: silent.time.to_rfc3339(),
                kind: DeviceEventName::Silent.as_str().to_owned(),
                text: json(silent),
                ..entry
            },
            Message::Field { path, value } => {
                Self { kind: format!("up/{path}"), text: value.get().to_owned(), ..entry }
            }
            Message::Unknown(bytes) => {
                Self { kind: "unknown".to_owned(), text: String::from_utf8_lossy(bytes).into_owned(), ..entry }
            }
        }
    }

    /// As much of it as is shown, without characters that nobody sees or that change the direction of text.
    pub(super) fn shortened(mut self) -> Self {
        if let Some((end, _)) = self.text.char_indices().nth(TEXT_CHARS_MAX) {
            self.text.truncate(end);
            self.text.push('…');
        }
        self.text = visible(&self.text).into_owned();
        self
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let shown = HexBytes(bytes.iter().copied().take(PAYLOAD_BYTES_MAX).collect()).to_string();
    if bytes.len() > PAYLOAD_BYTES_MAX { format!("{shown}…") } else { shown }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
