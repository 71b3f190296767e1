//! Devices whose alarms are to be looked at, bounded in bytes: where owners have most of them, all devices are.

use std::collections::{HashMap, HashSet};

use server::ledger::Owner;
use types::{AppId, DevId, DevicePath};

use super::owners::largest_first;

/// Memory of a device: the text of its id, in a table that may be half empty.
const DEVICE_BYTES: usize = 112;
/// Memory of an application: its id, and a table without devices.
const APPLICATION_BYTES: usize = 448;

/// Devices whose alarms may be missing or wrong: they were heard for the first time or after long, or were set.
pub(super) struct ChangedByApplication {
    bytes_max: usize,
    bytes: usize,
    applications: HashMap<AppId, NotedDevices>,
}

/// Such devices of an application, for a look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangedDevices {
    /// These devices, which are not noted any more.
    These(Vec<DevId>),
    /// All, until somebody has looked at them.
    All,
}

/// Such devices of an application.
enum NotedDevices {
    These(HashSet<DevId>),
    /// There were too many to remember.
    All,
    /// Somebody looks at all, and these were noted since.
    Since(HashSet<DevId>),
}

impl NotedDevices {
    fn bytes(&self) -> usize {
        match self {
            Self::These(dev_ids) | Self::Since(dev_ids) => APPLICATION_BYTES + DEVICE_BYTES * dev_ids.len(),
            Self::All => APPLICATION_BYTES,
        }
    }
}

impl ChangedByApplication {
    /// Takes so much memory at most.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, applications: HashMap::new() }
    }

    /// The applications with such devices.
    pub(super) fn applications(&self) -> HashSet<AppId> {
        self.applications.keys().cloned().collect()
    }

    pub(super) fn note(&mut self, DevicePath { app_id, dev_id }: DevicePath<'_>) {
        match self.applications.get_mut(app_id) {
            Some(NotedDevices::These(dev_ids) | NotedDevices::Since(dev_ids)) => {
                if dev_ids.insert(dev_id.clone()) {
                    self.bytes += DEVICE_BYTES;
                }
            }
            Some(NotedDevices::All) => {}
            None => self.put(app_id, NotedDevices::These(HashSet::from([dev_id.clone()]))),
        }
    }

    /// Notes that somebody begins to look at all devices of an application.
    pub(super) fn begin_all(&mut self, app_id: &AppId) {
        if matches!(self.applications.get(app_id), Some(NotedDevices::All | NotedDevices::Since(_))) {
            self.put(app_id, NotedDevices::Since(HashSet::new()));
        }
    }

    /// Notes that somebody has looked at all devices of an application. Those that were noted meanwhile are to be looked
    /// at once more, and all of them if there were too many.
    pub(super) fn end_all(&mut self, app_id: &AppId) {
        match self.applications.remove(app_id) {
            Some(NotedDevices::Since(dev_ids)) if dev_ids.is_empty() => self.bytes -= APPLICATION_BYTES,
            Some(NotedDevices::Since(dev_ids)) => {
                _ = self.applications.insert(app_id.clone(), NotedDevices::These(dev_ids));
            }
            Some(other) => _ = self.applications.insert(app_id.clone(), other),
            None => {}
        }
    }

    /// Takes devices of an application, `count_max` at most, unless all of them are to be looked at.
    pub(super) fn take(&mut self, app_id: &AppId, count_max: usize) -> ChangedDevices {
        match self.applications.get_mut(app_id) {
            None => ChangedDevices::These(Vec::new()),
            Some(NotedDevices::All | NotedDevices::Since(_)) => ChangedDevices::All,
            Some(NotedDevices::These(dev_ids)) => {
                let taken: Vec<DevId> = dev_ids.iter().take(count_max).cloned().collect();
                taken.iter().for_each(|dev_id| _ = dev_ids.remove(dev_id));
                let is_empty = dev_ids.is_empty();
                self.bytes -= DEVICE_BYTES * taken.len();
                if is_empty {
                    self.remove(app_id);
                }
                ChangedDevices::These(taken)
            }
        }
    }

    /// If there are too many, remembers only of owners who have most that all of their devices are to be looked at. If
    /// there are too many applications, forgets those of owners who have most, and returns them.
    pub(super) fn make_room(&mut self, owner_of: impl Fn(&AppId) -> Owner) -> Vec<AppId> {
        let mut forgotten = Vec::new();
        if self.bytes <= self.bytes_max {
            return forgotten;
        }
        // So that it is rare.
        let bytes_left = self.bytes_max - self.bytes_max / 8;
        for app_ids in self.applications_by_owner(&owner_of) {
            app_ids.iter().for_each(|app_id| self.put(app_id, NotedDevices::All));
            if self.bytes <= bytes_left {
                return forgotten;
            }
        }
        for app_ids in self.applications_by_owner(&owner_of) {
            app_ids.iter().for_each(|app_id| self.remove(app_id));
            forgotten.extend(app_ids);
            if self.bytes <= bytes_left {
                break;
            }
        }
        forgotten
    }

    fn applications_by_owner(&self, owner_of: impl Fn(&AppId) -> Owner) -> Vec<Vec<AppId>> {
        largest_first(self.applications.iter().map(|(app_id, devices)| (app_id, devices.bytes())), owner_of)
    }

    /// Forgets an application.
    pub(super) fn remove(&mut self, app_id: &AppId) {
        if let Some(changed) = self.applications.remove(app_id) {
            self.bytes -= changed.bytes();
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    fn put(&mut self, app_id: &AppId, changed: NotedDevices) {
        self.bytes += changed.bytes();
        if let Some(before) = self.applications.insert(app_id.clone(), changed) {
            self.bytes -= before.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::owners::examples::{app, by_first_letter, dev, path},
        *,
    };

    #[test]
    fn devices_are_taken_once_and_in_parts() {
        let mut changed = ChangedByApplication::new(1 << 20);
        (0..5).chain(0..5).for_each(|number| changed.note(path(&app("my-app"), &dev(number))));
        assert_eq!(changed.applications(), HashSet::from([app("my-app")]));
        let mut taken = HashSet::new();
        for count in [3, 2, 0] {
            let ChangedDevices::These(dev_ids) = changed.take(&app("my-app"), 3) else { panic!("there is room") };
            assert_eq!(dev_ids.len(), count);
            taken.extend(dev_ids);
        }
        assert_eq!((taken, changed.bytes), ((0..5).map(dev).collect(), 0));
    }

    #[test]
    fn all_devices_of_the_owner_who_has_most_are_looked_at() {
        let mut changed = ChangedByApplication::new(3 * APPLICATION_BYTES + 12 * DEVICE_BYTES);
        changed.note(path(&app("few"), &dev(0)));
        changed.note(path(&app("many-2"), &dev(0)));
        for number in 0..20 {
            changed.note(path(&app("many-1"), &dev(number)));
            assert!(changed.make_room(by_first_letter).is_empty() && changed.bytes <= changed.bytes_max, "{number}");
        }
        assert_eq!(changed.take(&app("few"), 9), ChangedDevices::These(vec![dev(0)]));
        for app_id in ["many-1", "many-2"] {
            changed.begin_all(&app(app_id));
            // One that was looked at already.
            changed.note(path(&app(app_id), &dev(0)));
            assert_eq!(changed.take(&app(app_id), 9), ChangedDevices::All);
            changed.end_all(&app(app_id));
            assert_eq!(changed.take(&app(app_id), 9), ChangedDevices::These(vec![dev(0)]));
            assert_eq!(changed.take(&app(app_id), 9), ChangedDevices::These(Vec::new()));
        }
        assert_eq!(changed.bytes, 0);
    }

    #[test]
    fn applications_of_the_owner_who_has_too_many_are_forgotten() {
        let mut changed = ChangedByApplication::new(9 * APPLICATION_BYTES);
        changed.note(path(&app("few"), &dev(0)));
        let mut forgotten = Vec::new();
        for number in 0..7 {
            assert!(forgotten.is_empty(), "{number}");
            changed.note(path(&app(&format!("many-{number}")), &dev(0)));
            forgotten = changed.make_room(by_first_letter);
        }
        assert_eq!((forgotten.len(), changed.applications()), (7, HashSet::from([app("few")])));
    }
}
