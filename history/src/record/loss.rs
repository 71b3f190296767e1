//! Reasons for which records are not kept, and how many were lost to each.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{counter, describe_counter, describe_gauge, gauge};

/// Reasons why a record is not on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The settings keep nothing of this application.
    Off,
    /// The disk is full.
    Full,
    /// The disk is slow: the record was in the queue for longer than it may, and will be kept if the disk recovers.
    Slow,
    /// Too many records wait for the disk.
    Queue,
    /// It is longer than [`RECORD_BYTES_MAX`](crate::RECORD_BYTES_MAX).
    TooLarge,
    /// The disk failed; the log says how.
    Failed,
    /// History was closed before.
    Closed,
    /// Its application may not exist, and there are records of too many of these.
    Unknown,
}

impl Loss {
    /// All reasons.
    pub const ALL: [Self; 8] =
        [Self::Off, Self::Full, Self::Slow, Self::Queue, Self::TooLarge, Self::Failed, Self::Closed, Self::Unknown];

    /// A word for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Full => "full",
            Self::Slow => "slow",
            Self::Queue => "queue",
            Self::TooLarge => "too_large",
            Self::Failed => "failed",
            Self::Closed => "closed",
            Self::Unknown => "unknown_application",
        }
    }
}

const LOST: &str = "airlock_history_lost_records_total";
const KEPT: &str = "airlock_history_kept";

/// Numbers of records that were not kept since the start, by reason.
///
/// Those that are off are not counted, and those of [`Loss::Slow`] may have been kept later.
#[derive(Debug, Default)]
pub struct Losses([AtomicU64; Loss::ALL.len()]);

impl Losses {
    pub(crate) fn new() -> Self {
        describe_counter!(LOST, "Records of messages that history did not keep");
        describe_gauge!(KEPT, "1 while history keeps records, 0 since its disk refused the last ones or was slow");
        let counted = Loss::ALL.into_iter().filter(|loss| *loss != Loss::Off);
        // Rates need a zero before the first loss.
        counted.for_each(|loss| counter!(LOST, "reason" => loss.name()).increment(0));
        Self::default()
    }

    /// Returns the number of records that were not kept for this reason.
    pub fn count(&self, loss: Loss) -> u64 {
        self.counter(loss).load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, loss: Loss, records: u64) {
        if loss != Loss::Off {
            self.counter(loss).fetch_add(records, Ordering::Relaxed);
            counter!(LOST, "reason" => loss.name()).increment(records);
        }
    }

    fn counter(&self, loss: Loss) -> &AtomicU64 {
        let [off, full, slow, queue, too_large, failed, closed, unknown] = &self.0;
        match loss {
            Loss::Off => off,
            Loss::Full => full,
            Loss::Slow => slow,
            Loss::Queue => queue,
            Loss::TooLarge => too_large,
            Loss::Failed => failed,
            Loss::Closed => closed,
            Loss::Unknown => unknown,
        }
    }
}

/// Tells operators that records are kept now, or that they are not.
pub(crate) fn set_kept(is_kept: bool) {
    gauge!(KEPT).set(f64::from(u8::from(is_kept)));
}
