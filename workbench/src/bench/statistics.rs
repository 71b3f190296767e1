//! Statistics of many times: quantiles, with an interval for the median, and a histogram.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The 97.5th percentile of the normal distribution.
const Z_95: f64 = 1.96;
/// With fewer times, even the interval from the shortest to the longest has the true median in it with less than 95%.
const RUNS_MIN: usize = 6;
/// Bars of a histogram for each doubling of the time.
const BARS_PER_DOUBLING: f64 = 6.0;

/// Times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Number of times.
    pub runs: usize,
    /// The shortest.
    pub min: f64,
    /// Half of the times are shorter.
    pub median: f64,
    /// The lower end of the interval that has the true median in it with a probability of 95%: with fewer than six runs,
    /// there is none, and this is the shortest.
    pub median_low: f64,
    /// The upper end, or the longest.
    pub median_high: f64,
    /// Sum divided by number.
    pub mean: f64,
    /// The 99th percentile: of fewer than a hundred times, the longest.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Summary {
    /// Summarizes times, which are sorted. All zero if there are none.
    ///
    /// The interval is between the times whose ranks lie 1.96 standard deviations of a binomial distribution around the
    /// middle: that holds whatever the distribution of the times, which is far from normal.
    pub fn of(times: &mut [f64]) -> Self {
        times.sort_by(f64::total_cmp);
        let Some(last) = times.len().checked_sub(1) else { return Self::default() };
        let at = |rank: f64| times[(rank.max(0.0) as usize).min(last)];
        let (middle, spread) = (times.len() as f64 / 2.0, Z_95 * (times.len() as f64).sqrt() / 2.0);
        Self {
            runs: times.len(),
            min: times[0],
            median: times[last / 2],
            median_low: at((middle - spread).floor()),
            median_high: at((middle + spread).ceil()),
            mean: times.iter().sum::<f64>() / times.len() as f64,
            p99: times[(times.len() * 99).div_ceil(100) - 1],
            max: times[last],
        }
    }

    /// Returns the number of messages that a core can process in a second.
    pub fn per_second(&self) -> f64 {
        1e6 / self.mean.max(f64::MIN_POSITIVE)
    }

    /// Returns true if there are enough times for an interval.
    pub(crate) fn has_interval(&self) -> bool {
        self.runs >= RUNS_MIN
    }

    /// Returns true if the true medians differ, as far as the intervals tell.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        if !self.has_interval() || !other.has_interval() {
            return false;
        }
        self.median_low > other.median_high || self.median_high < other.median_low
    }
}

/// Number of times in each of some ranges, each as wide as the one below times a constant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram(BTreeMap<i32, usize>);

impl Histogram {
    pub(crate) fn add(&mut self, microseconds: f64) {
        let bar = (microseconds.max(1e-3).log2() * BARS_PER_DOUBLING).floor() as i32;
        *self.0.entry(bar).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(bar, count)| *self.0.entry(*bar).or_default() += count);
    }

    /// Each range from the lowest to the highest, in microseconds, with its count.
    pub(crate) fn bars(&self) -> Vec<(f64, f64, usize)> {
        let (Some((first, _)), Some((last, _))) = (self.0.first_key_value(), self.0.last_key_value()) else {
            return Vec::new();
        };
        let start = |bar: i32| (f64::from(bar) / BARS_PER_DOUBLING).exp2();
        let bar = |bar: i32| (start(bar), start(bar + 1), self.0.get(&bar).copied().unwrap_or_default());
        (*first..=*last).map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_does_not_depend_on_the_order() {
        let mut times: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&mut times);
        assert_eq!((summary.min, summary.median, summary.p99, summary.max), (1.0, 50.0, 99.0, 100.0));
        assert_eq!((summary.median_low, summary.median_high, summary.mean), (41.0, 61.0, 50.5));
        assert_eq!(Summary::of(&mut []), Summary::default());
        let one = Summary::of(&mut [4.0]);
        assert_eq!((one.median_low, one.median_high, one.p99, one.per_second()), (4.0, 4.0, 4.0, 250_000.0));
    }

    #[test]
    fn only_intervals_apart_make_a_difference() {
        let around = |middle: f64| Summary::of(&mut (0..100).map(|step| middle + f64::from(step)).collect::<Vec<_>>());
        assert!(!around(10.0).differs_from(&around(25.0)) && around(10.0).differs_from(&around(40.0)));
        assert!(around(40.0).differs_from(&around(10.0)));
    }

    #[test]
    fn few_times_have_no_interval_and_the_longest_is_not_hidden() {
        let of = |count: u32, first: u32| Summary::of(&mut (first..first + count).map(f64::from).collect::<Vec<_>>());
        for count in 1..=5 {
            assert!(!of(count, 0).has_interval() && !of(count, 0).differs_from(&of(100, 1000)), "{count}");
            assert!(!of(100, 0).differs_from(&of(count, 1000)), "{count}");
        }
        let six = of(6, 0);
        assert!(six.has_interval() && six.differs_from(&of(6, 1000)));
        assert_eq!((six.median_low, six.median_high, six.p99), (0.0, 5.0, 5.0));
        for (count, p99) in [(1, 0.0), (99, 98.0), (100, 98.0), (101, 99.0), (1000, 989.0)] {
            assert_eq!(of(count, 0).p99, p99, "{count}");
        }
    }

    #[test]
    fn a_histogram_has_no_gaps() {
        let mut histogram = Histogram::default();
        [1.0, 1.01, 2.1, 0.0].into_iter().for_each(|time| histogram.add(time));
        let bars = histogram.bars();
        assert_eq!(bars.iter().map(|(.., count)| count).sum::<usize>(), 4);
        assert!(bars.windows(2).all(|pair| pair[0].1 == pair[1].0) && bars.len() > 12);
    }
}
