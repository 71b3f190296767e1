//! Time of functions, as history has it.

use std::time::Duration;

/// The time of a run in microseconds, at most 71 minutes; none if nothing ran.
pub fn microseconds(elapsed: Duration) -> Option<u32> {
    (!elapsed.is_zero()).then(|| u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_whole_microseconds_and_none_if_nothing_ran() {
        for (elapsed, expected) in [
            (Duration::ZERO, None),
            (Duration::from_nanos(34_900), Some(34)),
            (Duration::from_secs(1), Some(1_000_000)),
            (Duration::from_secs(1 << 20), Some(u32::MAX)),
        ] {
            assert_eq!(microseconds(elapsed), expected, "{elapsed:?}");
        }
    }
}
