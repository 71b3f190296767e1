//! Sums over the uplinks of one application: over all, and over those of a window of time.
//!
//! The window is this half hour and the one before, which take two sums instead of one for each minute. They are those
//! of the clock, so that one moment begins the windows of all applications.

use std::time::Duration;

use types::Timestamp;

use super::failure::{LastFailure, RunFailure};
use crate::status::cost::Cost;

const HALF_HOUR_S: u64 = 1800;

/// An uplink that was converted, or could not be.
#[derive(Clone, Copy)]
pub(super) struct Converted {
    pub(super) failure: Option<RunFailure>,
    pub(super) cost: Cost,
}

/// Failures and costs of uplinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSums {
    /// Number of uplinks.
    pub uplinks: u64,
    /// Number of uplinks that could not be decoded.
    pub failed: u64,
    /// Number of uplinks for which the validator returned false.
    pub invalid: u64,
    /// Fuel that all of them used.
    pub fuel: u64,
    /// The most fuel that one of them used.
    pub fuel_max: u64,
    /// Time of all of them in their sandboxes.
    pub elapsed: Duration,
    /// The longest time of one of them.
    pub elapsed_max: Duration,
}

/// A half hour, by its number since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HalfHour(u64);

/// The uplinks of one application.
#[derive(Default)]
pub(super) struct ApplicationSums {
    total: RunSums,
    /// The uplinks of this half hour, and of the one before.
    current: RunSums,
    previous: RunSums,
    half_hour: HalfHour,
    last_failure: Option<LastFailure>,
}

impl HalfHour {
    pub(super) fn of(time: Timestamp) -> Self {
        Self(time.as_secs() / HALF_HOUR_S)
    }

    /// The beginning of the half hour before.
    pub(super) fn window_start(self) -> Timestamp {
        Timestamp::default().plus(Duration::from_secs(self.0.saturating_sub(1).saturating_mul(HALF_HOUR_S)))
    }

    fn follows(self, other: Self) -> bool {
        self.0.checked_sub(other.0) == Some(1)
    }
}

impl ApplicationSums {
    pub(super) fn count(&mut self, uplink: Converted, now: Timestamp) {
        self.turn(HalfHour::of(now));
        self.total.count(uplink);
        self.current.count(uplink);
        if let Some(failure) = uplink.failure {
            self.last_failure = Some(LastFailure { time: now, failure });
        }
    }

    /// Returns true if the last uplink was counted in this half hour.
    pub(super) fn is_of(&self, half_hour: HalfHour) -> bool {
        self.half_hour == half_hour
    }

    /// Counts the recent uplinks of another application as well.
    pub(super) fn absorb(&mut self, mut other: Self, half_hour: HalfHour) {
        other.turn(half_hour);
        self.turn(half_hour);
        self.current = self.current.plus(other.current);
        self.previous = self.previous.plus(other.previous);
        self.total = self.total.plus(other.current).plus(other.previous);
    }

    /// Returns true if there are no uplinks in the window that this half hour ends.
    pub(super) fn is_idle(&self, half_hour: HalfHour) -> bool {
        !self.is_of(half_hour) && !half_hour.follows(self.half_hour)
    }

    /// The uplinks of the window that this half hour ends.
    pub(super) fn recent(&self, half_hour: HalfHour) -> RunSums {
        if self.is_of(half_hour) {
            self.current.plus(self.previous)
        } else if half_hour.follows(self.half_hour) {
            self.current
        } else {
            RunSums::default()
        }
    }

    /// All uplinks.
    pub(super) fn total(&self) -> RunSums {
        self.total
    }

    pub(super) fn last_failure(&self) -> Option<LastFailure> {
        self.last_failure
    }

    /// Begins another half hour. After the clock was set back, the window starts over instead of waiting for the clock.
    fn turn(&mut self, half_hour: HalfHour) {
        if self.is_of(half_hour) {
            return;
        }
        self.previous = if half_hour.follows(self.half_hour) { self.current } else { RunSums::default() };
        self.current = RunSums::default();
        self.half_hour = half_hour;
    }
}

impl RunSums {
    /// Number of uplinks that failed, or that the validator refused.
    pub fn failures(&self) -> u64 {
        self.failed.saturating_add(self.invalid)
    }

    /// The fuel of an uplink on average.
    pub fn mean_fuel(&self) -> u64 {
        self.fuel.checked_div(self.uplinks).unwrap_or_default()
    }

    /// The time of an uplink in its sandbox on average.
    pub fn mean_elapsed(&self) -> Duration {
        let nanos = self.elapsed.as_nanos().checked_div(self.uplinks.into()).unwrap_or_default();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn count(&mut self, Converted { failure, cost }: Converted) {
        let is_invalid = failure == Some(RunFailure::Invalid);
        *self = self.plus(Self {
            uplinks: 1,
            failed: (failure.is_some() && !is_invalid).into(),
            invalid: is_invalid.into(),
            fuel: cost.fuel,
            fuel_max: cost.fuel,
            elapsed: cost.elapsed,
            elapsed_max: cost.elapsed,
        });
    }

    fn plus(self, other: Self) -> Self {
        Self {
            uplinks: self.uplinks.saturating_add(other.uplinks),
            failed: self.failed.saturating_add(other.failed),
            invalid: self.invalid.saturating_add(other.invalid),
            fuel: self.fuel.saturating_add(other.fuel),
            fuel_max: self.fuel_max.max(other.fuel_max),
            elapsed: self.elapsed.saturating_add(other.elapsed),
            elapsed_max: self.elapsed_max.max(other.elapsed_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::FailureKind;

    use super::*;

    fn uplink(failure: Option<RunFailure>, fuel: u64) -> Converted {
        Converted { failure, cost: Cost { fuel, elapsed: Duration::from_micros(fuel) } }
    }

    fn half_hours(number: u64) -> Timestamp {
        HalfHour(number + 1).window_start()
    }

    #[test]
    fn sums_have_failures_means_and_the_largest_cost() {
        let mut sums = ApplicationSums::default();
        for (failure, fuel) in [
            (None, 10),
            (Some(RunFailure::Function(FailureKind::Fuel)), 70),
            (Some(RunFailure::CayenneLpp), 0),
            (Some(RunFailure::Invalid), 20),
        ] {
            sums.count(uplink(failure, fuel), half_hours(7));
        }
        let total = sums.total();
        assert_eq!((total.uplinks, total.failed, total.invalid, total.failures()), (4, 2, 1, 3));
        assert_eq!((total.mean_fuel(), total.fuel_max), (25, 70));
        assert_eq!((total.mean_elapsed(), total.elapsed_max), (Duration::from_micros(25), Duration::from_micros(70)));
        assert_eq!((RunSums::default().mean_fuel(), RunSums::default().mean_elapsed()), (0, Duration::ZERO));
    }

    #[test]
    fn the_largest_cost_of_the_window_is_forgotten_with_it() {
        let mut sums = ApplicationSums::default();
        let recent = |sums: &ApplicationSums, number| sums.recent(HalfHour(number));
        sums.count(uplink(None, 900), half_hours(7));
        sums.count(uplink(None, 5), half_hours(8));
        assert_eq!((recent(&sums, 8).fuel_max, recent(&sums, 8).uplinks), (900, 2));
        sums.count(uplink(None, 6), half_hours(9));
        assert_eq!((recent(&sums, 9).fuel_max, recent(&sums, 9).uplinks), (6, 2));
        assert_eq!((recent(&sums, 10).uplinks, recent(&sums, 11).uplinks), (1, 0));
        assert_eq!((sums.total().fuel_max, sums.total().uplinks), (900, 3));
        sums.count(uplink(None, 7), half_hours(11));
        assert_eq!(recent(&sums, 11).uplinks, 1, "there were none in the half hour before");
    }

    #[test]
    fn recent_uplinks_of_another_application_are_added() {
        let of = |numbers: &[u64]| {
            let mut sums = ApplicationSums::default();
            numbers.iter().for_each(|number| sums.count(uplink(None, *number), half_hours(*number)));
            sums
        };
        let mut sums = of(&[7]);
        sums.absorb(of(&[6, 7, 8]), HalfHour(8));
        assert_eq!((sums.recent(HalfHour(8)).fuel, sums.recent(HalfHour(9)).fuel), (7 + 7 + 8, 8));
        sums.absorb(of(&[7, 8]), HalfHour(9));
        sums.absorb(of(&[7]), HalfHour(9));
        assert_eq!((sums.recent(HalfHour(9)).fuel, sums.total().fuel), (8 + 8, 7 + 7 + 8 + 8));
        assert_eq!([7, 8, 9, 10].map(|number| of(&[8]).is_idle(HalfHour(number))), [true, false, false, true]);
    }

    #[test]
    fn the_window_starts_over_when_the_clock_is_set_back() {
        let mut sums = ApplicationSums::default();
        sums.count(uplink(None, 900), half_hours(9));
        assert_eq!(sums.recent(HalfHour(4)), RunSums::default());
        sums.count(uplink(None, 5), half_hours(4));
        assert_eq!((sums.recent(HalfHour(4)).fuel, sums.total().fuel), (5, 905));
    }
}
