//! An uplink as a source has it: the inputs of the functions, and their stored result.

use history::RecordId;
use serde_json::value::RawValue;
use types::Timestamp;

/// An uplink with the object that was stored for it.
#[derive(Clone, Debug, Default)]
pub struct RecordedUplink {
    /// The uplink's id in the source, such as the primary key of its row; empty if it has none.
    pub id: String,
    /// The application.
    pub application: Name,
    /// The device.
    pub device: Name,
    /// Payload bytes.
    pub payload: Vec<u8>,
    /// The LoRaWAN port.
    pub port: u8,
    /// Time at which it was received.
    pub time: Option<Timestamp>,
    /// The result that was stored; none if nothing decoded it.
    pub object: Option<Box<RawValue>>,
    /// The profile of the device.
    pub profile: Name,
    /// The seed of `Math.random`, if the source tells.
    pub seed: Option<u64>,
    /// Further members of the functions' input, as a JSON object; empty if the source has none.
    pub extra: String,
    /// In a record of our own that corrects another one, which.
    pub correction: Option<Correction>,
}

/// A correction of a record of our own by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The one that is corrected.
    pub original: RecordId,
    /// Number of the correction, from 1.
    pub revision: u32,
}

/// The uplink at one place of a source, `None` if it is something else, or the reason why it is damaged.
pub type StoredResult = Result<Option<RecordedUplink>, String>;

/// A name: networks have an id, and some a second one, such as the DevEUI or a name for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The usual one.
    pub id: String,
    /// The other one; empty for none.
    pub other: String,
}

impl Name {
    /// A name from what a source has, either of which may be missing.
    pub(crate) fn new(id: Option<String>, other: Option<String>) -> Self {
        let other = other.unwrap_or_default();
        match id {
            Some(id) if !id.is_empty() => Self { id, other },
            _ => Self { id: other, other: String::new() },
        }
    }

    /// Returns true if either name equals `wanted`, ignoring case.
    pub fn is(&self, wanted: &str) -> bool {
        self.id.eq_ignore_ascii_case(wanted) || self.other.eq_ignore_ascii_case(wanted)
    }
}

/// Filter of uplinks; all by default.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Start of the period in which they were received.
    pub since: Option<Timestamp>,
    /// End of the period, exclusive.
    pub until: Option<Timestamp>,
    /// The device.
    pub device: Option<String>,
    /// The application.
    pub application: Option<String>,
    /// Only uplinks as they came: of our own records, no corrections, and also those that were corrected.
    pub originals_only: bool,
}

impl Filter {
    /// Returns true if an uplink is wanted. One without a time is not in any period.
    pub(crate) fn matches(&self, uplink: &RecordedUplink) -> bool {
        let is = |wanted: &Option<String>, name: &Name| wanted.as_ref().is_none_or(|wanted| name.is(wanted));
        self.since.is_none_or(|since| uplink.time.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| uplink.time.is_some_and(|time| time < until))
            && is(&self.device, &uplink.device)
            && is(&self.application, &uplink.application)
            && !(self.originals_only && uplink.correction.is_some())
    }
}
