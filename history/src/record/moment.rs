//! Points in time as history files have them: milliseconds since 1970, and the day of those.

use types::Timestamp;

/// Milliseconds of a day.
pub(crate) const DAY_MS: u64 = 24 * 3600 * 1000;

/// Milliseconds since 1970; zero for earlier times.
pub(crate) fn millis(time: Timestamp) -> u64 {
    time.as_millis().try_into().unwrap_or(0)
}

/// The first millisecond that does not begin before this time.
pub(crate) fn millis_up(time: Timestamp) -> u64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(0);
    nanos.div_ceil(1_000_000)
}

/// The time that these milliseconds are.
pub(crate) fn timestamp(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis.try_into().unwrap_or(i64::MAX))
}

/// A time as two columns have it: its milliseconds, and the nanoseconds that remain.
pub(crate) fn parts(time: Timestamp) -> (i64, u32) {
    let nanos = time.as_nanos();
    // The rest is less than a million.
    (nanos.div_euclid(1_000_000), nanos.rem_euclid(1_000_000) as u32)
}

/// The time of the columns that have its milliseconds and the rest. Those of a damaged file may be of no time.
pub(crate) fn of_parts(millis: i64, nanos: i64) -> Timestamp {
    // The product may be too low where the sum is not: in the first millisecond that there is.
    Timestamp::from_nanos(millis.wrapping_mul(1_000_000).wrapping_add(nanos))
}

/// The day of a time, as in `2026-11-28`, UTC.
pub(crate) fn day(millis: u64) -> String {
    timestamp(millis).to_rfc3339().chars().take(10).collect()
}

/// Returns the start of that day, in milliseconds since 1970; none if the text is not a day.
pub(crate) fn day_start(day: &str) -> Option<u64> {
    format!("{day}T00:00:00Z").parse().ok().map(millis)
}

/// Returns the end of that day: the first millisecond of the next.
pub(crate) fn day_end(day: &str) -> Option<u64> {
    Some(day_start(day)?.saturating_add(DAY_MS))
}

/// So many days before a time.
pub(crate) fn days_before(millis: u64, days: u32) -> u64 {
    millis.saturating_sub(u64::from(days).saturating_mul(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_same_after_two_columns_had_it() {
        for nanos in [i64::MIN, -1_000_001, -1, 0, 1, 999_999, 1_000_000, 1_500_000_000_000_000_001, i64::MAX] {
            let time = Timestamp::from_nanos(nanos);
            let (millis, rest) = parts(time);
            assert!(rest < 1_000_000, "{nanos}");
            assert_eq!(of_parts(millis, rest.into()), time, "{nanos}");
        }
        assert_eq!(parts(Timestamp::from_nanos(-1)), (-1, 999_999));
    }

    #[test]
    fn a_day_has_its_milliseconds() {
        let noon = millis("2026-11-28T12:00:00Z".parse().unwrap());
        assert_eq!(day(noon), "2026-11-28");
        assert_eq!(day_start("2026-11-28"), Some(noon - DAY_MS / 2));
        assert_eq!(day_end("2026-11-28"), Some(noon + DAY_MS / 2));
        assert_eq!(day(day_end("2026-11-28").unwrap()), "2026-11-29");
        assert_eq!(days_before(noon, 1), noon - DAY_MS);
        for text in ["", "2026-13-01", "2026-11-28T00", "x"] {
            assert_eq!(day_start(text), None, "{text}");
        }
    }
}
