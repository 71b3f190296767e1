//! How many events of a source are written within a minute.

use std::{collections::HashMap, time::Duration};

use types::Timestamp;

const WINDOW: Duration = Duration::from_secs(60);
/// The most sources that are told apart within a minute; the rest count as one.
const SOURCES_MAX: usize = 4096;
const OTHERS: &str = "other sources";

/// The events of each source within the current minute, which starts with its first event.
pub(super) struct Sources {
    events_max: u32,
    windows: HashMap<String, Window>,
}

/// Events that were counted but not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) source: String,
    pub(super) count: u64,
}

struct Window {
    started: Timestamp,
    written: u32,
    left_out: u64,
}

impl Sources {
    pub(super) fn new(events_max: u32) -> Self {
        Self { events_max, windows: HashMap::new() }
    }

    /// Whether an event of this source is written. Otherwise it is counted.
    pub(super) fn admit(&mut self, source: &str, now: Timestamp) -> bool {
        if self.windows.len() >= SOURCES_MAX {
            self.windows.retain(|_, window| window.left_out > 0 || !window.has_ended(now));
        }
        let is_known = self.windows.contains_key(source);
        let source = if is_known || self.windows.len() < SOURCES_MAX { source } else { OTHERS };
        let fresh = || Window { started: now, written: 0, left_out: 0 };
        let window = self.windows.entry(source.to_owned()).or_insert_with(fresh);
        if window.has_ended(now) && window.left_out == 0 {
            *window = fresh();
        }
        let admits = window.written < self.events_max;
        match admits {
            true => window.written += 1,
            false => window.left_out += 1,
        }
        admits
    }

    /// What was left out of minutes that have passed. Their sources start anew.
    pub(super) fn take_ended(&mut self, now: Timestamp) -> Vec<LeftOut> {
        let ended = self.windows.extract_if(|_, window| window.has_ended(now));
        ended.filter_map(LeftOut::of).collect()
    }

    /// What was left out until now.
    pub(super) fn take_all(&mut self) -> Vec<LeftOut> {
        self.windows.drain().filter_map(LeftOut::of).collect()
    }
}

impl Window {
    /// Whether a minute has passed, or the clock was set back.
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
        let (mut sources, now) = (Sources::new(2), Timestamp::from_millis(1_000_000));
        let count = SOURCES_MAX + 100;
        let written = (0..count).filter(|number| sources.admit(&number.to_string(), now)).count();
        assert_eq!(written, SOURCES_MAX + 2);
        assert_eq!(sources.windows.len(), SOURCES_MAX + 1);
        let others = LeftOut { source: OTHERS.to_owned(), count: 98 };
        assert_eq!(sources.take_all(), [others]);
    }

    #[test]
    fn a_clock_that_is_set_back_silences_nobody() {
        let (mut sources, now) = (Sources::new(1), Timestamp::from_millis(10_000_000));
        assert!(sources.admit("a", now));
        assert!(sources.admit("a", Timestamp::from_millis(1_000_000)));
    }
}
