//! Limits on the events of a source that are written within a minute: refusals apart from logins and everything else.

use std::{collections::HashMap, time::Duration};

use types::Timestamp;

const WINDOW: Duration = Duration::from_secs(60);
/// The most sources that are told apart within a minute; the rest count as one.
const SOURCES_MAX: usize = 4096;
const OTHERS: &str = "other sources";
/// Limit of all sources together, as a multiple of that of one source.
const TOTAL_FACTOR: u32 = 20;
/// A source may write at most this part of what is left for all, so that many of them leave something to others.
const SHARE_OF_ROOM: u32 = 2;

/// Classes of events. Each has a budget of its own, because anybody can cause any number of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Something was refused, perhaps to somebody unknown.
    Refusal,
    /// Somebody logged in, or did something else that was allowed.
    Other,
}

/// The events of each class.
pub(super) struct Classes {
    refusals: Sources,
    others: Sources,
}

/// The events of a class, by source, within the current minute, which starts with its first event.
struct Sources {
    events_max: u32,
    windows: HashMap<String, Window>,
    /// The written events of all sources.
    total: Window,
}

/// Events that were counted but not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) source: String,
    pub(super) count: u64,
}

struct Window {
    started: Timestamp,
    written: u32,
    left_out: u64,
}

impl Classes {
    pub(super) fn new(events_max: u32) -> Self {
        Self { refusals: Sources::new(events_max), others: Sources::new(events_max) }
    }

    /// Returns true if an event of this class and source is to be written. Otherwise it is counted.
    pub(super) fn admit(&mut self, class: Class, source: &str, now: Timestamp) -> bool {
        let sources = match class {
            Class::Refusal => &mut self.refusals,
            Class::Other => &mut self.others,
        };
        sources.admit(source, now)
    }

    /// Takes the events left out in minutes that have passed. Their sources start anew.
    pub(super) fn take_ended(&mut self, now: Timestamp) -> Vec<LeftOut> {
        [self.refusals.take_ended(now), self.others.take_ended(now)].concat()
    }

    /// Takes the events left out until now.
    pub(super) fn take_all(&mut self) -> Vec<LeftOut> {
        [self.refusals.take_all(), self.others.take_all()].concat()
    }
}

impl Sources {
    fn new(events_max: u32) -> Self {
        let total = Window { started: Timestamp::from_millis(0), written: 0, left_out: 0 };
        Self { events_max, windows: HashMap::new(), total }
    }

    /// Returns true if an event of this source is to be written. Otherwise it is counted.
    fn admit(&mut self, source: &str, now: Timestamp) -> bool {
        if self.windows.len() >= SOURCES_MAX {
            self.windows.retain(|_, window| window.left_out > 0 || !window.has_ended(now));
        }
        let fresh = || Window { started: now, written: 0, left_out: 0 };
        if self.total.has_ended(now) {
            self.total = fresh();
        }
        let room = self.events_max.saturating_mul(TOTAL_FACTOR).saturating_sub(self.total.written);
        let is_room = room > 0;
        let share = (room / SHARE_OF_ROOM).clamp(1, self.events_max.max(1));
        // Each source becomes a line when events of it are left out.
        let is_told_apart = self.windows.contains_key(source) || (is_room && self.windows.len() < SOURCES_MAX);
        let source = if is_told_apart { source } else { OTHERS };
        let window = self.windows.entry(source.to_owned()).or_insert_with(fresh);
        if window.has_ended(now) && window.left_out == 0 {
            *window = fresh();
        }
        let admits = is_room && window.written < share;
        match admits {
            true => (window.written, self.total.written) = (window.written + 1, self.total.written + 1),
            false => window.left_out += 1,
        }
        admits
    }

    fn take_ended(&mut self, now: Timestamp) -> Vec<LeftOut> {
        let ended = self.windows.extract_if(|_, window| window.has_ended(now));
        ended.filter_map(LeftOut::of).collect()
    }

    fn take_all(&mut self) -> Vec<LeftOut> {
        self.windows.drain().filter_map(LeftOut::of).collect()
    }
}

impl Window {
    /// Returns true if a minute has passed, or the clock was set back.
    fn has_ended(&self, now: Timestamp) -> bool {
        now < self.started || now.since(self.started) >= WINDOW
    }
}

impl LeftOut {
    fn of((source, Window { left_out: count, .. }): (String, Window)) -> Option<Self> {
        (count > 0).then_some(Self { source, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sources_share_what_is_left() {
        let (mut sources, now) = (Sources::new(250), Timestamp::from_millis(1_000_000));
        let count = SOURCES_MAX + 300;
        let written = (0..count).filter(|number| sources.admit(&number.to_string(), now)).count();
        assert_eq!(written, SOURCES_MAX + 250);
        assert_eq!(sources.windows.len(), SOURCES_MAX + 1);
        let others = LeftOut { source: OTHERS.to_owned(), count: 50 };
        assert_eq!(sources.take_all(), [others]);
    }

    #[test]
    fn all_sources_together_have_a_bound() {
        let (mut sources, now) = (Sources::new(2), Timestamp::from_millis(1_000_000));
        let written = (0..1000).filter(|number| sources.admit(&number.to_string(), now)).count();
        assert_eq!(written, 2 * TOTAL_FACTOR as usize);
        let others = LeftOut { source: OTHERS.to_owned(), count: 1000 - 2 * u64::from(TOTAL_FACTOR) };
        assert_eq!(sources.take_all(), [others], "one line");
        assert!(sources.admit("a", now.plus(WINDOW)), "the next minute");
    }

    #[test]
    fn a_clock_that_is_set_back_silences_nobody() {
        let (mut sources, now) = (Sources::new(1), Timestamp::from_millis(10_000_000));
        assert!(sources.admit("a", now));
        assert!(sources.admit("a", Timestamp::from_millis(1_000_000)));
    }
}
