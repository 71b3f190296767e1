//! Numbers of the last minutes: a ring of ticks, each of which counts for itself. No lock is taken, and nothing is
//! allocated.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use types::Timestamp;

/// Duration of a tick, in seconds.
const TICK_S: u64 = 10;
/// Number of ticks in the ring: five minutes, and the one that is not over.
const TICKS: usize = 31;
/// Number of bits of a number; the tick that it belongs to is in the others. The same place of the ring has the same
/// bits of a tick only after years.
const NUMBER_BITS: u32 = 44;
const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;

/// The events of the last five minutes.
pub(super) struct Window {
    start: Timestamp,
    ticks: [Tick; TICKS],
}

/// The events of a tick.
#[derive(Default)]
struct Tick {
    events: Number,
    /// Of those events, the ones whose lag is known.
    timed: Number,
    lag_ms: Number,
    lag_ms_max: Number,
}

/// A number, with the tick that it belongs to: in another tick, it is zero.
#[derive(Default)]
struct Number(AtomicU64);

impl Window {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, ticks: array::from_fn(|_| Tick::default()) }
    }

    /// Adds an event, and its lag, if it is known.
    pub(super) fn add(&self, now: Timestamp, lag: Option<Duration>) {
        let number = tick_of(now);
        let Some(tick) = self.ticks.get(place(number)) else { return };
        tick.events.update(number, |events| events + 1);
        if let Some(lag) = lag {
            let lag_ms = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
            tick.timed.update(number, |timed| timed + 1);
            tick.lag_ms.update(number, |sum| sum.saturating_add(lag_ms));
            tick.lag_ms_max.update(number, |max| max.max(lag_ms));
        }
    }

    /// Events per second over this many of the last minutes, at most five; over less time, if it has not run so long.
    pub(super) fn per_second(&self, now: Timestamp, minutes: u64) -> f64 {
        let whole_ticks = (minutes * 60 / TICK_S).min(TICKS as u64 - 1);
        let events: u64 = self.last(now, whole_ticks).map(|(number, tick)| tick.events.at(number)).sum();
        let in_tick = Duration::from_secs(now.as_secs() % TICK_S);
        let whole = Duration::from_secs(whole_ticks * TICK_S) + in_tick;
        // A clock that was set back to before the start does not tell how long it has run.
        let seconds = if now < self.start { whole } else { whole.min(now.since(self.start)) };
        events as f64 / seconds.as_secs_f64().max(1.0)
    }

    /// Mean and maximum of the lag over the last five minutes; none if there was no event whose lag is known.
    pub(super) fn lag(&self, now: Timestamp) -> Option<(Duration, Duration)> {
        let (mut timed, mut sum, mut max) = (0_u64, 0_u64, 0);
        for (number, tick) in self.last(now, TICKS as u64 - 1) {
            timed += tick.timed.at(number);
            sum = sum.saturating_add(tick.lag_ms.at(number));
            max = tick.lag_ms_max.at(number).max(max);
        }
        Some((Duration::from_millis(sum.checked_div(timed)?), Duration::from_millis(max)))
    }

    /// The tick that is not over, and this many before it.
    fn last(&self, now: Timestamp, whole_ticks: u64) -> impl Iterator<Item = (u64, &Tick)> {
        let current = tick_of(now);
        (current.saturating_sub(whole_ticks)..=current)
            .filter_map(|number| Some((number, self.ticks.get(place(number))?)))
    }
}

impl Number {
    fn update(&self, tick: u64, change: impl Fn(u64) -> u64) {
        let packed = |before| Some(stamp(tick) | change(value(before, tick)).min(NUMBER_MAX));
        // The closure always has a result.
        _ = self.0.fetch_update(Relaxed, Relaxed, packed);
    }

    fn at(&self, tick: u64) -> u64 {
        value(self.0.load(Relaxed), tick)
    }
}

fn tick_of(now: Timestamp) -> u64 {
    now.as_secs() / TICK_S
}

/// The place of a tick in the ring.
fn place(tick: u64) -> usize {
    (tick % TICKS as u64) as usize
}

/// The upper bits of a number that belongs to this tick.
fn stamp(tick: u64) -> u64 {
    tick << NUMBER_BITS
}

/// The number, if it belongs to this tick.
fn value(packed: u64, tick: u64) -> u64 {
    if packed & !NUMBER_MAX == stamp(tick) { packed & NUMBER_MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + seconds * 1000)
    }

    #[test]
    fn a_rate_is_over_the_time_that_has_passed_and_then_over_the_window() {
        let window = Window::new(at(0));
        assert_eq!(window.per_second(at(0), 1), 0.0);
        (0..30).for_each(|second| window.add(at(second), None));
        assert_eq!([1, 5].map(|minutes| window.per_second(at(30), minutes)), [1.0, 1.0]);
        assert_eq!([1, 5].map(|minutes| window.per_second(at(60), minutes)), [0.5, 0.5]);
        assert_eq!([1, 5].map(|minutes| window.per_second(at(120), minutes)), [0.0, 0.25]);
        assert_eq!([1, 5].map(|minutes| window.per_second(at(300), minutes)), [0.0, 0.1]);
        assert_eq!([1, 5].map(|minutes| window.per_second(at(340), minutes)), [0.0, 0.0]);
    }

    #[test]
    fn a_place_in_the_ring_belongs_to_one_tick_at_a_time() {
        let window = Window::new(at(0));
        window.add(at(5), None);
        let later = at(5 + TICKS as i64 * TICK_S as i64);
        assert_eq!(window.per_second(later, 5), 0.0);
        (0..3_050).for_each(|_| window.add(later, None));
        assert_eq!(window.per_second(later, 5), 10.0);
    }

    #[test]
    fn lag_has_mean_and_maximum_until_it_is_five_minutes_old() {
        let window = Window::new(at(0));
        assert_eq!(window.lag(at(0)), None);
        for (second, lag_ms) in [(1, 100), (12, 200), (13, 600)] {
            window.add(at(second), Some(Duration::from_millis(lag_ms)));
        }
        window.add(at(14), None);
        let lag = |mean, max| Some((Duration::from_millis(mean), Duration::from_millis(max)));
        assert_eq!(window.lag(at(14)), lag(300, 600));
        assert_eq!(window.lag(at(312)), lag(400, 600));
        assert_eq!(window.lag(at(330)), None);
    }

    #[test]
    fn a_lag_without_bounds_takes_no_other_tick_for_its_own() {
        let window = Window::new(at(0));
        window.add(at(0), Some(Duration::MAX));
        window.add(at(0), Some(Duration::MAX));
        let [mean, max] = [NUMBER_MAX / 2, NUMBER_MAX].map(Duration::from_millis);
        assert_eq!(window.lag(at(0)), Some((mean, max)));
        assert_eq!(window.per_second(at(1), 1), 2.0);
    }

    #[test]
    fn a_clock_that_was_set_back_counts_on() {
        let window = Window::new(at(1000));
        window.add(at(1000), None);
        window.add(at(500), None);
        assert_eq!(window.per_second(at(500), 1), 1.0 / 60.0);
    }

    #[test]
    fn threads_lose_no_event() {
        let window = Window::new(at(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| window.add(at(1), Some(Duration::from_millis(2)))));
            }
        });
        assert_eq!(window.per_second(at(8), 1), 500.0);
        assert_eq!(window.lag(at(8)), Some((Duration::from_millis(2), Duration::from_millis(2))));
    }
}
