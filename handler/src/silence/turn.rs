//! A turn of an application: some of its devices, so that no application makes the others wait.

use std::time::Duration;

use store::{Batch, Commit, Entry, Key};
use types::{DevId, DevicePath, SilentAfter, Timestamp};

use super::{
    alarm_change::AlarmChange,
    environment::Watcher,
    next_step::{NextStep, judge},
    schedule::CHECK_INTERVAL,
};
use crate::{
    Error,
    registry::{application::WatchedApplication, device::WatchedDevice},
    uplink::{ChangedDevices, recorded::one_at_a_time::Running},
};

/// Number of devices of a turn, of each kind. A commit changes up to four records for each.
pub(super) const DEVICES: usize = 128;
/// Time that other handlers have to set the alarms of devices that they heard.
pub(super) const GRACE: Duration = Duration::from_secs(60);
/// Time after the start, and after an outage of the store, in which nothing is reported: networks hand over what they
/// have kept.
const START: Duration = Duration::from_secs(60);

/// An application in a pass.
pub(super) struct Turn {
    pub(super) watched: WatchedApplication,
    /// Its summary. Alarms are set only while it stays the same.
    summary: Entry,
    pub(super) after: SilentAfter,
    /// The last due alarm that was looked at.
    pub(super) last: Option<Key>,
    lease: Lease,
    /// The last device whose alarm was set by the time of the application; none before the first.
    last_set: Option<DevId>,
    is_set: bool,
    /// The same of a walk over all devices, because too many of them were heard or set; none before the first.
    last_walked: Option<DevId>,
}

/// Right to report silences of an application, which one handler has at a time.
enum Lease {
    NotAsked,
    Held(Box<Running>),
    /// Another handler has it.
    Refused,
}

/// Result of looking at some devices that were heard or set.
struct SettleResult {
    /// True if their alarms are set; otherwise they are looked at again.
    is_settled: bool,
    /// True if there are more such devices.
    has_more: bool,
}

pub(super) struct TurnResult {
    /// Number of events, also of those that could not be published.
    pub(super) events: usize,
    /// True if the application has more to do now.
    pub(super) has_more: bool,
    /// When there is something to do again, as far as is known; none if there is no alarm.
    pub(super) next: Option<Timestamp>,
}

impl Turn {
    /// None if the devices of the application never count as silent. The alarms until the device `last_set` are set.
    pub(super) fn new(watched: WatchedApplication, last_set: Option<DevId>) -> Option<Self> {
        let (summary, after) = (watched.summary.clone()?, watched.after?);
        let is_set = !watched.is_outdated();
        Some(Self { watched, summary, after, last: None, lease: Lease::NotAsked, last_set, is_set, last_walked: None })
    }

    /// The last device whose alarm is set by the time of the application, while others follow.
    pub(super) fn unfinished(&self) -> Option<&DevId> {
        self.last_set.as_ref().filter(|_| !self.is_set)
    }

    /// Returns true if another handler reports the silences of the application now.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.lease, Lease::Refused)
    }
}

impl Watcher {
    /// Looks at some devices that were heard or set, at some whose alarms are set by another time, and at some alarms
    /// that are due.
    pub(super) async fn take_turn(&self, turn: &mut Turn) -> Result<TurnResult, Error> {
        let app_id = turn.watched.app_id.clone();
        let changed = match self.with.last_heard.take_changed(&app_id, DEVICES) {
            ChangedDevices::These(dev_ids) => {
                let settled = self.settle(turn, dev_ids.clone()).await;
                if !matches!(settled, Ok(true)) {
                    self.with.last_heard.put_back(&app_id, &dev_ids);
                }
                SettleResult { is_settled: settled?, has_more: dev_ids.len() == DEVICES }
            }
            ChangedDevices::All => self.walk(turn).await?,
        };
        let sets_more = !turn.is_set && self.set_more(turn).await?;
        let looked = self.look_at_due(turn).await?;
        let has_more = looked.has_more || sets_more || (changed.is_settled && changed.has_more);
        let is_open = !changed.is_settled || !turn.is_set || turn.is_refused();
        let next = if is_open { Some(self.clock.now()) } else { looked.next };
        Ok(TurnResult { events: looked.events, has_more, next })
    }

    /// Sets the alarms of some devices of an application of which all are to be looked at. A pass that ends before has
    /// the next one begin anew.
    async fn walk(&self, turn: &mut Turn) -> Result<SettleResult, Error> {
        let app_id = &turn.watched.app_id;
        if turn.last_walked.is_none() {
            self.with.last_heard.begin_all(app_id);
        }
        let dev_ids = self.with.devices.ids(app_id, turn.last_walked.as_ref(), DEVICES).await?;
        let Some(last) = dev_ids.last().cloned() else {
            self.with.last_heard.end_all(app_id);
            turn.last_walked = None;
            return Ok(SettleResult { is_settled: true, has_more: false });
        };
        let is_settled = self.settle(turn, dev_ids).await?;
        if is_settled {
            turn.last_walked = Some(last);
        }
        Ok(SettleResult { is_settled, has_more: true })
    }

    /// Sets the alarms of these devices, where they are to change. Returns false if some could not be set now.
    async fn settle(&self, turn: &Turn, dev_ids: Vec<DevId>) -> Result<bool, Error> {
        if dev_ids.is_empty() {
            return Ok(true);
        }
        let (app_id, now) = (&turn.watched.app_id, self.clock.now());
        let found = self.with.devices.watched(app_id, dev_ids).await?;
        let change = |found: WatchedDevice| AlarmChange::of(self.judge_found(turn, &found, now)?, found);
        self.commit(turn, found.into_iter().filter_map(change).collect()).await
    }

    /// Judges a device as far as this process knows; none if it is gone.
    pub(super) fn judge_found(&self, turn: &Turn, found: &WatchedDevice, now: Timestamp) -> Option<NextStep> {
        let (heard, _) = self.with.last_heard.last(DevicePath { app_id: &turn.watched.app_id, dev_id: &found.dev_id });
        let device = found.device.as_ref()?;
        Some(judge(device, found.alarm.as_ref(), turn.after, heard, now))
    }

    /// Sets the alarms of some devices by the time of the application. Returns true if there are more.
    async fn set_more(&self, turn: &mut Turn) -> Result<bool, Error> {
        if !self.holds_lease(turn).await? {
            return Ok(false);
        }
        let app_id = &turn.watched.app_id;
        let dev_ids = self.with.devices.ids(app_id, turn.last_set.as_ref(), DEVICES).await?;
        let Some(last) = dev_ids.last().cloned() else {
            self.with.applications.note_alarms_set(&turn.watched).await?;
            turn.is_set = true;
            return Ok(false);
        };
        let is_settled = self.settle(turn, dev_ids).await?;
        if is_settled {
            turn.last_set = Some(last);
        }
        // Otherwise the next pass tries again, with what the application is by then.
        Ok(is_settled)
    }

    /// Returns true if this handler may report a silence that was due at this time.
    pub(super) async fn may_report(&self, turn: &mut Turn, due: Timestamp, now: Timestamp) -> Result<bool, Error> {
        let grace = if self.with.is_shared { GRACE } else { Duration::ZERO };
        Ok(self.clock.age() >= START && now.since(due) >= grace && self.holds_lease(turn).await?)
    }

    /// Returns true if this handler has the right to report silences of the application.
    pub(super) async fn holds_lease(&self, turn: &mut Turn) -> Result<bool, Error> {
        if matches!(turn.lease, Lease::NotAsked) {
            turn.lease = match self.with.turns.begin("reporting of silences", &turn.watched.app_id).await {
                Ok(running) => Lease::Held(Box::new(running)),
                Err(Error::Running { .. } | Error::RunningElsewhere { .. }) => Lease::Refused,
                Err(error) => return Err(error),
            };
        }
        if matches!(&turn.lease, Lease::Held(running) if running.check().is_err()) {
            turn.lease = Lease::Refused;
        }
        Ok(matches!(turn.lease, Lease::Held(_)))
    }

    /// Commits changes, unless the settings of the application have changed since. Returns false if some conflicted.
    pub(super) async fn commit(&self, turn: &Turn, changes: Vec<AlarmChange>) -> Result<bool, Error> {
        let unchanged = Batch::new().expect(turn.summary.key.clone(), turn.summary.version);
        // Sooner than others look by themselves. While all alarms are set, they look with each pass.
        let soon = self.clock.now().plus(2 * CHECK_INTERVAL);
        let is_forward = turn.is_set && changes.iter().any(|change| change.is_forward(soon));
        let is_done = self.commit_changes(turn, changes, &unchanged).await?;
        if is_forward && self.with.is_shared {
            self.with.applications.note_alarms_forward(&turn.watched).await?;
        }
        Ok(is_done)
    }

    pub(super) async fn commit_changes(
        &self,
        turn: &Turn,
        changes: Vec<AlarmChange>,
        expected: &Batch,
    ) -> Result<bool, Error> {
        if changes.is_empty() {
            return Ok(true);
        }
        let add = |batch: Batch, change: &AlarmChange| change.add_to(batch, &turn.watched.app_id);
        let all = changes.iter().try_fold(expected.clone(), add)?;
        let is_done = self.with.store.commit(all).await? == Commit::Done;
        if is_done || changes.len() == 1 {
            return Ok(is_done);
        }
        for change in &changes {
            // For some, another handler or a change of the device was first. The next pass looks again.
            let _ = self.with.store.commit(add(expected.clone(), change)?).await?;
        }
        Ok(false)
    }
}
