//! Ids of records, whose order is that of time.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::record::moment;

/// The id of a record, unique among all processes that write. Ids, and their texts, are in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordId {
    /// Time of recording, in milliseconds since 1970.
    pub(crate) millis: u64,
    /// Random number of the process that recorded it, new at each start.
    pub(crate) writer: u32,
    /// Number of the record in this millisecond.
    pub(crate) number: u32,
}

/// A text is not the id of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("RecordID not valid: it has 28 hexadecimal digits")]
pub struct RecordIdError;

/// Milliseconds that an id can have: until the year 10889.
const MILLIS_MAX: u64 = (1 << 48) - 1;

impl RecordId {
    /// The id with these parts; times beyond the year 10889 are that year.
    pub fn new(millis: u64, writer: u32, number: u32) -> Self {
        Self { millis: millis.min(MILLIS_MAX), writer, number }
    }

    /// The lowest id of that millisecond.
    pub(crate) fn first(millis: u64) -> Self {
        Self::new(millis, 0, 0)
    }

    /// The highest id of that millisecond.
    pub(crate) fn last(millis: u64) -> Self {
        Self::new(millis, u32::MAX, u32::MAX)
    }

    /// The id after this one.
    pub(crate) fn next(self) -> Self {
        Self::from_bits(self.bits().saturating_add(1))
    }

    /// The id before this one.
    pub(crate) fn previous(self) -> Self {
        Self::from_bits(self.bits().saturating_sub(1))
    }

    fn bits(self) -> u128 {
        u128::from(self.millis) << 64 | u128::from(self.writer) << 32 | u128::from(self.number)
    }

    fn from_bits(bits: u128) -> Self {
        Self { millis: (bits >> 64) as u64, writer: (bits >> 32) as u32, number: bits as u32 }
    }

    /// Returns the time of recording, to the millisecond.
    pub fn recorded(self) -> Timestamp {
        moment::timestamp(self.millis)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:012x}{:08x}{:08x}", self.millis, self.writer, self.number)
    }
}

impl FromStr for RecordId {
    type Err = RecordIdError;

    fn from_str(text: &str) -> Result<Self, RecordIdError> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let parts = (text.get(..12), text.get(12..20), text.get(20..));
        let (Some(millis), Some(writer), Some(number)) = parts else { return Err(RecordIdError) };
        if !is_hex || number.len() != 8 {
            return Err(RecordIdError);
        }
        let number_of = |text| u32::from_str_radix(text, 16).map_err(|_| RecordIdError);
        let millis = u64::from_str_radix(millis, 16).map_err(|_| RecordIdError)?;
        Ok(Self { millis, writer: number_of(writer)?, number: number_of(number)? })
    }
}

impl TryFrom<String> for RecordId {
    type Error = RecordIdError;

    fn try_from(text: String) -> Result<Self, RecordIdError> {
        text.parse()
    }
}

impl From<RecordId> for String {
    fn from(id: RecordId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back_and_sort_as_ids_do() {
        let ids = [(0, 0, 0), (1, u32::MAX, 0), (2, 0, 9), (2, 0, 10), (2, 1, 0), (MILLIS_MAX, 0, 0)];
        let ids = ids.map(|(millis, writer, number)| RecordId::new(millis, writer, number));
        assert!(ids.is_sorted());
        assert!(ids.map(|id| id.to_string()).is_sorted());
        ids.iter().for_each(|id| assert_eq!(id.to_string().parse().as_ref(), Ok(id)));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "0", &"0".repeat(27), &"0".repeat(29), &"A".repeat(28), &"é".repeat(14), &"+".repeat(28)] {
            assert_eq!(text.parse::<RecordId>(), Err(RecordIdError), "{text}");
        }
    }
}
