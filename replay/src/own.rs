//! Columns that records of our own history have, and other uplinks lack.

use std::collections::BTreeMap;

use history::{RecordId, usual_seed};
use memchr::memmem;
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    RecordedUplink,
    stored::{Correction, Name},
};

/// The error for a record whose `corrects` is not an id of ours.
pub(crate) const NO_ID: &str = "its `corrects` is not the id of a record";
/// The column of payloads in our files.
pub(crate) const PAYLOAD: &str = "payload";

/// A column that others lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Kind,
    Outcome,
    Counter,
    Seed,
    Extra,
    Metadata,
    Corrects,
    Revision,
    /// These are the id in Parquet files.
    Recorded,
    Writer,
    Number,
    /// What `received` lacks in Parquet files.
    ReceivedNanos,
}

impl Column {
    pub(crate) const ALL: [Self; 12] = [
        Self::Kind,
        Self::Outcome,
        Self::Counter,
        Self::Seed,
        Self::Extra,
        Self::Metadata,
        Self::Corrects,
        Self::Revision,
        Self::Recorded,
        Self::Writer,
        Self::Number,
        Self::ReceivedNanos,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Outcome => "outcome",
            Self::Counter => "counter",
            Self::Seed => "seed",
            Self::Extra => "extra",
            Self::Metadata => "metadata",
            Self::Corrects => "corrects",
            Self::Revision => "revision",
            Self::Recorded => "recorded",
            Self::Writer => "writer",
            Self::Number => "number",
            Self::ReceivedNanos => "received_nanos",
        }
    }
}

/// Places of these columns in a file.
pub(crate) type Places = [Option<usize>; Column::ALL.len()];

/// The places in the names of a file; none if it is not ours. A table of others may have one of the names for something
/// else.
pub(crate) fn places(header: &[String]) -> Option<Places> {
    let places = Column::ALL.map(|column| header.iter().position(|name| name == column.name()));
    let has = |column: Column| places[column as usize].is_some();
    (has(Column::Kind) && has(Column::Outcome)).then_some(places)
}

/// Values of the columns that only our own records have.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// None for the usual seed.
    pub(crate) seed: Option<u64>,
    pub(crate) counter: u32,
    /// JSON; empty for none.
    pub(crate) extra: String,
    /// The profile of the device, of uplinks that a bridge has recorded.
    pub(crate) profile: Name,
    pub(crate) corrects: Option<RecordId>,
    pub(crate) revision: u32,
}

impl Own {
    /// Reads the texts that `cell` gives of each column. Parquet has unsigned numbers as signed ones of the same bits.
    pub(crate) fn read<T: AsRef<str>>(cell: impl Fn(Column) -> Result<Option<T>, String>) -> Result<Self, String> {
        let number = |column: Column| {
            let wrong = |_| format!("its {} is not a number", column.name());
            let parse = |text: T| text.as_ref().parse::<i128>().map_err(wrong);
            cell(column)?.map(parse).transpose()
        };
        let corrects = cell(Column::Corrects)?.map(|id| id.as_ref().parse()).transpose();
        Ok(Self {
            seed: number(Column::Seed)?.map(|seed| seed as u64),
            counter: number(Column::Counter)?.unwrap_or_default() as u32,
            extra: cell(Column::Extra)?.map(|extra| object(extra.as_ref())).transpose()?.unwrap_or_default(),
            profile: cell(Column::Metadata)?.map(|metadata| profile(metadata.as_ref())).unwrap_or_default(),
            corrects: corrects.map_err(|_| NO_ID)?,
            revision: number(Column::Revision)?.unwrap_or_default() as u32,
        })
    }

    pub(crate) fn correction(&self) -> Option<Correction> {
        self.corrects.map(|original| Correction { original, revision: self.revision })
    }

    /// The uplink as its functions saw it, and what it corrects.
    pub(crate) fn complete(self, uplink: RecordedUplink) -> RecordedUplink {
        let (seed, correction) = (self.seed.or_else(|| usual(&uplink, self.counter)), self.correction());
        // A column that was named for it wins.
        let profile = if uplink.profile == Name::default() { self.profile } else { uplink.profile };
        RecordedUplink { seed, correction, extra: self.extra, profile, ..uplink }
    }
}

/// Further members of an input, which are a JSON object.
pub(crate) fn object(extra: &str) -> Result<String, String> {
    let members: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_str(extra);
    members.map(|_| extra.to_owned()).map_err(|_| "its `extra` is not a JSON object".to_owned())
}

/// The profile in metadata; empty if there is none, as of the uplinks of a handler.
pub(crate) fn profile(metadata: &str) -> Name {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Profile {
        device_profile_id: String,
        device_profile_name: String,
    }
    // Most metadata has none, and need not be read.
    if memmem::find(metadata.as_bytes(), b"\"device_profile_").is_none() {
        return Name::default();
    }
    let Profile { device_profile_id, device_profile_name } = serde_json::from_str(metadata).unwrap_or_default();
    Name::new(Some(device_profile_id), Some(device_profile_name))
}

/// None where the names are not ours.
fn usual(uplink: &RecordedUplink, counter: u32) -> Option<u64> {
    let (app_id, dev_id) = (uplink.application.id.parse().ok()?, uplink.device.id.parse().ok()?);
    Some(usual_seed(&app_id, &dev_id, counter))
}
