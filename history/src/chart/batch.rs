//! Uplinks that one thread has read, until they are put together with those of others.

use crate::{
    Outcome, RecordId,
    chart::{collector::Collector, uplinks::Uplinks},
};

/// Uplinks that one thread has read. What was added last is put together with the rest when it is flushed.
pub(crate) struct Batch<'a> {
    collector: &'a Collector<'a>,
    uplinks: Uplinks,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(collector: &'a Collector<'a>) -> Self {
        Self { collector, uplinks: Uplinks::default() }
    }

    /// Adds an uplink with what it had when it was recorded.
    pub(crate) fn add(&mut self, id: RecordId, outcome: Outcome, result: &str) {
        let (outcome, result) = self.collector.corrections.current(id, outcome, result);
        match outcome {
            Outcome::Decoded => self.uplinks.add(id, result, &self.collector.wanted),
            // What the validator refused was not published.
            Outcome::Failed | Outcome::Invalid | Outcome::NotConverted => self.uplinks.add_empty(id),
        }
        if self.uplinks.is_full() {
            self.flush();
        }
    }

    /// Puts what was added together with the rest.
    pub(crate) fn flush(&mut self) {
        if !self.uplinks.is_empty() {
            self.collector.add(&self.uplinks);
            self.uplinks.clear();
        }
    }
}
