//! What many times say together: quantiles, with an interval for the median, and a histogram.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The 97.5th percentile of the normal distribution.
const Z_95: f64 = 1.96;
/// Bars of a histogram for each doubling of the time.
const BARS_PER_DOUBLING: f64 = 6.0;

/// Times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// How many there are.
    pub runs: usize,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The lower end of the interval that has the true median in it with a probability of 95%.
    pub median_low: f64,
    /// The upper end.
    pub median_high: f64,
    /// The mean.
    pub mean: f64,
    /// The 99th percentile.
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
            p99: times[last * 99 / 100],
            max: times[last],
        }
    }

    /// How many a core can do in a second.
    pub fn per_second(&self) -> f64 {
        1e6 / self.mean.max(f64::MIN_POSITIVE)
    }

    /// Whether the true medians differ, as far as the intervals tell.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        self.median_low > other.median_high || self.median_high < other.median_low
    }
}

/// How many times lie within each of some ranges, each as wide as the one below times a constant.
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
    fn a_histogram_has_no_gaps() {
        let mut histogram = Histogram::default();
        [1.0, 1.01, 2.1, 0.0].into_iter().for_each(|time| histogram.add(time));
        let bars = histogram.bars();
        assert_eq!(bars.iter().map(|(.., count)| count).sum::<usize>(), 4);
        assert!(bars.windows(2).all(|pair| pair[0].1 == pair[1].0) && bars.len() > 12);
    }
}
