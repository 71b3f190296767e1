//! The ids of messages, which order a queue.

use std::sync::atomic::{AtomicU64, Ordering};

use types::Timestamp;

/// Makes ids: the time, and a name of the process, so that processes never make the same.
///
/// They rise even when the clock is set back.
pub(super) struct Ids {
    process: String,
    last_number: AtomicU64,
}

impl Ids {
    /// Ids of a process whose number no other process has.
    pub(super) fn new(process: u64) -> Self {
        Self { process: format!("{process:016x}"), last_number: AtomicU64::new(0) }
    }

    /// An id at this time, greater than those before.
    pub(super) fn next(&self, now_ms: u64) -> String {
        let now = now_ms << 20;
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = self.last_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        format!("{:016x}-{}", next(last.unwrap_or_default()), self.process)
    }

    /// Has the next id follow one that another process made, or an earlier one.
    pub(super) fn follow(&self, id: &str) {
        self.last_number.fetch_max(number(id), Ordering::Relaxed);
    }
}

/// Returns the time when a message with this id was queued. It is no earlier than that of messages before it.
pub(super) fn time(id: &str) -> Timestamp {
    Timestamp::from_millis(i64::try_from(number(id) >> 20).unwrap_or_default())
}

/// Comes before all ids at this time or later.
pub(super) fn begin(time: Timestamp) -> String {
    format!("{:016x}", time.as_unix_ms() << 20)
}

fn number(id: &str) -> u64 {
    let number = id.split('-').next().and_then(|number| u64::from_str_radix(number, 16).ok());
    number.unwrap_or_default()
}
