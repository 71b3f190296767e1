//! Time since or until something, in words.

use std::time::Duration;

use types::Timestamp;

/// The units of time from the largest, in seconds.
const UNITS: [(&str, u64); 5] =
    [("year", 31_556_952), ("month", 2_629_746), ("day", 86_400), ("hour", 3600), ("minute", 60)];

/// `time` relative to `now`, to one unit.
pub(super) fn describe(time: Timestamp, now: Timestamp) -> String {
    match (now.since(time), time.since(now)) {
        (Duration::ZERO, ahead) => match count(ahead) {
            Some(count) => format!("in {count}"),
            None => "now".to_owned(),
        },
        (past, _) => count(past).map_or_else(|| "just now".to_owned(), |count| format!("{count} ago")),
    }
}

/// `None` for less than a minute.
fn count(duration: Duration) -> Option<String> {
    let (unit, seconds) = UNITS.into_iter().find(|(_, seconds)| duration.as_secs() >= *seconds)?;
    let count = duration.as_secs() / seconds;
    Some(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_times_in_one_unit() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for (seconds, text) in [
            (0, "now"),
            (-59, "just now"),
            (59, "now"),
            (-60, "1 minute ago"),
            (-7199, "1 hour ago"),
            (7200, "in 2 hours"),
            (-86_400 * 29, "29 days ago"),
            (-86_400 * 800, "2 years ago"),
        ] {
            let time = Timestamp::from_millis(now.as_millis() + seconds * 1000);
            assert_eq!(describe(time, now), text, "{seconds}");
        }
    }
}
