//! The result of a load test, and the verdict on it.

use std::time::Duration;

use super::device::Totals;
use crate::output::{Cell, Record};

/// Below this part of the rate, it was not reached.
const REACHED: f64 = 0.95;
/// This program is too slow if it is later than this with half of the uplinks.
const DELAY_MAX: Duration = Duration::from_millis(20);

/// The bounds of latencies in the histogram, in milliseconds.
const BOUNDS_MS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

pub(super) struct Target {
    pub(super) devices: u32,
    pub(super) rate: u32,
}

pub(super) struct LoadResult {
    target: Target,
    all: Totals,
    time: Duration,
    /// Messages that this program was too slow to receive.
    pub(super) missed: u64,
}

impl LoadResult {
    pub(super) fn new(target: Target) -> Self {
        Self { target, all: Totals::default(), time: Duration::ZERO, missed: 0 }
    }

    pub(super) fn add(&mut self, device: Totals) {
        let all = &mut self.all;
        all.sent += device.sent;
        all.lost += device.lost;
        all.late += device.late;
        all.duplicates += device.duplicates;
        all.failures += device.failures;
        all.refused += device.refused;
        all.held_up += device.held_up;
        all.latencies.extend(device.latencies);
        all.delays.extend(device.delays);
        all.refusal = device.refusal.or(all.refusal.take());
    }

    /// Ends the test, which took this long.
    pub(super) fn end(&mut self, time: Duration) {
        self.time = time;
        self.all.latencies.sort_unstable();
        self.all.delays.sort_unstable();
    }

    pub(super) fn record(&self) -> Record {
        let Totals { sent, lost, late, duplicates, failures, refused, .. } = self.all;
        let latency = |part| milliseconds(quantile(&self.all.latencies, part));
        Record::new([
            (("devices", "Devices"), number(self.target.devices.into())),
            (("seconds", "Seconds"), decimal(self.time.as_secs_f64())),
            (("rate", "Rate wanted"), number(self.target.rate.into())),
            (("achieved_rate", "Rate achieved"), decimal(self.rate())),
            (("sent", "Sent"), number(sent)),
            (("delivered", "Delivered"), number(self.all.latencies.len() as u64 + late)),
            (("lost", "Lost"), number(lost)),
            (("late", "Late"), number(late)),
            (("duplicates", "Duplicates"), number(duplicates)),
            (("failed_functions", "Functions failed"), number(failures)),
            (("refused", "Refused"), number(refused)),
            (("latency_p50_ms", "Latency p50, ms"), latency(0.5)),
            (("latency_p90_ms", "p90, ms"), latency(0.9)),
            (("latency_p99_ms", "p99, ms"), latency(0.99)),
            (("latency_max_ms", "max, ms"), latency(1.0)),
            (("limit", "Limit"), self.limit().into()),
        ])
    }

    /// Returns the number of uplinks for each range of latencies in milliseconds, from the fastest to the slowest.
    pub(super) fn histogram(&self) -> Vec<(String, usize)> {
        let (mut rest, mut rows, mut above) = (self.all.latencies.as_slice(), Vec::new(), 0);
        for below in BOUNDS_MS {
            let (these, others) = rest.split_at(rest.partition_point(|it| *it < Duration::from_millis(below)));
            rows.push((format!("{above} to {below}"), these.len()));
            (rest, above) = (others, below);
        }
        rows.push((format!("{above} and more"), rest.len()));
        let is_empty = |row: &(String, usize)| row.1 == 0;
        let end = rows.iter().rposition(|row| !is_empty(row)).map_or(0, |last| last + 1);
        rows.drain(..end).skip_while(is_empty).collect()
    }

    /// Returns the reason why the test failed; `None` if every uplink was accepted and delivered once.
    pub(super) fn verdict(&self) -> Option<String> {
        let Totals { lost, duplicates, refused, ref refusal, .. } = self.all;
        if let Some(refusal) = refusal {
            return Some(format!("{refused} uplinks were refused, the last one with: {refusal}"));
        }
        (lost + duplicates > 0).then(|| format!("{lost} uplinks were lost, and {duplicates} delivered twice"))
    }

    /// Returns what kept the test from reaching its rate; empty if it was reached, or the cause is not known.
    fn limit(&self) -> String {
        let is_slow = quantile(&self.all.delays, 0.5).is_some_and(|delay| delay > DELAY_MAX);
        let text = match () {
            () if self.missed > 0 => "this program: it missed messages, so run it on another machine",
            () if is_slow => "this program: it could not send in time, so run it on another machine",
            () if self.rate() >= REACHED * f64::from(self.target.rate) => "",
            () if self.all.refused > 0 => "the server refused uplinks",
            () if self.all.held_up > 0 => {
                "the devices, each of which waits for its last uplink: use more of them, or the server is the limit"
            }
            () => "",
        };
        text.to_owned()
    }

    fn rate(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.all.sent as f64 / self.time.as_secs_f64() }
    }
}

/// Returns a quantile of sorted values; `None` without values.
fn quantile(sorted: &[Duration], part: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}

fn milliseconds(duration: Option<Duration>) -> Cell {
    duration.map_or_else(|| Cell::new("", serde_json::Value::Null), |duration| decimal(duration.as_secs_f64() * 1e3))
}

fn decimal(value: f64) -> Cell {
    let rounded = (value * 100.0).round() / 100.0;
    Cell::new(format!("{rounded}"), rounded)
}

fn number(number: u64) -> Cell {
    Cell::new(number.to_string(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(totals: Totals, rate: u32) -> LoadResult {
        let mut result = LoadResult::new(Target { devices: 1, rate });
        result.add(totals);
        result.end(Duration::from_secs(10));
        result
    }

    #[test]
    fn quantiles_are_of_all_uplinks() {
        let sorted: Vec<_> = (0..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&sorted, 0.5), Some(Duration::from_millis(50)));
        assert_eq!(quantile(&sorted, 1.0), Some(Duration::from_millis(100)));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_histogram_has_every_uplink() {
        let latencies = [0, 3, 4, 12, 20_000].map(Duration::from_millis).to_vec();
        let histogram = result(Totals { latencies, ..Totals::default() }, 1).histogram();
        let counts: Vec<_> = histogram.iter().map(|(range, count)| (range.as_str(), *count)).collect();
        assert_eq!(counts[..4], [("0 to 1", 1), ("1 to 2", 0), ("2 to 5", 2), ("5 to 10", 0)]);
        assert_eq!((counts[4], counts[counts.len() - 1]), (("10 to 20", 1), ("10000 and more", 1)));
        let latencies = [3, 4].map(Duration::from_millis).to_vec();
        let histogram = result(Totals { latencies, ..Totals::default() }, 1).histogram();
        assert_eq!(histogram, [("2 to 5".to_owned(), 2)]);
        assert!(result(Totals::default(), 1).histogram().is_empty());
    }

    #[test]
    fn the_limit_is_named() {
        let late = vec![Duration::from_millis(300)];
        for (totals, rate, limit) in [
            (Totals { sent: 100, held_up: 5, ..Totals::default() }, 10, ""),
            (Totals { sent: 100, held_up: 5, ..Totals::default() }, 20, "the devices"),
            (Totals { sent: 100, refused: 100, ..Totals::default() }, 20, "the server"),
            (Totals { sent: 100, delays: late, ..Totals::default() }, 20, "this program"),
        ] {
            let found = result(totals, rate).limit();
            assert!(found.starts_with(limit) && found.is_empty() == limit.is_empty(), "{found}, not {limit}");
        }
    }

    #[test]
    fn a_test_fails_if_an_uplink_is_lost_twice_there_or_refused() {
        assert_eq!(result(Totals { sent: 3, late: 1, ..Totals::default() }, 1).verdict(), None);
        for totals in [
            Totals { lost: 1, ..Totals::default() },
            Totals { duplicates: 1, ..Totals::default() },
            Totals { refused: 1, refusal: Some("full".to_owned()), ..Totals::default() },
        ] {
            assert!(result(totals, 1).verdict().is_some());
        }
    }
}
