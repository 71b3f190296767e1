//! Numbers of what a network brought and took: since the start, and over the last minutes. Counting what is taken needs
//! no lock.

mod window;

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use types::{Clock, DevEui, NetworkRefusal, Timestamp};

use self::window::Window;
use super::dropped::{DropReason, DroppedEvent, DroppedEvents};
use crate::metrics;

/// Says that there is no time, or no lag.
const NONE: i64 = i64::MIN;

/// Counts what a network brings and takes.
pub struct NetworkTraffic {
    clock: Arc<dyn Clock>,
    taken: AtomicU64,
    duplicates: AtomicU64,
    dropped: DroppedEvents,
    retried: AtomicU64,
    sent: AtomicU64,
    unsent: AtomicU64,
    /// Time of the last event, in milliseconds since 1970.
    last_ms: AtomicI64,
    /// The last lag, in milliseconds.
    last_lag_ms: AtomicI64,
    window: Window,
}

/// The numbers of a network at one moment. Counts are those since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficState {
    /// Number of events that were handed over.
    pub taken: u64,
    /// Number of events that had been handed over before.
    pub duplicates: u64,
    /// Number of events that concern nobody here.
    pub ignored: u64,
    /// Number of events that cannot be read.
    pub malformed: u64,
    /// Number of events that the receiver will never take.
    pub refused: u64,
    /// Number of events whose device belongs to another application than they say.
    pub foreign: u64,
    /// Number of attempts to hand an event over that failed, and were repeated.
    pub retried: u64,
    /// Number of downlinks that the network took.
    pub sent: u64,
    /// Number of attempts to send a downlink that the network refused, or did not answer.
    pub unsent: u64,
    /// Time at which the last event was dealt with.
    pub last: Option<Timestamp>,
    /// Events that were handed over, per second, over the last minute and the last five.
    pub per_second: [f64; 2],
    /// The time from their reception by the network until they were handed over.
    pub lag: Lag,
    /// Number of events that nobody took, by reason; without those of which there were none.
    pub dropped: Vec<(DropReason, u64)>,
    /// The newest of them for each reason, the newest of all first.
    pub newest_dropped: Vec<DroppedEvent>,
}

/// The time from the reception of events by a network until they were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// That of the last event.
    pub last: Option<Duration>,
    /// The mean of the last five minutes.
    pub mean: Option<Duration>,
    /// The greatest of the last five minutes.
    pub max: Option<Duration>,
}

impl NetworkTraffic {
    /// Nothing yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let window = Window::new(clock.now());
        Self {
            clock,
            taken: AtomicU64::default(),
            duplicates: AtomicU64::default(),
            dropped: DroppedEvents::default(),
            retried: AtomicU64::default(),
            sent: AtomicU64::default(),
            unsent: AtomicU64::default(),
            last_ms: AtomicI64::new(NONE),
            last_lag_ms: AtomicI64::new(NONE),
            window,
        }
    }

    /// Counts an event of an application that no route has.
    pub fn without_route(&self, device: &str, application: &str) {
        metrics::event("ignored");
        self.dropped(DropReason::NoRoute, device, format_args!("application {application}"));
    }

    /// Counts an event of which applications learn nothing, with what the network calls it.
    pub fn ignored(&self, device: &str, event: &str) {
        metrics::event("ignored");
        self.dropped(DropReason::NothingToTell, device, event);
    }

    /// Counts an event that cannot be read: an uplink, or another one.
    pub fn malformed(&self, is_uplink: bool, device: &str, error: impl Display) {
        metrics::received(is_uplink, "malformed");
        self.dropped(DropReason::Unreadable, device, error);
    }

    /// Counts a downlink that the network took, or did not.
    pub fn downlink(&self, is_taken: bool) {
        let count = if is_taken { &self.sent } else { &self.unsent };
        count.fetch_add(1, Relaxed);
    }

    /// Counts an event that was handed over. `received` is the time at which the network received it, by its clock.
    pub(super) fn taken(&self, received: Option<Timestamp>) {
        let now = self.clock.now();
        let lag = received.map(|received| now.since(received));
        if let Some(lag) = lag {
            self.last_lag_ms.store(i64::try_from(lag.as_millis()).unwrap_or(i64::MAX), Relaxed);
        }
        self.window.add(now, lag);
        self.count(&self.taken);
    }

    pub(super) fn duplicate(&self) {
        self.count(&self.duplicates);
    }

    pub(super) fn refused(&self, dev_eui: DevEui, refusal: &NetworkRefusal) {
        self.dropped(DropReason::of(refusal), dev_eui, refusal.reason());
    }

    pub(super) fn foreign(&self, dev_eui: DevEui) {
        self.dropped(DropReason::OtherApplication, dev_eui, "");
    }

    pub(super) fn retried(&self) {
        metrics::retried();
        self.retried.fetch_add(1, Relaxed);
    }

    /// Returns the numbers at this moment.
    pub fn state(&self) -> TrafficState {
        let now = self.clock.now();
        let lag = self.window.lag(now);
        let set = |value: &AtomicI64| Some(value.load(Relaxed)).filter(|value| *value != NONE);
        let last_lag = set(&self.last_lag_ms).and_then(|lag_ms| u64::try_from(lag_ms).ok());
        let dropped = |reasons: &[DropReason]| reasons.iter().map(|reason| self.dropped.count(*reason)).sum::<u64>();
        let by_reason = DropReason::ALL.map(|reason| (reason, self.dropped.count(reason)));
        TrafficState {
            taken: self.taken.load(Relaxed),
            duplicates: self.duplicates.load(Relaxed),
            ignored: dropped(&[DropReason::NoRoute, DropReason::NothingToTell]),
            malformed: dropped(&[DropReason::Unreadable]),
            refused: dropped(&[
                DropReason::NotRegistered,
                DropReason::NotValid,
                DropReason::NoRoom,
                DropReason::Refused,
            ]),
            foreign: dropped(&[DropReason::OtherApplication]),
            retried: self.retried.load(Relaxed),
            sent: self.sent.load(Relaxed),
            unsent: self.unsent.load(Relaxed),
            last: set(&self.last_ms).map(Timestamp::from_millis),
            per_second: [1, 5].map(|minutes| self.window.per_second(now, minutes)),
            lag: Lag {
                last: last_lag.map(Duration::from_millis),
                mean: lag.map(|(mean, _)| mean),
                max: lag.map(|(_, max)| max),
            },
            dropped: by_reason.into_iter().filter(|(_, count)| *count > 0).collect(),
            newest_dropped: self.dropped.newest(),
        }
    }

    fn dropped(&self, reason: DropReason, device: impl Display, detail: impl Display) {
        let now = self.clock.now();
        self.dropped.add(now, reason, device, detail);
        self.last_ms.store(now.as_millis(), Relaxed);
    }

    fn count(&self, count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
        self.last_ms.store(self.clock.now().as_millis(), Relaxed);
    }
}

impl TrafficState {
    /// Number of events that were dealt with, whatever became of them.
    pub fn received(&self) -> u64 {
        let Self { taken, duplicates, ignored, malformed, refused, foreign, .. } = self;
        [taken, duplicates, ignored, malformed, refused, foreign].into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;
    use types::Kind;

    use super::*;

    #[test]
    fn what_becomes_of_events_is_counted_with_the_time_of_the_last() {
        let clock = ManualClock::new();
        let traffic = NetworkTraffic::new(clock.clone());
        assert_eq!(traffic.state(), TrafficState::default());
        traffic.taken(None);
        traffic.duplicate();
        let dev_eui = DevEui::new([1; 8]);
        traffic.ignored("dev-1", "status");
        traffic.malformed(true, "dev-1", "no JSON");
        traffic.refused(dev_eui, &NetworkRefusal::new(Kind::NotFound, "not registered"));
        traffic.foreign(dev_eui);
        let last = clock.now();
        clock.advance(Duration::from_secs(3));
        traffic.retried();
        traffic.downlink(true);
        traffic.downlink(false);
        let state = traffic.state();
        assert_eq!((state.received(), state.retried, state.sent, state.unsent), (6, 1, 1, 1));
        assert_eq!((state.ignored, state.malformed, state.refused, state.foreign), (1, 1, 1, 1));
        assert_eq!((state.dropped.len(), state.newest_dropped.len()), (4, 4));
        assert_eq!(state.dropped[2], (DropReason::NotRegistered, 1));
        assert_eq!((state.last, state.lag), (Some(last), Lag::default()), "neither retries nor downlinks are events");
    }

    #[test]
    fn lag_is_from_the_networks_time_to_ours() {
        let clock = ManualClock::new();
        let traffic = NetworkTraffic::new(clock.clone());
        let ms = |ms| Some(Duration::from_millis(ms));
        let received = clock.now();
        clock.advance(Duration::from_millis(250));
        traffic.taken(Some(received));
        clock.advance(Duration::from_millis(500));
        traffic.taken(Some(received));
        assert_eq!(traffic.state().lag, Lag { last: ms(750), mean: ms(500), max: ms(750) });
        // The network's clock is ahead of ours.
        traffic.taken(Some(clock.now().plus(Duration::from_secs(9))));
        assert_eq!(traffic.state().lag, Lag { last: ms(0), mean: ms(333), max: ms(750) });
        clock.advance(Duration::from_secs(600));
        let state = traffic.state();
        assert_eq!((state.lag, state.per_second), (Lag { last: ms(0), mean: None, max: None }, [0.0; 2]));
    }
}
