//! Times as people read them: to the second, in the time zone of this machine.

use std::fmt::Display;

use chrono::{Local, TimeZone};
use types::Timestamp;

/// `time` in the time zone of this machine, or in that of the environment variable `TZ`.
pub(super) fn local_time(time: Timestamp) -> String {
    in_zone(time, &Local)
}

/// All times have the same width, so that columns are aligned.
fn in_zone<Z>(time: Timestamp, zone: &Z) -> String
where
    Z: TimeZone<Offset: Display>,
{
    zone.timestamp_nanos(time.as_nanos()).format("%d %b %y %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    #[test]
    fn a_time_is_shown_to_the_second_as_the_clock_on_the_wall_shows_it() {
        let time = Timestamp::from_millis(1_484_664_429_740);
        for (hours, text) in [(0, "17 Jan 17 14:47:09"), (10, "18 Jan 17 00:47:09"), (-15, "16 Jan 17 23:47:09")] {
            assert_eq!(in_zone(time, &FixedOffset::east_opt(hours * 3600).unwrap()), text);
        }
        let early = in_zone(Timestamp::from_nanos(i64::MIN), &FixedOffset::east_opt(0).unwrap());
        assert_eq!(early.len(), "17 Jan 17 14:47:09".len(), "{early}");
    }
}
