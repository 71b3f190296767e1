//! Event rates: exponential moving averages over one, five and fifteen minutes, like the load average of a machine.
//!
//! Not a metrics crate: v2 clients expect exactly the averages of its Go library.

use std::time::Duration;

use api::api::Rates;
use parking_lot::Mutex;
use types::Timestamp;

const TICK: Duration = Duration::from_secs(5);
/// The time constants of the averages, in minutes.
const MINUTES: [f64; 3] = [1.0, 5.0, 15.0];

/// The handler's traffic since it started.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Accepted uplinks.
    pub uplink: Meter,
    /// Scheduled downlinks.
    pub downlink: Meter,
    /// Devices that joined.
    pub activations: Meter,
}

/// Measures how often one event happens.
#[derive(Debug, Default)]
pub struct Meter {
    state: Mutex<MovingAverages>,
}

#[derive(Debug, Default)]
struct MovingAverages {
    uncounted: u32,
    /// Time of the last tick; none before the first event.
    ticked: Option<Timestamp>,
    /// Events per second; none before the first tick.
    averages: Option<[f64; 3]>,
}

impl Meter {
    pub(crate) fn mark(&self, now: Timestamp) {
        self.update(now, |state| state.uncounted = state.uncounted.saturating_add(1));
    }

    pub(crate) fn rates(&self, now: Timestamp) -> Rates {
        let averages = self.update(now, |state| state.averages).unwrap_or_default();
        let [rate1, rate5, rate15] = averages.map(|average| average as f32);
        Rates { rate1, rate5, rate15 }
    }

    fn update<T>(&self, now: Timestamp, update: impl FnOnce(&mut MovingAverages) -> T) -> T {
        let mut state = self.state.lock();
        state.tick(now);
        update(&mut state)
    }
}

impl MovingAverages {
    /// Catches up on all ticks that are due. The uncounted events belong to the first of them, the others had none.
    fn tick(&mut self, now: Timestamp) {
        // After the clock was set back, start over instead of waiting until it catches up.
        let ticked = self.ticked.filter(|ticked| *ticked <= now).unwrap_or(now);
        let ticks = now.since(ticked).as_secs() / TICK.as_secs();
        self.ticked = Some(ticked.plus(TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))));
        let Some(idle_ticks) = ticks.checked_sub(1) else { return };
        let rate = f64::from(std::mem::take(&mut self.uncounted)) / TICK.as_secs_f64();
        let before = self.averages.unwrap_or([rate; 3]);
        let mut averages = before;
        for (average, minutes) in averages.iter_mut().zip(MINUTES) {
            let kept = |ticks: u64| (-(ticks as f64) * TICK.as_secs_f64() / (minutes * 60.0)).exp();
            *average = (rate + (*average - rate) * kept(1)) * kept(idle_ticks);
        }
        self.averages = Some(averages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn rounded(meter: &Meter, seconds: i64) -> [f32; 3] {
        let Rates { rate1, rate5, rate15 } = meter.rates(at(seconds));
        [rate1, rate5, rate15].map(|rate| (rate * 1000.0).round() / 1000.0)
    }

    // Conformance: GetStatus, with rates over one, five and fifteen minutes
    #[test]
    fn averages_rise_with_events_and_decay() {
        let meter = Meter::default();
        assert_eq!(rounded(&meter, 100), [0.0; 3]);
        for _ in 0..15 {
            meter.mark(at(101));
        }
        assert_eq!(rounded(&meter, 104), [0.0; 3], "unknown before the first tick");
        assert_eq!(rounded(&meter, 105), [3.0; 3]);
        // As for a load average: after a minute, 1/e of the first average is left.
        assert_eq!(rounded(&meter, 165), [1.104, 2.456, 2.807]);
        assert_eq!(rounded(&meter, 100_000), [0.0; 3]);
    }

    #[test]
    fn averages_do_not_depend_on_how_often_they_are_read() {
        let (often, rarely) = (Meter::default(), Meter::default());
        for second in 0..600 {
            for meter in [&often, &rarely] {
                meter.mark(at(second));
            }
            often.rates(at(second));
        }
        assert_eq!(often.rates(at(600)), rarely.rates(at(600)));
        assert_eq!(rounded(&rarely, 600), [1.0; 3]);
        often.mark(at(0));
        assert_eq!(rounded(&often, 4), [1.0; 3], "it stopped when the clock was set back");
    }
}
