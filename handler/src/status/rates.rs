//! How often things happen: averages that fade over one, five and fifteen minutes, like the load of a machine.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::api::Rates;
use types::Timestamp;

/// How often averages are brought up to date.
const TICK: Duration = Duration::from_secs(5);
/// Over how many minutes each of them fades.
const MINUTES: [f64; 3] = [1.0, 5.0, 15.0];

/// What the handler does for devices, counted since it started.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Uplinks that were taken.
    pub uplink: Meter,
    /// Downlinks that were taken from applications.
    pub downlink: Meter,
    /// Devices that joined.
    pub activations: Meter,
}

/// How often one thing happens.
#[derive(Debug, Default)]
pub struct Meter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What happened since the last tick.
    uncounted: u32,
    /// When that was; none before the first thing happened.
    ticked: Option<Timestamp>,
    /// In a second; none before the first tick.
    averages: Option<[f64; 3]>,
}

impl Meter {
    /// It happened.
    pub fn mark(&self, now: Timestamp) {
        self.change(now, |state| state.uncounted = state.uncounted.saturating_add(1));
    }

    /// How often it happens, in a second.
    pub fn rates(&self, now: Timestamp) -> Rates {
        let averages = self.change(now, |state| state.averages).unwrap_or_default();
        let [rate1, rate5, rate15] = averages.map(|average| average as f32);
        Rates { rate1, rate5, rate15 }
    }

    fn change<T>(&self, now: Timestamp, what: impl FnOnce(&mut State) -> T) -> T {
        // A panic elsewhere cannot leave a count half changed.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tick(now);
        what(&mut state)
    }
}

impl State {
    /// Makes up for the ticks since the last one: what happened belongs to the first of them, the others were quiet.
    fn tick(&mut self, now: Timestamp) {
        // A clock that was set back starts over, rather than standing still until it is where it was.
        let ticked = self.ticked.filter(|ticked| *ticked <= now).unwrap_or(now);
        let ticks = now.since(ticked).as_secs() / TICK.as_secs();
        self.ticked = Some(ticked.plus(TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))));
        let Some(quiet) = ticks.checked_sub(1) else { return };
        let rate = f64::from(std::mem::take(&mut self.uncounted)) / TICK.as_secs_f64();
        let before = self.averages.unwrap_or([rate; 3]);
        let mut averages = before;
        for (average, minutes) in averages.iter_mut().zip(MINUTES) {
            let kept = |ticks: u64| (-(ticks as f64) * TICK.as_secs_f64() / (minutes * 60.0)).exp();
            *average = (rate + (*average - rate) * kept(1)) * kept(quiet);
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

    fn shown(meter: &Meter, seconds: i64) -> [f32; 3] {
        let Rates { rate1, rate5, rate15 } = meter.rates(at(seconds));
        [rate1, rate5, rate15].map(|rate| (rate * 1000.0).round() / 1000.0)
    }

    #[test]
    fn averages_follow_what_happens_and_fade() {
        let meter = Meter::default();
        assert_eq!(shown(&meter, 100), [0.0; 3]);
        for _ in 0..15 {
            meter.mark(at(101));
        }
        assert_eq!(shown(&meter, 104), [0.0; 3], "nothing is known before the first tick");
        assert_eq!(shown(&meter, 105), [3.0; 3]);
        // The figures of the load of a machine: after a minute 1/e is left of the first.
        assert_eq!(shown(&meter, 165), [1.104, 2.456, 2.807]);
        assert_eq!(shown(&meter, 100_000), [0.0; 3]);
    }

    #[test]
    fn asking_often_or_seldom_gives_the_same() {
        let (often, seldom) = (Meter::default(), Meter::default());
        for second in 0..600 {
            for meter in [&often, &seldom] {
                meter.mark(at(second));
            }
            often.rates(at(second));
        }
        assert_eq!(often.rates(at(600)), seldom.rates(at(600)));
        assert_eq!(shown(&seldom, 600), [1.0; 3]);
        often.mark(at(0));
        assert_eq!(shown(&often, 4), [1.0; 3], "a clock that was set back does not stop it");
    }
}
