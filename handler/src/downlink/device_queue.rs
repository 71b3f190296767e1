//! The downlinks of a device: those that wait, in the order in which they are sent, and those that its network has
//! taken.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use types::Downlink;

use crate::Error;

/// Maximum number of application downlinks that wait for a device. Those that are sent again are not counted.
const WAITING_MAX: usize = 32;
/// Maximum number of downlinks of a device about which a report is awaited. Of the oldest, nothing is told any more.
const TAKEN_MAX: usize = 64;

/// Place of a new downlink in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// In place of the whole queue.
    Replace,
    /// At the front.
    First,
    /// At the back.
    Last,
    /// At the back, unless an equal one already waits: for a downlink that was to replace the queue when it was
    /// published.
    ///
    /// Waiting downlinks may be newer, and were accepted, so none is removed. At the front, it would come before
    /// newer ones. Several would also be reversed there, and a new downlink that is only suspected to be late would
    /// come too early.
    Late,
}

impl Schedule {
    /// The schedule of this name; [`Error::Invalid`] if it is unknown.
    pub(super) fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "" | "replace" => Ok(Self::Replace),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Error::invalid("ScheduleType", "unknown: it is replace, first or last")),
        }
    }

    /// The same for a downlink that may be older than those that wait.
    pub(super) fn of_late(self) -> Self {
        if self == Self::Replace { Self::Late } else { self }
    }
}

/// A downlink in the queue of its device: encoded, so it has no fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueuedDownlink {
    /// Distinguishes it from others of the device.
    #[serde(default)]
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) downlink: Downlink,
    /// True if it also replaces downlinks that its network has already taken.
    #[serde(default)]
    pub(super) replaces_others: bool,
    /// Number of times that its network has taken it before.
    #[serde(default)]
    pub(super) attempts: u8,
    /// Number of times that its network did not answer, and may have taken it nevertheless.
    #[serde(default)]
    pub(super) unanswered: u8,
}

impl QueuedDownlink {
    /// The id for a network that lets us choose it: the same each time that the downlink is handed over.
    pub(super) fn network_id(&self) -> String {
        format!("{:016x}", self.id)
    }

    /// The id in events; empty for a downlink that an earlier version has queued.
    pub(super) fn event_id(&self) -> String {
        if self.id == 0 { String::new() } else { self.network_id() }
    }

    /// Returns true if a device could not tell them apart.
    fn is_same(&self, other: &Self) -> bool {
        let sent = |queued: &Self| (queued.downlink.port, queued.downlink.confirmed);
        sent(self) == sent(other) && self.downlink.payload_raw == other.downlink.payload_raw
    }
}

/// A downlink that a network has taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TakenDownlink {
    /// The network's id of it.
    pub(super) id: String,
    pub(super) downlink: QueuedDownlink,
    /// Evidence that the network has taken it.
    #[serde(default, rename = "heard")]
    pub(super) source: ReportSource,
    /// True if the application has replaced it, and the network does not know: it refused the one in its place.
    #[serde(default)]
    pub(super) is_replaced: bool,
}

/// Ways to learn that a network has taken a downlink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ReportSource {
    /// The network has answered.
    #[default]
    Answer,
    /// The network has reported about it, and whoever hands it over does not have the answer yet.
    Report,
    /// The same, and no further report is awaited.
    LastReport,
}

/// The downlinks of a device.
pub(super) struct DeviceQueue {
    pub(super) waiting: VecDeque<QueuedDownlink>,
    pub(super) taken: VecDeque<TakenDownlink>,
}

impl DeviceQueue {
    /// Adds a downlink of the application; [`Error::Invalid`] if too many wait.
    pub(super) fn insert(&mut self, downlink: &QueuedDownlink, schedule: Schedule) -> Result<(), Error> {
        match schedule {
            Schedule::Replace => {
                self.waiting = [downlink.clone()].into();
                self.repeat_nothing();
            }
            Schedule::First => self.put_first(downlink.clone()),
            Schedule::Late if self.waiting.iter().any(|waiting| waiting.is_same(downlink)) => return Ok(()),
            Schedule::Last | Schedule::Late => self.waiting.push_back(downlink.clone()),
        }
        if let [only] = self.waiting.make_contiguous() {
            only.replaces_others |= self.taken.iter().any(|taken| taken.is_replaced);
        }
        if self.waiting.iter().filter(|waiting| waiting.attempts == 0).count() <= WAITING_MAX {
            return Ok(());
        }
        let reason = format_args!("the queue of the device is full: {WAITING_MAX} are waiting");
        Err(Error::invalid("Downlink", reason))
    }

    /// Empties the queue. Nothing that the network has taken is sent again.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.repeat_nothing();
    }

    /// The network has taken a downlink.
    pub(super) fn take(&mut self, taken: &TakenDownlink) {
        if self.settle(&taken.id) {
            return;
        }
        let removed = self.remove(&taken.downlink);
        if taken.downlink.replaces_others {
            if let (true, Some(front)) = (removed, self.waiting.front_mut()) {
                // One was put before it, and must not replace it now.
                front.replaces_others = false;
            }
            self.taken.clear();
        }
        let mut taken = taken.clone();
        if !removed {
            // The application did not want it any more while it left, so it is not sent again.
            taken.downlink.attempts = u8::MAX;
        }
        self.taken.push_back(taken);
        self.taken.drain(..self.taken.len().saturating_sub(TAKEN_MAX));
    }

    /// The network did not answer whether it has taken a downlink. Returns how often that was so; none if the
    /// downlink does not wait any more.
    pub(super) fn unanswered(&mut self, downlink: &QueuedDownlink) -> Option<u8> {
        self.settle(&downlink.network_id());
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.id == downlink.id)?;
        waiting.unanswered = waiting.unanswered.saturating_add(1);
        Some(waiting.unanswered)
    }

    /// A downlink will never leave.
    pub(super) fn drop_waiting(&mut self, downlink: &QueuedDownlink) {
        if !self.remove(downlink) || !downlink.replaces_others {
            return;
        }
        // What it would have replaced is still there: the next one replaces it, whenever that comes.
        match self.waiting.front_mut() {
            Some(front) => front.replaces_others = true,
            None => self.taken.iter_mut().for_each(|taken| taken.is_replaced = true),
        }
    }

    /// No further report about a downlink is awaited.
    pub(super) fn end(&mut self, id: &str) {
        self.taken.retain_mut(|taken| {
            if taken.id == id && taken.source == ReportSource::Report {
                taken.source = ReportSource::LastReport;
            }
            taken.id != id || taken.source == ReportSource::LastReport
        });
    }

    /// Sends a downlink again: before those that the application has added, behind those that left before it.
    pub(super) fn repeat(&mut self, id: &str) {
        let place = self.taken.iter().position(|taken| taken.id == id);
        let Some(TakenDownlink { downlink, .. }) = place.and_then(|place| self.taken.remove(place)) else { return };
        let attempts = downlink.attempts.saturating_add(1);
        let downlink = QueuedDownlink { replaces_others: false, attempts, unanswered: 0, ..downlink };
        match self.waiting.iter().take_while(|waiting| waiting.attempts > 0).count() {
            0 => self.put_first(downlink),
            place => self.waiting.insert(place, downlink),
        }
    }

    /// Puts a downlink in front. What the former first one would replace in the network is then replaced by this one,
    /// so that it is not dropped there itself.
    fn put_first(&mut self, mut downlink: QueuedDownlink) {
        if let Some(former) = self.waiting.front_mut() {
            downlink.replaces_others = std::mem::take(&mut former.replaces_others);
        }
        self.waiting.push_front(downlink);
    }

    /// Nothing that the network has taken is sent again.
    fn repeat_nothing(&mut self) {
        self.taken.iter_mut().for_each(|taken| taken.downlink.attempts = u8::MAX);
    }

    /// Notes that the result of a hand-over is known. Returns true if a report had said before that the downlink was
    /// taken.
    fn settle(&mut self, id: &str) -> bool {
        let Some(place) = self.taken.iter().position(|taken| taken.id == id) else { return false };
        match self.taken[place].source {
            ReportSource::LastReport => drop(self.taken.remove(place)),
            _ => self.taken[place].source = ReportSource::Answer,
        }
        true
    }

    /// Removes a downlink that waits; the application may have changed the queue in the meantime.
    fn remove(&mut self, downlink: &QueuedDownlink) -> bool {
        let place = self.waiting.iter().position(|other| other.id == downlink.id);
        place.and_then(|place| self.waiting.remove(place)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(id: u64) -> QueuedDownlink {
        QueuedDownlink { id, downlink: Downlink::default(), replaces_others: false, attempts: 0, unanswered: 0 }
    }

    fn queue_that_took(ids: impl IntoIterator<Item = u64>) -> DeviceQueue {
        let take = |id: u64| TakenDownlink {
            id: id.to_string(),
            downlink: queued(id),
            source: ReportSource::Answer,
            is_replaced: false,
        };
        DeviceQueue { waiting: VecDeque::new(), taken: ids.into_iter().map(take).collect() }
    }

    #[test]
    fn downlinks_are_sent_again_in_the_order_in_which_they_left() {
        let mut queue = queue_that_took([1, 2]);
        queue.insert(&queued(3), Schedule::Last).unwrap();
        queue.repeat("1");
        queue.repeat("2");
        assert!(queue.waiting.iter().map(|waiting| waiting.id).eq([1, 2, 3]));
    }

    #[test]
    fn the_next_downlink_replaces_what_a_refused_one_was_to_replace() {
        for schedule in [Schedule::First, Schedule::Last] {
            let mut queue = queue_that_took([1, 2]);
            let refused = QueuedDownlink { replaces_others: true, ..queued(3) };
            queue.insert(&refused, Schedule::Replace).unwrap();
            queue.drop_waiting(&refused);
            queue.insert(&queued(4), schedule).unwrap();
            queue.insert(&queued(5), Schedule::Last).unwrap();
            let replaces_others: Vec<_> = queue.waiting.iter().map(|waiting| waiting.replaces_others).collect();
            assert_eq!(replaces_others, [true, false]);
        }
    }

    #[test]
    fn a_downlink_that_was_cleared_while_it_left_is_not_sent_again() {
        let mut queue = queue_that_took([]);
        queue.insert(&queued(1), Schedule::Last).unwrap();
        queue.clear();
        let taken =
            TakenDownlink { id: "1".to_owned(), downlink: queued(1), source: ReportSource::Answer, is_replaced: false };
        queue.take(&taken);
        assert_eq!(queue.taken[0].downlink.attempts, u8::MAX);
    }

    #[test]
    fn downlinks_that_are_sent_again_take_no_place_of_others() {
        let mut queue = queue_that_took(0..8);
        (0..8).for_each(|id| queue.repeat(&id.to_string()));
        for id in 8..8 + WAITING_MAX as u64 {
            queue.insert(&queued(id), Schedule::Last).unwrap();
        }
        assert!(queue.insert(&queued(99), Schedule::Last).is_err());
    }
}
