//! When this process heard the devices whose silence is noticed. It is in memory only, so an uplink writes no more.
//!
//! It is complete since a time: the start of the process, or when there were too many devices to remember.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use types::{AppId, Clock, DevId, Timestamp};

use crate::registry::{application::ApplicationSummary, device::Device};

/// Maximum number of devices that are remembered, some 32 bytes each.
const DEVICES_MAX: usize = 1 << 20;
/// Maximum number of those of one application.
const APPLICATION_DEVICES_MAX: usize = DEVICES_MAX / 4;
/// Maximum number of applications with such devices.
const APPLICATIONS_MAX: usize = 100_000;
/// Maximum number of devices of an application whose alarms are to be looked at.
const CHANGED_MAX: usize = 100_000;

/// When devices were heard.
pub struct Heard {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    state: Mutex<State>,
}

struct State {
    /// It is complete since then, apart from the applications that say another time.
    since: Timestamp,
    applications: HashMap<AppId, HeardDevices>,
    /// The number of devices of all of them.
    devices: usize,
}

/// The devices of an application.
struct HeardDevices {
    since: Timestamp,
    /// By the hash of their ids.
    last: HashMap<u64, Timestamp>,
    /// Those whose alarms may be missing or wrong: they were heard for the first time or after long, or were set.
    changed: HashSet<DevId>,
}

impl Heard {
    /// Remembers from now on.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { since: clock.now(), applications: HashMap::new(), devices: 0 };
        Self { clock, hasher: RandomState::new(), state: Mutex::new(state) }
    }

    /// Notes that a device was heard, if its silence is noticed.
    pub(super) fn note(&self, application: &ApplicationSummary, device: &Device) {
        let Some(after) = application.silent_after else { return };
        let (now, id) = (self.clock.now(), self.hasher.hash_one(&device.dev_id));
        let mut state = self.state();
        // What is not noted must not be taken for the last time later.
        let Some(after) = after.of_device(&device.attributes) else { return state.remove(&application.app_id, id) };
        let devices = state.application(&application.app_id);
        let last = devices.last.get(&id).copied();
        // It may have been reported as silent since. After the clock was set back, nothing is known.
        let is_new = last.is_none_or(|last| last > now || now.since(last) >= after.duration());
        if is_new && !devices.note_changed(&device.dev_id) {
            // The next uplink tries again, and until then this one is not known.
            devices.since = now;
            return;
        }
        devices.last.insert(id, now);
        if last.is_none() {
            state.devices += 1;
            state.make_room(&application.app_id, now);
        }
    }

    /// Notes that a device has joined, and that its alarm is to be looked at: its silence may have been reported.
    pub(crate) fn note_joined(&self, app_id: &AppId, dev_id: &DevId) {
        let (now, id) = (self.clock.now(), self.hasher.hash_one(dev_id));
        let mut state = self.state();
        // Nobody looks at the devices of other applications.
        let Some(devices) = state.applications.get_mut(app_id) else { return };
        if !devices.note_changed(dev_id) {
            devices.since = now;
            return;
        }
        if devices.last.insert(id, now).is_none() {
            state.devices += 1;
            state.make_room(app_id, now);
        }
    }

    /// Notes that the alarm of a device is to be looked at, because the device was set.
    pub(crate) fn note_changed(&self, app_id: &AppId, dev_id: &DevId) {
        let mut state = self.state();
        // Nobody looks at the devices of other applications.
        if let Some(devices) = state.applications.get_mut(app_id) {
            _ = devices.note_changed(dev_id);
        }
    }

    /// Takes devices of an application whose alarms are to be looked at.
    pub(crate) fn take_changed(&self, app_id: &AppId, count_max: usize) -> Vec<DevId> {
        let mut state = self.state();
        // From now on, devices of it that are set are noted.
        let devices = state.application(app_id);
        let taken: Vec<DevId> = devices.changed.iter().take(count_max).cloned().collect();
        taken.iter().for_each(|dev_id| _ = devices.changed.remove(dev_id));
        taken
    }

    /// Puts back what was taken and could not be looked at.
    pub(crate) fn put_back(&self, app_id: &AppId, dev_ids: &[DevId]) {
        dev_ids.iter().for_each(|dev_id| self.note_changed(app_id, dev_id));
    }

    /// When a device was last heard, if it is remembered; and the time since which all that were heard are.
    pub(crate) fn last(&self, app_id: &AppId, dev_id: &DevId) -> (Option<Timestamp>, Timestamp) {
        let id = self.hasher.hash_one(dev_id);
        let state = self.state();
        match state.applications.get(app_id) {
            Some(devices) => (devices.last.get(&id).copied(), devices.since),
            None => (None, state.since),
        }
    }

    /// Forgets the devices of an application whose silence is not noticed any more.
    pub(crate) fn forget_application(&self, app_id: &AppId) {
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(devices) = state.applications.remove(app_id) {
            state.devices -= devices.last.len();
            // For when somebody wants to know again.
            state.since = now;
        }
    }

    /// Forgets everything, and remembers from now on.
    pub(crate) fn forget(&self, now: Timestamp) {
        self.state().forget(now);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the times usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn application(&mut self, app_id: &AppId) -> &mut HeardDevices {
        let since = self.since;
        let new = || HeardDevices { since, last: HashMap::new(), changed: HashSet::new() };
        self.applications.entry(app_id.clone()).or_insert_with(new)
    }

    /// Forgets a device.
    fn remove(&mut self, app_id: &AppId, id: u64) {
        let devices = self.applications.get_mut(app_id);
        if devices.is_some_and(|devices| devices.last.remove(&id).is_some()) {
            self.devices -= 1;
        }
    }

    /// Forgets devices of the largest application, if there are too many.
    fn make_room(&mut self, app_id: &AppId, now: Timestamp) {
        if self.applications.len() > APPLICATIONS_MAX {
            return self.forget(now);
        }
        let largest = match self.applications.get(app_id) {
            Some(devices) if devices.last.len() > APPLICATION_DEVICES_MAX => Some(app_id.clone()),
            _ if self.devices > DEVICES_MAX => {
                let largest = self.applications.iter().max_by_key(|(_, devices)| devices.last.len());
                largest.map(|(app_id, _)| app_id.clone())
            }
            _ => None,
        };
        let Some(largest) = largest else { return };
        if let Some(devices) = self.applications.get_mut(&largest) {
            self.devices -= mem::take(&mut devices.last).len();
            devices.since = now;
        }
    }

    fn forget(&mut self, now: Timestamp) {
        *self = Self { since: now, applications: HashMap::new(), devices: 0 };
    }
}

impl HeardDevices {
    /// Returns false if there are too many.
    fn note_changed(&mut self, dev_id: &DevId) -> bool {
        let has_room = self.changed.len() < CHANGED_MAX;
        if has_room {
            self.changed.insert(dev_id.clone());
        }
        has_room
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

    #[test]
    fn an_alarm_is_looked_at_when_a_device_is_heard_after_long_and_otherwise_not() {
        let clock = ManualClock::new();
        let (heard, app, device) = (Heard::new(clock.clone()), application("my-app"), device("dev-1"));
        let (started, mut changed) = (clock.now(), Vec::new());
        for pause_s in [0, 3599, 3600, 60] {
            clock.advance(Duration::from_secs(pause_s));
            heard.note(&app, &device);
            assert_eq!(heard.last(&app.app_id, &device.dev_id), (Some(clock.now()), started));
            changed.push(heard.take_changed(&app.app_id, 10).len());
        }
        clock.set_back(Duration::from_secs(1));
        heard.note(&app, &device);
        changed.push(heard.take_changed(&app.app_id, 10).len());
        assert_eq!(changed, [1, 0, 1, 0, 1]);
        heard.forget(clock.now());
        assert_eq!(heard.last(&app.app_id, &device.dev_id), (None, clock.now()));
    }

    #[test]
    fn the_alarm_of_a_device_that_joins_is_looked_at() {
        let clock = ManualClock::new();
        let (heard, app, device) = (Heard::new(clock.clone()), application("my-app"), device("dev-1"));
        heard.note_joined(&app.app_id, &device.dev_id);
        assert!(heard.state().applications.is_empty(), "nobody wants to know");
        heard.note(&app, &device);
        heard.take_changed(&app.app_id, 10);
        clock.advance(Duration::from_secs(60));
        heard.note_joined(&app.app_id, &device.dev_id);
        assert_eq!(heard.last(&app.app_id, &device.dev_id).0, Some(clock.now()));
        assert_eq!(heard.take_changed(&app.app_id, 10), [device.dev_id]);
        assert_eq!(heard.state().devices, 1);
    }

    #[test]
    fn nothing_is_noted_if_nobody_wants_to_know() {
        let clock = ManualClock::new();
        let heard = Heard::new(clock.clone());
        let app = application("my-app");
        let mut off = device("dev-1");
        off.attributes.insert(types::SILENT_AFTER.to_owned(), "off".to_owned());
        heard.note(&app, &off);
        heard.note(&ApplicationSummary { silent_after: None, ..app.clone() }, &device("dev-2"));
        heard.note_changed(&app.app_id, &off.dev_id);
        assert!(heard.state().applications.is_empty());
        // From now on, somebody looks.
        assert!(heard.take_changed(&app.app_id, 10).is_empty());
        heard.note_changed(&app.app_id, &off.dev_id);
        assert_eq!(heard.take_changed(&app.app_id, 10), [off.dev_id.clone()]);
        // It is forgotten when nobody wants to know any more.
        heard.note(&app, &device("dev-1"));
        heard.note(&app, &device("dev-2"));
        heard.note(&app, &off);
        assert_eq!((heard.last(&app.app_id, &off.dev_id).0, heard.state().devices), (None, 1));
        clock.advance(Duration::from_secs(1));
        heard.forget_application(&app.app_id);
        assert_eq!((heard.last(&app.app_id, &off.dev_id), heard.state().devices), ((None, clock.now()), 0));
    }

    #[test]
    fn a_large_application_is_forgotten_and_others_are_not() {
        let clock = ManualClock::new();
        let heard = Heard::new(clock.clone());
        let (small, large) = (application("small"), application("large"));
        heard.note(&small, &device("dev-1"));
        clock.advance(Duration::from_secs(60));
        for number in 0..=APPLICATION_DEVICES_MAX {
            heard.note(&large, &device(&format!("dev-{number}")));
            if number.is_multiple_of(CHANGED_MAX) {
                heard.take_changed(&large.app_id, CHANGED_MAX);
            }
        }
        assert_eq!(heard.last(&large.app_id, &device("dev-7").dev_id), (None, clock.now()));
        assert!(heard.last(&small.app_id, &device("dev-1").dev_id).0.is_some());
        assert_eq!(heard.state().devices, 1);
    }

    #[test]
    fn a_device_for_which_there_is_no_room_is_not_said_to_be_known() {
        let clock = ManualClock::new();
        let (heard, app) = (Heard::new(clock.clone()), application("my-app"));
        clock.advance(Duration::from_secs(60));
        for number in 0..=CHANGED_MAX {
            heard.note(&app, &device(&format!("dev-{number}")));
        }
        let last = device(&format!("dev-{CHANGED_MAX}")).dev_id;
        assert_eq!(heard.last(&app.app_id, &last), (None, clock.now()));
    }
}
