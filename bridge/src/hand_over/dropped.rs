//! Events that are dropped because nobody takes them: their number by reason, and the newest few for people.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;
use types::{Kind, Kinded, NetworkRefusal, Timestamp};

/// Maximum number of events that are kept for each reason, so that a frequent one hides no other.
const NEWEST_MAX: usize = 3;
/// Maximum number of characters of a device that are kept.
const DEVICE_CHARS_MAX: usize = 64;
/// Maximum number of characters of a detail that are kept.
const DETAIL_CHARS_MAX: usize = 300;
const REASONS: usize = DropReason::ALL.len();

/// Reasons for which nobody takes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// No route has its application.
    NoRoute,
    /// It says nothing that applications learn.
    NothingToTell,
    /// It cannot be read.
    Unreadable,
    /// The application or the device is not registered here.
    NotRegistered,
    /// It breaks a rule, or its device cannot be registered.
    NotValid,
    /// There is no room for its device.
    NoRoom,
    /// The receiver refuses it for another reason.
    Refused,
    /// Its device belongs to another application than it says.
    OtherApplication,
}

/// An event that nobody took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedEvent {
    /// The time at which it was dealt with.
    pub time: Timestamp,
    /// Refusal or failure of the application.
    pub reason: DropReason,
    /// The id of its device in the network, or its DevEUI. Others may have chosen it.
    pub device: String,
    /// The reason in detail. Others may have chosen parts of it.
    pub detail: String,
}

/// Counts events that nobody takes, and keeps the newest.
#[derive(Default)]
pub(super) struct DroppedEvents {
    counts: [AtomicU64; REASONS],
    newest: Mutex<[VecDeque<DroppedEvent>; REASONS]>,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NoRoute,
        Self::NothingToTell,
        Self::Unreadable,
        Self::NotRegistered,
        Self::NotValid,
        Self::NoRoom,
        Self::Refused,
        Self::OtherApplication,
    ];

    /// The reason why a receiver refuses an event for good.
    pub(super) fn of(refusal: &NetworkRefusal) -> Self {
        match refusal.kind() {
            Kind::NotFound => Self::NotRegistered,
            Kind::Invalid | Kind::TooLarge | Kind::AlreadyExists => Self::NotValid,
            Kind::Full => Self::NoRoom,
            _ => Self::Refused,
        }
    }

    /// Says what was done with an event, and why.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::NoRoute => "ignored: no route has the application",
            Self::NothingToTell => "ignored: nothing in it for applications",
            Self::Unreadable => "cannot be read",
            Self::NotRegistered => "refused: application or device not registered here",
            Self::NotValid => "refused: not valid, or device cannot be registered",
            Self::NoRoom => "refused: no room for the device",
            Self::Refused => "refused for another reason",
            Self::OtherApplication => "of a device of another application",
        }
    }
}

impl DroppedEvents {
    pub(super) fn add(&self, time: Timestamp, reason: DropReason, device: impl Display, detail: impl Display) {
        self.counts[reason as usize].fetch_add(1, Relaxed);
        let (device, detail) = (beginning(device, DEVICE_CHARS_MAX), beginning(detail, DETAIL_CHARS_MAX));
        let mut all = self.newest.lock();
        let newest = &mut all[reason as usize];
        if newest.len() == NEWEST_MAX {
            newest.pop_front();
        }
        newest.push_back(DroppedEvent { time, reason, device, detail });
    }

    pub(super) fn count(&self, reason: DropReason) -> u64 {
        self.counts[reason as usize].load(Relaxed)
    }

    /// Returns those that are kept, the newest first.
    pub(super) fn newest(&self) -> Vec<DroppedEvent> {
        let mut newest: Vec<_> = self.newest.lock().iter().flatten().cloned().collect();
        newest.sort_by_key(|event| Reverse(event.time));
        newest
    }
}

fn beginning(text: impl Display, chars_max: usize) -> String {
    text.to_string().chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_and_keeps_its_newest_events() {
        let events = DroppedEvents::default();
        for (millis, reason) in (0_i64..).zip(DropReason::ALL) {
            events.add(Timestamp::from_millis(millis), reason, "first", reason.in_words());
        }
        for millis in 100..200 {
            events.add(Timestamp::from_millis(millis), DropReason::NothingToTell, millis, "x".repeat(1000));
        }
        let counts = DropReason::ALL.map(|reason| events.count(reason));
        assert_eq!(counts, [1, 101, 1, 1, 1, 1, 1, 1]);
        let newest = events.newest();
        let devices: Vec<_> = newest.iter().map(|event| event.device.as_str()).collect();
        assert_eq!(devices[..4], ["199", "198", "197", "first"]);
        assert_eq!((newest.len(), newest[0].detail.len()), (10, DETAIL_CHARS_MAX));
        assert_eq!(newest[3].reason, DropReason::OtherApplication);
    }

    #[test]
    fn a_refusal_has_the_reason_of_its_kind() {
        let of = |kind| DropReason::of(&NetworkRefusal::new(kind, "no"));
        let kinds = [Kind::NotFound, Kind::Invalid, Kind::Full, Kind::Denied];
        let reasons = [DropReason::NotRegistered, DropReason::NotValid, DropReason::NoRoom, DropReason::Refused];
        assert_eq!(kinds.map(of), reasons);
    }
}
