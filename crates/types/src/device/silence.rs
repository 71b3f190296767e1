//! The time after which a device that sends nothing counts as silent.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// The attribute with which a device has a time of its own, such as `2h`, or `off`.
pub const SILENT_AFTER: &str = "silent-after";
/// Stands for no time: the device never counts as silent.
const OFF: &str = "off";
/// Units of a time, from the largest, in seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// The time without an uplink after which a device counts as silent: one minute to 366 days, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct SilentAfter(u64);

/// A text or number is no such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time from 1m to 366d is needed, such as 90m, 2h or 7d")]
pub struct InvalidSilentAfter;

impl SilentAfter {
    /// The shortest one.
    pub const MIN: Self = Self(60);
    /// The longest one.
    pub const MAX: Self = Self(366 * 86_400);

    /// Its number of seconds.
    pub fn as_secs(self) -> u64 {
        self.0
    }

    /// The same as a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }

    /// Reads a time, or `off` for none, as the attribute [`SILENT_AFTER`] of a device has it.
    pub fn parse_or_off(text: &str) -> Result<Option<Self>, InvalidSilentAfter> {
        if text == OFF { Ok(None) } else { text.parse().map(Some) }
    }

    /// The time of a device with these attributes in an application with this time; none if it never counts as silent.
    /// A value that was stored before it had a meaning has none.
    pub fn of_device(self, attributes: &BTreeMap<String, String>) -> Option<Self> {
        match attributes.get(SILENT_AFTER).map(|value| Self::parse_or_off(value)) {
            Some(Ok(own)) => own,
            Some(Err(_)) | None => Some(self),
        }
    }
}

impl TryFrom<u64> for SilentAfter {
    type Error = InvalidSilentAfter;

    fn try_from(seconds: u64) -> Result<Self, InvalidSilentAfter> {
        let time = Self(seconds);
        if (Self::MIN..=Self::MAX).contains(&time) { Ok(time) } else { Err(InvalidSilentAfter) }
    }
}

impl From<SilentAfter> for u64 {
    fn from(time: SilentAfter) -> Self {
        time.0
    }
}

impl FromStr for SilentAfter {
    type Err = InvalidSilentAfter;

    fn from_str(text: &str) -> Result<Self, InvalidSilentAfter> {
        let mut chars = text.chars();
        let unit = chars.next_back().and_then(|last| UNITS.into_iter().find(|(unit, _)| *unit == last));
        let (_, seconds) = unit.ok_or(InvalidSilentAfter)?;
        let number = chars.as_str();
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidSilentAfter);
        }
        let number: u64 = number.parse().map_err(|_| InvalidSilentAfter)?;
        number.checked_mul(seconds).ok_or(InvalidSilentAfter)?.try_into()
    }
}

impl fmt::Display for SilentAfter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.into_iter().find(|(_, seconds)| self.0.is_multiple_of(*seconds));
        let (unit, seconds) = whole.unwrap_or(('s', 1));
        write!(out, "{}{unit}", self.0 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_unit_and_is_shown_in_the_largest() {
        for (text, seconds, shown) in
            [("60s", 60, "1m"), ("90m", 5400, "90m"), ("120m", 7200, "2h"), ("48h", 172_800, "2d"), ("061s", 61, "61s")]
        {
            let time: SilentAfter = text.parse().unwrap();
            assert_eq!((time.as_secs(), time.to_string().as_str()), (seconds, shown), "{text}");
        }
        let too_large = format!("{}d", u64::MAX);
        for text in ["", "s", "59s", "367d", "2", "2 h", "-2h", "+2h", "2H", "1h30m", "☂", "off", &too_large] {
            assert_eq!(text.parse::<SilentAfter>(), Err(InvalidSilentAfter), "{text}");
        }
    }

    #[test]
    fn a_device_may_have_another_time_or_none() {
        let time = |text: &str| text.parse::<SilentAfter>().unwrap();
        let of = |value: &str| time("2h").of_device(&[(SILENT_AFTER.to_owned(), value.to_owned())].into());
        assert_eq!([of("7d"), of("off")], [Some(time("7d")), None]);
        assert_eq!([of("often"), time("2h").of_device(&BTreeMap::new())], [Some(time("2h")); 2]);
    }
}
