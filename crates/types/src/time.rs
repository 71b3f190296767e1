//! Points in time, and a clock, passed in so that tests can control it.

use std::{fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{OffsetDateTime, format_description::well_known::Rfc3339, macros::format_description};

/// A point in time, in nanoseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(inline, description = "")]
pub struct Timestamp(#[schemars(with = "String", extend("format" = "date-time"))] i64);

impl Timestamp {
    /// Returns the time at this number of nanoseconds since 1970.
    pub fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the time at this number of milliseconds since 1970, saturating.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since 1970.
    pub fn as_nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0 / 1_000_000
    }

    /// Milliseconds since 1970; zero for earlier times. Stores and rate limits count in them.
    pub fn as_unix_ms(self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(0)
    }

    /// Seconds since 1970; zero for earlier times.
    pub fn as_secs(self) -> u64 {
        u64::try_from(self.0 / 1_000_000_000).unwrap_or(0)
    }

    /// Adds a duration, saturating.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Subtracts a duration, saturating.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// The time elapsed since `earlier`; zero if that is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The time between this and `other`, whichever is earlier.
    pub fn apart(self, other: Self) -> Duration {
        self.since(other).max(other.since(self))
    }

    /// Formats as RFC 3339 with up to nanoseconds, trailing zeros trimmed: `2017-01-17T14:47:09.74Z`.
    pub fn to_rfc3339(self) -> String {
        self.date_time().format(&Rfc3339).unwrap_or_default()
    }

    /// Formats as RFC 3339 with milliseconds: `2017-01-17T14:47:09.740Z`.
    pub fn to_rfc3339_millis(self) -> String {
        let shape = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        self.date_time().format(&shape).unwrap_or_default()
    }

    /// Formats for display, to the minute: `17 Jan 17 14:47`, UTC.
    pub fn to_short(self) -> String {
        let shape = format_description!("[day] [month repr:short] [year repr:last_two] [hour]:[minute]");
        self.date_time().format(&shape).unwrap_or_default()
    }

    fn date_time(self) -> OffsetDateTime {
        // Any i64 of nanoseconds is between 1677 and 2262, which the library supports.
        OffsetDateTime::from_unix_timestamp_nanos(self.0.into()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

/// Reasons for refusing a text as a point in time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTimestamp {
    /// It is not in the form of RFC 3339.
    #[error(transparent)]
    Malformed(#[from] time::error::Parse),
    /// Nanoseconds since 1970 cannot express it.
    #[error("it must be between the years 1678 and 2261")]
    OutOfRange,
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let nanos = OffsetDateTime::parse(text, &Rfc3339)?.unix_timestamp_nanos();
        i64::try_from(nanos).map(Self).map_err(|_| InvalidTimestamp::OutOfRange)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_rfc3339())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_both_forms_and_reads_back() {
        let moment = Timestamp::from_millis(1_484_664_429_740);
        assert_eq!(moment.to_rfc3339(), "2017-01-17T14:47:09.74Z");
        assert_eq!(moment.to_rfc3339_millis(), "2017-01-17T14:47:09.740Z");
        assert_eq!(moment.to_rfc3339().parse(), Ok(moment));
    }

    #[test]
    fn counts_of_milliseconds_begin_in_1970() {
        assert_eq!(Timestamp::from_millis(1_484_664_429_740).as_unix_ms(), 1_484_664_429_740);
        assert_eq!(Timestamp::from_millis(-1).as_unix_ms(), 0);
    }

    #[test]
    fn a_time_that_cannot_be_expressed_is_refused() {
        for text in ["1677-01-01T00:00:00Z", "2262-12-31T00:00:00Z", "9999-12-31T23:59:59.5+01:00"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp::OutOfRange), "{text}");
        }
        for text in ["", "2026-11-22", "2026-13-01T00:00:00Z"] {
            assert!(matches!(text.parse::<Timestamp>(), Err(InvalidTimestamp::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn arithmetic_stays_within_bounds() {
        let end = Timestamp::from_nanos(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(Timestamp::default().since(end), Duration::ZERO);
    }

    #[test]
    fn times_are_apart_whichever_is_earlier() {
        let [first, second] = [1_000, 3_500].map(Timestamp::from_millis);
        let apart = [first.apart(second), second.apart(first), first.apart(first)];
        assert_eq!(apart, [Duration::from_millis(2_500), Duration::from_millis(2_500), Duration::ZERO]);
    }
}
