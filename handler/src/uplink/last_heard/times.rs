//! When devices were heard, bounded in bytes: owners who have most are forgotten first.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, RandomState},
};

use server::ledger::Owner;
use types::{AppId, DevicePath, Timestamp};

use super::owners::largest_first;

/// Memory of a device: the hash of its id and a time, in a table that may be half empty.
const DEVICE_BYTES: usize = 40;
/// Memory of an application: its id, and a table without devices.
const APPLICATION_BYTES: usize = 320;
/// Number of groups of applications. Each has a time, which takes 8 bytes.
const GROUPS: usize = 1 << 16;

/// When devices were heard.
pub(super) struct Times {
    bytes_max: usize,
    bytes: usize,
    hasher: RandomState,
    applications: HashMap<AppId, HeardDevices>,
    /// Since when the times of all devices are there, for each group of applications. Applications that are there say
    /// it themselves, so that others of their group that are forgotten do not concern them.
    since: Vec<Timestamp>,
}

/// The devices of an application.
struct HeardDevices {
    since: Timestamp,
    /// By the hash of their ids.
    last: HashMap<u64, Timestamp>,
}

impl HeardDevices {
    fn bytes(&self) -> usize {
        APPLICATION_BYTES + DEVICE_BYTES * self.last.len()
    }
}

impl Times {
    /// Remembers from now on, in so much memory.
    pub(super) fn new(now: Timestamp, bytes_max: usize) -> Self {
        let (hasher, since) = (RandomState::new(), vec![now; GROUPS]);
        Self { bytes_max, bytes: 0, hasher, applications: HashMap::new(), since }
    }

    /// Notes that a device was heard now, and returns when it was before, if that is known.
    pub(super) fn note(&mut self, DevicePath { app_id, dev_id }: DevicePath<'_>, now: Timestamp) -> Option<Timestamp> {
        let (id, since) = (self.hasher.hash_one(dev_id), self.group_since(app_id));
        let devices = match self.applications.entry(app_id.clone()) {
            Entry::Occupied(devices) => devices.into_mut(),
            Entry::Vacant(place) => {
                self.bytes += APPLICATION_BYTES;
                place.insert(HeardDevices { since, last: HashMap::new() })
            }
        };
        let before = devices.last.insert(id, now);
        if before.is_none() {
            self.bytes += DEVICE_BYTES;
        }
        before
    }

    /// When a device was last heard, if that is known; and the time since which all that were heard are.
    pub(super) fn last(&self, DevicePath { app_id, dev_id }: DevicePath<'_>) -> (Option<Timestamp>, Timestamp) {
        match self.applications.get(app_id) {
            Some(devices) => (devices.last.get(&self.hasher.hash_one(dev_id)).copied(), devices.since),
            None => (None, self.group_since(app_id)),
        }
    }

    /// Forgets a device that is not watched.
    pub(super) fn forget_device(&mut self, DevicePath { app_id, dev_id }: DevicePath<'_>) {
        let id = self.hasher.hash_one(dev_id);
        let devices = self.applications.get_mut(app_id);
        if devices.is_some_and(|devices| devices.last.remove(&id).is_some()) {
            self.bytes -= DEVICE_BYTES;
        }
    }

    /// Forgets an application that is not watched. If it is once more, all of its alarms are set anew.
    pub(super) fn forget_application(&mut self, app_id: &AppId) {
        if let Some(devices) = self.applications.remove(app_id) {
            self.bytes -= devices.bytes();
        }
    }

    /// Forgets an application that is watched: of the time before now, nothing is known.
    pub(super) fn lose_application(&mut self, app_id: &AppId, now: Timestamp) {
        self.forget_application(app_id);
        let group = self.group(app_id);
        if let Some(since) = self.since.get_mut(group) {
            *since = now;
        }
    }

    /// If there is too much, forgets owners who have most, until an eighth is free: it counts all, so it is to be rare.
    pub(super) fn make_room(&mut self, owner_of: impl Fn(&AppId) -> Owner, now: Timestamp) {
        if self.bytes <= self.bytes_max {
            return;
        }
        let applications = self.applications.iter().map(|(app_id, devices)| (app_id, devices.bytes()));
        for app_ids in largest_first(applications, owner_of) {
            app_ids.iter().for_each(|app_id| self.lose_application(app_id, now));
            if self.bytes <= self.bytes_max - self.bytes_max / 8 {
                return;
            }
        }
    }

    /// Forgets everything, and remembers from now on.
    pub(super) fn forget(&mut self, now: Timestamp) {
        *self = Self::new(now, self.bytes_max);
    }

    fn group_since(&self, app_id: &AppId) -> Timestamp {
        self.since.get(self.group(app_id)).copied().unwrap_or_default()
    }

    fn group(&self, app_id: &AppId) -> usize {
        self.hasher.hash_one(app_id) as usize % GROUPS
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::owners::examples::{app, by_first_letter, dev, path},
        *,
    };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn the_owner_who_has_most_is_forgotten_and_others_are_not() {
        let mut times = Times::new(at(0), 100 * (APPLICATION_BYTES + DEVICE_BYTES));
        for number in 0..20 {
            times.note(path(&app(&format!("few-{number}")), &dev(0)), at(10));
        }
        let mut forgotten = Vec::new();
        for number in 0..1000 {
            times.note(path(&app(&format!("many-{number}")), &dev(0)), at(20));
            times.make_room(by_first_letter, at(30));
            assert!(times.bytes <= times.bytes_max, "{number}");
            forgotten.extend((times.applications.len() == 20).then_some(number));
        }
        assert_eq!(forgotten, (80..1000).step_by(81).collect::<Vec<_>>(), "once an owner has 81 applications");
        for number in 0..20 {
            assert_eq!(times.last(path(&app(&format!("few-{number}")), &dev(0))), (Some(at(10)), at(0)));
        }
        assert_eq!(times.last(path(&app("many-0"), &dev(0))), (None, at(30)));
    }

    #[test]
    fn what_is_forgotten_is_not_said_to_be_known() {
        let mut times = Times::new(at(0), APPLICATION_BYTES + 9 * DEVICE_BYTES);
        for number in 0..10 {
            times.note(path(&app("large"), &dev(number)), at(10));
        }
        times.make_room(by_first_letter, at(20));
        assert_eq!((times.last(path(&app("large"), &dev(3))), times.bytes), ((None, at(20)), 0));
        times.note(path(&app("large"), &dev(3)), at(30));
        assert_eq!(times.last(path(&app("large"), &dev(3))), (Some(at(30)), at(20)));
        times.forget_device(path(&app("large"), &dev(3)));
        assert_eq!((times.last(path(&app("large"), &dev(3))), times.bytes), ((None, at(20)), APPLICATION_BYTES));
        times.forget(at(40));
        assert_eq!((times.last(path(&app("other"), &dev(1))), times.bytes), ((None, at(40)), 0));
    }

    #[test]
    fn memory_is_no_more_than_what_is_counted() {
        // A table of 16 bytes for each device and a byte of control, of which at least 7 of 16 places are used.
        assert!(DEVICE_BYTES >= (size_of::<(u64, Timestamp)>() + 1) * 16 / 7);
        // The same for applications, with the text of the longest id, and the smallest table of devices.
        let entry = (size_of::<(AppId, HeardDevices)>() + 1) * 16 / 7;
        assert!(APPLICATION_BYTES >= entry + 48 + 4 * 17, "{entry}");
    }
}
