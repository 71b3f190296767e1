//! Counts of uplinks and failures since an application has a candidate, and the decision to end it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::DevId;

use super::{Percentage, Trial, WHOLE};

/// The failures of how many devices are told apart.
const DEVICES_MAX: usize = 64;

/// Uplinks and failures of a candidate and of the live version.
///
/// Each process counts its own, and adds them to those in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The version of the candidate.
    pub version: u32,
    /// Of the devices that have the live version.
    pub live: Tally,
    /// Of the devices that have the candidate.
    pub candidate: Tally,
    /// Number of uplinks on which the candidate failed, by device.
    failing: BTreeMap<DevId, u64>,
}

/// Uplinks and failures of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of uplinks.
    pub uplinks: u64,
    /// Number of uplinks on which a function failed, or the validator returned false.
    pub failed: u64,
    /// Fuel that all of them used.
    pub fuel: u64,
}

impl Counts {
    /// No uplinks, since an application has this candidate.
    pub fn new(version: u32) -> Self {
        Self { version, ..Self::default() }
    }

    /// Counts an uplink of a device that has the candidate.
    pub fn count_candidate(&mut self, dev_id: &DevId, has_failed: bool, fuel: u64) {
        self.candidate.count(has_failed, fuel);
        if has_failed {
            self.count_failures(dev_id, 1);
        }
    }

    /// Adds what another process counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.live.add(other.live);
        self.candidate.add(other.candidate);
        other.failing.iter().for_each(|(dev_id, failed)| self.count_failures(dev_id, *failed));
    }

    fn count_failures(&mut self, dev_id: &DevId, failed: u64) {
        if let Some(count) = self.failing.get_mut(dev_id) {
            *count = count.saturating_add(failed);
        } else if self.failing.len() < DEVICES_MAX {
            self.failing.insert(dev_id.clone(), failed);
        }
    }

    /// Returns true if the candidate fails so much more than the live version that it is to be abandoned.
    pub(super) fn is_worse(&self, trial: &Trial) -> bool {
        self.candidate.is_worse(self.live, trial)
    }

    /// The same if the failures of the device on which it fails most do not count: one device may be broken.
    pub(super) fn is_worse_without_one_device(&self, trial: &Trial) -> bool {
        let worst = self.worst().map_or(0, |(_, failed)| *failed);
        let Tally { uplinks, failed, fuel } = self.candidate;
        // Uplinks that do not count are not missing either.
        let rest = Tally { uplinks: uplinks.saturating_sub(worst), failed: failed.saturating_sub(worst), fuel };
        let any_number = Trial { uplinks_min: 1, ..*trial };
        rest.is_worse(self.live, &any_number)
    }

    /// The device on which the candidate fails most.
    pub(super) fn worst_device(&self) -> Option<&DevId> {
        self.worst().map(|(dev_id, _)| dev_id)
    }

    fn worst(&self) -> Option<(&DevId, &u64)> {
        self.failing.iter().max_by_key(|(_, failed)| **failed)
    }
}

impl Tally {
    /// Counts an uplink.
    pub fn count(&mut self, has_failed: bool, fuel: u64) {
        self.add(Self { uplinks: 1, failed: has_failed.into(), fuel });
    }

    fn add(&mut self, other: Self) {
        self.uplinks = self.uplinks.saturating_add(other.uplinks);
        self.failed = self.failed.saturating_add(other.failed);
        self.fuel = self.fuel.saturating_add(other.fuel);
    }

    /// The fuel of an uplink on average.
    pub fn mean_fuel(self) -> u64 {
        self.fuel.checked_div(self.uplinks).unwrap_or_default()
    }

    /// Returns true if it fails more than `live` by the margin, and there are enough uplinks of both.
    fn is_worse(self, live: Self, trial: &Trial) -> bool {
        let Percentage(margin) = trial.margin;
        let enough = self.uplinks.min(live.uplinks) >= trial.uplinks_min.into();
        let [uplinks, failed] = [self.uplinks, self.failed].map(i128::from);
        let [live_uplinks, live_failed] = [live.uplinks, live.failed].map(i128::from);
        // The difference of two fractions, without dividing. The numbers are far from what an i128 holds.
        let difference = (failed * live_uplinks).saturating_sub(live_failed * uplinks);
        let limit = (uplinks * live_uplinks).saturating_mul(i128::from(margin));
        enough && difference.saturating_mul(i128::from(WHOLE)) > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(margin: f64) -> Trial {
        Trial::new(5.0, Some(margin), Some(20)).unwrap()
    }

    /// Uplinks of the live version and of the candidate, with how many failed, by device.
    fn counts(live: (u64, u64), candidate: &[(u64, u64)]) -> Counts {
        let mut counts = Counts::new(2);
        (0..live.0).for_each(|number| counts.live.count(number < live.1, 10));
        for (device, (uplinks, failed)) in candidate.iter().enumerate() {
            let dev_id = format!("dev-{device}").parse().unwrap();
            (0..*uplinks).for_each(|number| counts.count_candidate(&dev_id, number < *failed, 20));
        }
        counts
    }

    #[test]
    fn a_candidate_is_worse_if_it_fails_more_by_the_margin_and_there_are_enough_uplinks() {
        for (live, candidate, margin, is_worse) in [
            ((100, 0), (20, 2), 5.0, true),
            ((100, 0), (20, 1), 5.0, false),
            ((100, 0), (20, 1), 0.0, true),
            ((100, 0), (20, 0), 0.0, false),
            ((100, 50), (100, 55), 5.0, false),
            ((100, 50), (100, 56), 5.0, true),
            ((100, 100), (100, 50), 5.0, false),
            ((100, 0), (19, 19), 5.0, false),
            ((19, 0), (100, 100), 5.0, false),
            ((100, 0), (100, 100), 100.0, false),
            ((u64::MAX / 2, 0), (20, 20), 5.0, true),
        ] {
            let tally = |(uplinks, failed)| Tally { uplinks, failed, fuel: 0 };
            assert_eq!(tally(candidate).is_worse(tally(live), &trial(margin)), is_worse, "{live:?} {candidate:?}");
        }
    }

    #[test]
    fn the_failures_of_one_device_can_be_left_out() {
        for (candidate, without) in [
            (&[(40, 40)][..], false),
            (&[(20, 20), (20, 0)], false),
            (&[(20, 20), (20, 1)], false),
            (&[(20, 20), (20, 3)], true),
            (&[(20, 2), (20, 2), (20, 2)], true),
        ] {
            let counts = counts((100, 0), candidate);
            assert!(counts.is_worse(&trial(5.0)), "{candidate:?}");
            assert_eq!(counts.is_worse_without_one_device(&trial(5.0)), without, "{candidate:?}");
        }
    }

    #[test]
    fn what_several_processes_count_is_added_and_few_devices_are_told_apart() {
        let mut sum = counts((10, 1), &[(10, 3), (10, 4)]);
        sum.add(&counts((20, 2), &[(10, 3)]));
        assert_eq!((sum.live, sum.live.mean_fuel()), (Tally { uplinks: 30, failed: 3, fuel: 300 }, 10));
        assert_eq!(sum.candidate, Tally { uplinks: 30, failed: 10, fuel: 600 });
        assert_eq!(sum.worst_device().unwrap().as_str(), "dev-0");
        let many = counts((1, 0), &[(1, 1); 100]);
        assert_eq!((many.candidate.failed, many.failing.len()), (100, DEVICES_MAX));
        assert_eq!(Tally::default().mean_fuel(), 0);
    }
}
