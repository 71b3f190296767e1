//! When this process heard the devices whose silence is noticed. It is in memory only, so an uplink writes no more.
//!
//! It is complete since a time: the start of the process, or when there were too many devices to remember.

mod changed;
mod owners;
mod times;

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use server::ledger::{Owner, Owners};
use types::{AppId, Clock, DevId, DevicePath, Timestamp};

pub(crate) use self::changed::ChangedDevices;
use self::{changed::ChangedByApplication, times::Times};
use crate::registry::{application::ApplicationSummary, device::Device};

/// Maximum memory of the times, in bytes: those of 1.6 million devices in large applications, or of 180,000
/// applications with one device each.
const TIMES_BYTES_MAX: usize = 64 << 20;
/// Maximum memory of the devices whose alarms are to be looked at, in bytes: some 290,000 that were heard for the first
/// time between two looks.
const CHANGED_BYTES_MAX: usize = 32 << 20;

/// When devices were heard.
pub struct LastHeardTimes {
    clock: Arc<dyn Clock>,
    owners: Option<Arc<Owners>>,
    state: Mutex<HeardDevices>,
}

struct HeardDevices {
    times: Times,
    changed: ChangedByApplication,
}

impl LastHeardTimes {
    /// Remembers from now on.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (times, changed) = (Times::new(clock.now(), TIMES_BYTES_MAX), ChangedByApplication::new(CHANGED_BYTES_MAX));
        Self { clock, owners: None, state: Mutex::new(HeardDevices { times, changed }) }
    }

    /// Forgets applications of the user first who has most. Without, each application has a user of its own.
    pub fn with_owners(self, owners: Arc<Owners>) -> Self {
        Self { owners: Some(owners), ..self }
    }

    /// Notes that a device was heard, if its silence is noticed.
    pub(super) fn note(&self, application: &ApplicationSummary, device: &Device) {
        let Some(after) = application.silent_after else { return };
        let path = DevicePath { app_id: &application.app_id, dev_id: &device.dev_id };
        let mut state = self.state.lock();
        // What is not noted must not be taken for the last time later.
        let Some(after) = after.of_device(&device.attributes) else { return state.times.forget_device(path) };
        let now = self.clock.now();
        let last = state.times.note(path, now);
        // It may have been reported as silent since. After the clock was set back, nothing is known.
        if last.is_none_or(|last| last > now || now.since(last) >= after.duration()) {
            state.changed.note(path);
        }
        self.make_room(&mut state, now);
    }

    /// Notes that a device has joined, and that its alarm is to be looked at: its silence may have been reported.
    pub(crate) fn note_joined(&self, path: DevicePath<'_>) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.times.note(path, now);
        state.changed.note(path);
        self.make_room(&mut state, now);
    }

    /// Notes when a process before this one heard a device, unless this one has, and that its alarm is to be looked at.
    pub(crate) fn note_heard_before(&self, path: DevicePath<'_>, at: Timestamp) {
        let mut state = self.state.lock();
        if state.times.last(path).0.is_none() {
            state.times.note(path, at);
        }
        state.changed.note(path);
        self.make_room(&mut state, self.clock.now());
    }

    /// Notes that the alarm of a device is to be looked at, because the device was set, or came.
    pub(crate) fn note_changed(&self, path: DevicePath<'_>) {
        let mut state = self.state.lock();
        state.changed.note(path);
        self.make_room(&mut state, self.clock.now());
    }

    /// The applications with devices whose alarms are to be looked at.
    pub(crate) fn changed_applications(&self) -> HashSet<AppId> {
        self.state.lock().changed.applications()
    }

    /// Takes devices of an application whose alarms are to be looked at.
    pub(crate) fn take_changed(&self, app_id: &AppId, count_max: usize) -> ChangedDevices {
        self.state.lock().changed.take(app_id, count_max)
    }

    /// Puts back what was taken and could not be looked at.
    pub(crate) fn put_back(&self, app_id: &AppId, dev_ids: &[DevId]) {
        dev_ids.iter().for_each(|dev_id| self.note_changed(DevicePath { app_id, dev_id }));
    }

    /// Notes that somebody begins to look at all devices of an application.
    pub(crate) fn begin_all(&self, app_id: &AppId) {
        self.state.lock().changed.begin_all(app_id);
    }

    /// Notes that somebody has looked at all devices of an application.
    pub(crate) fn end_all(&self, app_id: &AppId) {
        self.state.lock().changed.end_all(app_id);
    }

    /// When a device was last heard, if it is remembered; and the time since which all that were heard are.
    pub(crate) fn last(&self, path: DevicePath<'_>) -> (Option<Timestamp>, Timestamp) {
        self.state.lock().times.last(path)
    }

    /// Forgets the devices of an application whose silence is not noticed.
    pub(crate) fn forget_application(&self, app_id: &AppId) {
        let mut state = self.state.lock();
        state.changed.remove(app_id);
        state.times.forget_application(app_id);
    }

    /// Forgets everything, and remembers from now on.
    pub(crate) fn forget(&self, now: Timestamp) {
        self.state.lock().forget(now);
    }

    fn make_room(&self, state: &mut HeardDevices, now: Timestamp) {
        let owner_of = |app_id: &AppId| match &self.owners {
            Some(owners) => owners.last(app_id),
            None => Owner::from(app_id),
        };
        state.times.make_room(owner_of, now);
        for app_id in state.changed.make_room(owner_of) {
            // So that its devices are noted again with their next uplinks.
            state.times.lose_application(&app_id, now);
        }
    }
}

impl HeardDevices {
    fn forget(&mut self, now: Timestamp) {
        self.times.forget(now);
        self.changed.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use testing::ManualClock;

    use super::*;
    use crate::registry::{application::Application, device::Lorawan};

    fn application(app_id: &str) -> ApplicationSummary {
        let (summary, _) = Application::new(app_id.parse().unwrap()).into_parts();
        ApplicationSummary { silent_after: Some("1h".parse().unwrap()), ..summary }
    }

    fn device(dev_id: &str) -> Device {
        Device {
            app_id: "my-app".parse().unwrap(),
            dev_id: dev_id.parse().unwrap(),
            description: String::new(),
            latitude: 0.0,
            longitude: 0.0,
            altitude: 0,
            attributes: BTreeMap::new(),
            lorawan: Lorawan::default(),
        }
    }

    fn taken(last_heard: &LastHeardTimes, app_id: &AppId) -> HashSet<DevId> {
        let ChangedDevices::These(dev_ids) = last_heard.take_changed(app_id, 10) else { panic!("there is room") };
        dev_ids.into_iter().collect()
    }

    #[test]
    fn an_alarm_is_looked_at_when_a_device_is_heard_after_long_and_otherwise_not() {
        let clock = ManualClock::new();
        let (last_heard, app, device) = (LastHeardTimes::new(clock.clone()), application("my-app"), device("dev-1"));
        let (started, mut changed) = (clock.now(), Vec::new());
        for pause_s in [0, 3599, 3600, 60] {
            clock.advance(Duration::from_secs(pause_s));
            last_heard.note(&app, &device);
            assert_eq!(last_heard.last(device.path()), (Some(clock.now()), started));
            changed.push(taken(&last_heard, &app.app_id).len());
        }
        clock.set_back(Duration::from_secs(1));
        last_heard.note(&app, &device);
        changed.push(taken(&last_heard, &app.app_id).len());
        assert_eq!(changed, [1, 0, 1, 0, 1]);
        last_heard.forget(clock.now());
        assert_eq!(last_heard.last(device.path()), (None, clock.now()));
    }

    #[test]
    fn the_alarm_of_a_device_that_joins_is_looked_at() {
        let clock = ManualClock::new();
        let (last_heard, app, device) = (LastHeardTimes::new(clock.clone()), application("my-app"), device("dev-1"));
        last_heard.note(&app, &device);
        taken(&last_heard, &app.app_id);
        clock.advance(Duration::from_secs(60));
        last_heard.note_joined(device.path());
        assert_eq!(last_heard.last(device.path()).0, Some(clock.now()));
        assert_eq!(taken(&last_heard, &app.app_id), HashSet::from([device.dev_id]));
    }

    #[test]
    fn what_is_put_back_is_looked_at_again() {
        let last_heard = LastHeardTimes::new(ManualClock::new());
        let app_id = application("my-app").app_id;
        last_heard.note_changed(device("dev-1").path());
        let changed: Vec<DevId> = taken(&last_heard, &app_id).into_iter().collect();
        assert_eq!(last_heard.changed_applications(), HashSet::new());
        last_heard.put_back(&app_id, &changed);
        assert_eq!(last_heard.changed_applications(), HashSet::from([app_id]));
    }

    #[test]
    fn nothing_is_remembered_if_nobody_wants_to_know() {
        let clock = ManualClock::new();
        let (last_heard, app) = (LastHeardTimes::new(clock.clone()), application("my-app"));
        last_heard.note(&ApplicationSummary { silent_after: None, ..app.clone() }, &device("dev-1"));
        assert_eq!(last_heard.changed_applications(), HashSet::new());
        last_heard.note(&app, &device("dev-1"));
        let mut off = device("dev-1");
        off.attributes.insert(types::SILENT_AFTER.to_owned(), "off".to_owned());
        last_heard.note(&app, &off);
        assert_eq!(last_heard.last(off.path()).0, None);
        last_heard.note(&app, &device("dev-2"));
        last_heard.forget_application(&app.app_id);
        assert_eq!(last_heard.changed_applications(), HashSet::new());
        assert_eq!(last_heard.last(device("dev-2").path()), (None, clock.now()));
    }
}
