//! One message, and the result of its functions.

mod device_hash;
mod id;
mod json;
pub(crate) mod loss;
mod microseconds;
pub(crate) mod moment;
mod seed;
mod text;
mod view;

use std::fmt;

use types::{AppId, DevId, Timestamp};

pub(crate) use self::{device_hash::device_hash, view::View};
pub use self::{
    id::{RecordId, RecordIdError},
    microseconds::microseconds,
    seed::usual_seed,
    text::{logs_text, warnings_text},
};

/// Maximum size of a record, in bytes.
pub const RECORD_BYTES_MAX: usize = 2 << 20;

/// Kinds of messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From a device.
    Uplink,
    /// An event, by its name, such as `down/sent`.
    Event(String),
}

/// Outcome of the functions for a message, or of what an event is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// They returned a result, or it was encoded.
    Decoded,
    /// They failed, or it is the event of a downlink or a join that failed.
    Failed,
    /// They returned a result that is not valid, and the message was not published.
    Invalid,
    /// There are none, or it is nothing that they convert.
    #[default]
    NotConverted,
}

/// A message to be recorded. All texts are JSON unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Time of reception.
    pub received: Timestamp,
    /// Its application.
    pub app_id: &'a AppId,
    /// Its device.
    pub dev_id: &'a DevId,
    /// Kind of the message.
    pub kind: &'a Kind,
    /// The LoRaWAN port.
    pub port: u8,
    /// The frame counter.
    pub counter: u32,
    /// True if it is to be acknowledged.
    pub confirmed: bool,
    /// True if the device sent this counter before.
    pub is_retry: bool,
    /// Bytes of the frame, decrypted.
    pub payload: &'a [u8],
    /// Metadata of the reception or transmission, an object; empty for none.
    pub metadata: &'a str,
    /// Further members of the decoder's input, an object; empty for none.
    pub extra: &'a str,
    /// The seed of the functions; none for the one that is derived from application, device and counter.
    pub seed: Option<u64>,
    /// The hash of the functions, if any ran.
    pub functions: Option<[u8; 32]>,
    /// The number of their version.
    pub version: Option<u32>,
    /// The first bytes of the hash of their limits.
    pub limits: Option<[u8; 8]>,
    /// Outcome of the functions.
    pub outcome: Outcome,
    /// The result of the functions; empty for none.
    pub result: &'a str,
    /// Result of their `normalizeUplink`; empty for none.
    pub normalized: &'a str,
    /// Reason why they, the downlink or the join failed, a plain text.
    pub failure: Option<&'a str>,
    /// Their console output, an array; empty for none.
    pub logs: &'a str,
    /// Their warnings, an array of strings; empty for none.
    pub warnings: &'a str,
    /// Units of fuel that they used.
    pub fuel: u64,
    /// Microseconds that they ran; none if nobody measured.
    pub microseconds: Option<u32>,
    /// Number of earlier decodings: zero for live messages.
    pub revision: u32,
    /// The record that this one corrects.
    pub corrects: Option<RecordId>,
}

impl<'a> NewRecord<'a> {
    /// A record with nothing but these.
    pub fn new(app_id: &'a AppId, dev_id: &'a DevId, kind: &'a Kind, received: Timestamp) -> Self {
        Self {
            received,
            app_id,
            dev_id,
            kind,
            port: 0,
            counter: 0,
            confirmed: false,
            is_retry: false,
            payload: &[],
            metadata: "",
            extra: "",
            seed: None,
            functions: None,
            version: None,
            limits: None,
            outcome: Outcome::NotConverted,
            result: "",
            normalized: "",
            failure: None,
            logs: "",
            warnings: "",
            fuel: 0,
            microseconds: None,
            revision: 0,
            corrects: None,
        }
    }
}

/// A message that was recorded, with members like those of [`NewRecord`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are documented in `NewRecord`")]
pub struct Record {
    /// Its id, which has the time when it was recorded.
    pub id: RecordId,
    pub received: Timestamp,
    pub app_id: AppId,
    pub dev_id: DevId,
    pub kind: Kind,
    pub port: u8,
    pub counter: u32,
    pub confirmed: bool,
    pub is_retry: bool,
    pub payload: Vec<u8>,
    pub metadata: String,
    pub extra: String,
    pub seed: Option<u64>,
    pub functions: Option<[u8; 32]>,
    pub version: Option<u32>,
    pub limits: Option<[u8; 8]>,
    pub outcome: Outcome,
    pub result: String,
    pub normalized: String,
    pub failure: Option<String>,
    pub logs: String,
    pub warnings: String,
    pub fuel: u64,
    pub microseconds: Option<u32>,
    pub revision: u32,
    pub corrects: Option<RecordId>,
}

impl Record {
    /// About its memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let texts = [&self.metadata, &self.extra, &self.result, &self.normalized, &self.logs, &self.warnings];
        let texts: usize = texts.iter().map(|text| text.len()).sum();
        size_of::<Self>() + texts + self.payload.len() + self.failure.as_ref().map_or(0, String::len)
    }
}

impl Kind {
    /// The names of the events of devices that were created, changed or deleted.
    const CHANGES: [&str; 3] = ["create", "update", "delete"];

    /// Returns true for the name of such an event.
    pub(crate) fn is_change(name: &[u8]) -> bool {
        Self::CHANGES.iter().any(|change| change.as_bytes() == name)
    }

    /// `up`, or the name of the event.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uplink => "up",
            Self::Event(name) => name,
        }
    }
}

impl From<&str> for Kind {
    fn from(text: &str) -> Self {
        match text {
            "up" => Self::Uplink,
            name => Self::Event(name.to_owned()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Outcome {
    pub(crate) const ALL: [Self; 4] = [Self::Decoded, Self::Failed, Self::Invalid, Self::NotConverted];

    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decoded => "decoded",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::NotConverted => "not_converted",
        }
    }

    /// Returns true if the functions, a downlink or a join failed, or a result was not published.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Invalid)
    }

    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str().as_bytes() == name)
    }
}
