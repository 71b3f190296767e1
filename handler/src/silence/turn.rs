//! A turn of an application: some of its devices, so that no application makes the others wait.

use std::time::Duration;

use futures::future::join_all;
use server::status::ErrorChain;
use store::{Batch, Commit, Entry, Key};
use types::{DevId, SilentAfter, SilentEvent, Timestamp};

use super::{
    environment::Watcher,
    history::{NotKnown, heard_after},
    verdict::{Verdict, judge},
};
use crate::{
    Error,
    output::{Event, Message},
    registry::{
        alarm::Alarm,
        application::{Listened, store_keys},
        device::ListenedDevice,
    },
    status::metrics,
    uplink::recorded::one_at_a_time::Running,
};

/// Number of devices of a turn, of each kind. A commit changes up to four records for each.
const DEVICES: usize = 128;
/// Time that other handlers have to set the alarms of devices that they heard.
const GRACE: Duration = Duration::from_secs(60);
/// Time after the start, and after an outage of the store, in which nothing is reported: networks hand over what they
/// have kept.
const START: Duration = Duration::from_secs(60);
/// Time until an event that could not be published is published again. It is twice as long each time.
const RETRY_MIN: Duration = Duration::from_secs(60);
const RETRY_MAX: Duration = Duration::from_secs(900);

/// An application in a pass.
pub(super) struct Turn {
    pub(super) listened: Listened,
    /// Its summary. Alarms are set only while it stays the same.
    summary: Entry,
    after: SilentAfter,
    /// The last due alarm that was looked at.
    last: Option<Key>,
    lease: Lease,
    /// The last device whose alarm was set by the time of the application; none before the first.
    last_set: Option<DevId>,
    is_set: bool,
}

/// Right to report silences of an application, which one handler has at a time.
enum Lease {
    NotAsked,
    Held(Box<Running>),
    /// Another handler has it.
    Refused,
}

/// Result of a turn.
pub(super) struct Taken {
    /// Number of events, also of those that could not be published.
    pub(super) events: usize,
    /// True if the application has more to do now.
    pub(super) has_more: bool,
}

/// A change of an alarm.
struct Step {
    dev_id: DevId,
    before: Option<(Alarm, Entry)>,
    /// None if it is deleted.
    after: Option<Alarm>,
    /// A place in the order of time that no alarm has any more.
    stale: Option<Key>,
}

/// A device that is silent.
struct Silent {
    found: ListenedDevice,
    after: SilentAfter,
}

impl Turn {
    /// None if the devices of the application never count as silent. The alarms until the device `last_set` are set.
    pub(super) fn new(listened: Listened, last_set: Option<DevId>) -> Option<Self> {
        let (summary, after) = (listened.summary.clone()?, listened.after?);
        let is_set = !listened.is_outdated();
        Some(Self { listened, summary, after, last: None, lease: Lease::NotAsked, last_set, is_set })
    }

    /// The last device whose alarm is set by the time of the application, while others follow.
    pub(super) fn unfinished(&self) -> Option<&DevId> {
        self.last_set.as_ref().filter(|_| !self.is_set)
    }
}

impl Watcher {
    /// Looks at some devices that were heard or set, at some whose alarms are set by another time, and at some alarms
    /// that are due.
    pub(super) async fn take_turn(&self, turn: &mut Turn) -> Result<Taken, Error> {
        let app_id = turn.listened.app_id.clone();
        let changed = self.with.heard.take_changed(&app_id, DEVICES);
        let settled = self.settle(turn, changed.clone()).await;
        if !matches!(settled, Ok(true)) {
            self.with.heard.put_back(&app_id, &changed);
        }
        let is_settled = settled?;
        let sets_more = !turn.is_set && self.set_more(turn).await?;
        let (events, has_more) = self.look_at_due(turn).await?;
        Ok(Taken { events, has_more: has_more || sets_more || (is_settled && changed.len() == DEVICES) })
    }

    /// Sets the alarms of these devices, where they are to change. Returns false if some could not be set now.
    async fn settle(&self, turn: &Turn, dev_ids: Vec<DevId>) -> Result<bool, Error> {
        if dev_ids.is_empty() {
            return Ok(true);
        }
        let (app_id, now) = (&turn.listened.app_id, self.clock.now());
        let found = self.with.devices.listened(app_id, dev_ids).await?;
        let step = |found: ListenedDevice| {
            let (heard, _) = self.with.heard.last(app_id, &found.dev_id);
            let device = found.device.as_ref()?;
            Step::of(judge(device, found.alarm.as_ref(), turn.after, heard, now), found)
        };
        self.commit(turn, found.into_iter().filter_map(step).collect()).await
    }

    /// Sets the alarms of some devices by the time of the application. Returns true if there are more.
    async fn set_more(&self, turn: &mut Turn) -> Result<bool, Error> {
        if !self.holds_lease(turn).await? {
            return Ok(false);
        }
        let app_id = &turn.listened.app_id;
        let dev_ids = self.with.devices.ids(app_id, turn.last_set.as_ref(), DEVICES).await?;
        let Some(last) = dev_ids.last().cloned() else {
            self.with.applications.note_alarms_set(&turn.listened).await?;
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

    /// Looks at some alarms that are due. Returns the number of events, and true if there are more alarms.
    async fn look_at_due(&self, turn: &mut Turn) -> Result<(usize, bool), Error> {
        let (app_id, now) = (turn.listened.app_id.clone(), self.clock.now());
        if matches!(turn.lease, Lease::Refused) {
            // The handler that has it deals with those before.
            let recent = store_keys::due_alarms_from(&app_id, now.minus(2 * GRACE))?;
            turn.last = turn.last.take().max(Some(recent));
        }
        let due = self.due(turn, now).await?;
        let (Some((_, oldest, _)), Some((last, ..))) = (due.first(), due.last()) else { return Ok((0, false)) };
        // Before they are read: what another handler has just reported must not be reported again.
        self.may_report(turn, *oldest, now).await?;
        turn.last = Some(last.clone());
        let has_more = due.len() == DEVICES;
        let dev_ids = due.iter().map(|(.., dev_id)| dev_id.clone()).collect();
        let found = self.with.devices.listened(&app_id, dev_ids).await?;
        let (mut steps, mut silent) = (Vec::new(), Vec::new());
        for ((place, time, _), found) in due.into_iter().zip(found) {
            let verdict = self.judge_due(turn, &found, &place, now).await?;
            let may_report = matches!(verdict, Some(Verdict::Due(_))) && self.may_report(turn, time, now).await?;
            match verdict {
                None => steps.push(Step::stale(place, found)),
                Some(Verdict::Due(after)) if may_report => silent.push(Silent { found, after }),
                Some(verdict) => steps.extend(Step::of(verdict, found)),
            }
        }
        self.commit(turn, steps).await?;
        Ok((self.report(turn, silent).await?, has_more))
    }

    /// The places of the next alarms that are due, with their times and devices.
    async fn due(&self, turn: &Turn, now: Timestamp) -> Result<Vec<(Key, Timestamp, DevId)>, Error> {
        let prefix = store_keys::due_alarms(&turn.listened.app_id)?;
        let mut due: Vec<(Key, Timestamp, DevId)> = Vec::new();
        // Mostly nothing is due, and reading one place says so.
        for limit in [1, DEVICES - 1] {
            let last = due.last().map(|(place, ..)| place).or(turn.last.as_ref());
            let places = self.with.store.list(&prefix, last, limit).await?;
            for place in places {
                let (time, dev_id) = store_keys::due_alarm_of(&place.key)?;
                if time > now {
                    return Ok(due);
                }
                due.push((place.key, time, dev_id));
            }
            if due.is_empty() {
                break;
            }
        }
        Ok(due)
    }

    /// Judges the device of an alarm that is due; none if the alarm is at another place by now, or the device is gone.
    async fn judge_due(
        &self,
        turn: &Turn,
        found: &ListenedDevice,
        place: &Key,
        now: Timestamp,
    ) -> Result<Option<Verdict>, Error> {
        let ids = (&turn.listened.app_id, &found.dev_id);
        let (Some(device), Some(alarm)) = (&found.device, &found.alarm) else { return Ok(None) };
        if alarm.place(ids)?.as_ref() != Some(place) {
            return Ok(None);
        }
        let (heard, complete_since) = self.with.heard.last(ids.0, ids.1);
        let verdict = judge(device, Some(alarm), turn.after, heard, now);
        let Verdict::Due(after) = verdict else { return Ok(Some(verdict)) };
        if complete_since <= alarm.since {
            return Ok(Some(verdict));
        }
        let known = match self.jumped.is_some_and(|jumped| alarm.since < jumped) {
            // What history has of the time before has other times.
            true => Err(NotKnown),
            false => heard_after(self.with.history.as_deref(), ids, alarm.since, now).await,
        };
        // If nobody can say, the time is counted from where this process can.
        let counted = complete_since.plus(after.duration());
        Ok(Some(match known {
            Ok(Some(heard)) => Verdict::Set(Alarm::heard(heard, after)),
            Err(NotKnown) if counted > now => Verdict::Set(alarm.clone().due_at(counted)),
            Ok(None) | Err(NotKnown) => verdict,
        }))
    }

    /// Returns true if this handler may report a silence that was due at this time.
    async fn may_report(&self, turn: &mut Turn, due: Timestamp, now: Timestamp) -> Result<bool, Error> {
        let grace = if self.with.is_shared { GRACE } else { Duration::ZERO };
        Ok(self.clock.age() >= START && now.since(due) >= grace && self.holds_lease(turn).await?)
    }

    async fn holds_lease(&self, turn: &mut Turn) -> Result<bool, Error> {
        if matches!(turn.lease, Lease::NotAsked) {
            turn.lease = match self.with.turns.begin("reporting of silences", &turn.listened.app_id).await {
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

    /// Publishes an event for each of these devices, and then notes that. If the process is killed in between, the
    /// events are published again. Returns their number.
    async fn report(&self, turn: &Turn, silent: Vec<Silent>) -> Result<usize, Error> {
        let events = silent.len();
        let receipts = join_all(silent.into_iter().map(|silent| async move {
            let published = self.with.output.publish(self.message(turn, &silent)).wait().await;
            (silent, published)
        }));
        let (mut steps, mut reported) = (Vec::new(), 0);
        for (silent, published) in receipts.await {
            match published {
                Ok(()) => {
                    reported += 1;
                    steps.extend(Step::reported(silent.found));
                }
                Err(error) => {
                    let (app_id, dev_id, error) = (&turn.listened.app_id, &silent.found.dev_id, ErrorChain(&error));
                    tracing::warn!(%app_id, %dev_id, %error, "cannot publish that a device is silent: trying again");
                    steps.extend(Step::retried(silent, self.clock.now()));
                }
            }
        }
        metrics::silent(reported);
        // Where that conflicts, the device was heard in the meantime.
        self.commit_steps(turn, steps, &Batch::new()).await?;
        Ok(events)
    }

    fn message(&self, turn: &Turn, Silent { found, after }: &Silent) -> Message {
        let (app_id, dev_id) = (turn.listened.app_id.clone(), found.dev_id.clone());
        let event = SilentEvent {
            app_id: app_id.clone(),
            dev_id: dev_id.clone(),
            hardware_serial: found.device.as_ref().map(|device| device.lorawan.dev_eui).unwrap_or_default(),
            last_seen: found.alarm.as_ref().and_then(|alarm| alarm.last_seen),
            silent_after_s: *after,
            time: self.clock.now(),
        };
        Message { app_id, dev_id, event: Event::Silent(Box::new(event)) }
    }

    /// Commits steps, unless the settings of the application have changed since. Returns false if some conflicted.
    async fn commit(&self, turn: &Turn, steps: Vec<Step>) -> Result<bool, Error> {
        let unchanged = Batch::new().expect(turn.summary.key.clone(), turn.summary.version);
        self.commit_steps(turn, steps, &unchanged).await
    }

    async fn commit_steps(&self, turn: &Turn, steps: Vec<Step>, expected: &Batch) -> Result<bool, Error> {
        if steps.is_empty() {
            return Ok(true);
        }
        let add = |batch: Batch, step: &Step| step.add_to(batch, turn);
        let all = steps.iter().try_fold(expected.clone(), add)?;
        let is_done = self.with.store.commit(all).await? == Commit::Done;
        if is_done || steps.len() == 1 {
            return Ok(is_done);
        }
        for step in &steps {
            // For some, another handler or a change of the device was first. The next pass looks again.
            let _ = self.with.store.commit(add(expected.clone(), step)?).await?;
        }
        Ok(false)
    }
}

impl Step {
    /// None if nothing is to change.
    fn of(verdict: Verdict, found: ListenedDevice) -> Option<Self> {
        let after = match verdict {
            Verdict::Keep | Verdict::Due(_) => return None,
            Verdict::Set(alarm) => Some(alarm),
            Verdict::Delete => None,
        };
        let ListenedDevice { dev_id, alarm, entry, .. } = found;
        Some(Self { dev_id, before: alarm.zip(entry), after, stale: None })
    }

    /// Notes that a silence was reported.
    fn reported(found: ListenedDevice) -> Option<Self> {
        let alarm = found.alarm.clone()?.reported();
        Self::of(Verdict::Set(alarm), found)
    }

    /// Has a silence reported again later: outputs that have taken the event get it with each attempt.
    fn retried(Silent { found, after }: Silent, now: Timestamp) -> Option<Self> {
        let alarm = found.alarm.clone()?;
        let overdue = now.since(alarm.since.plus(after.duration()));
        let due = now.plus(overdue.clamp(RETRY_MIN, RETRY_MAX));
        Self::of(Verdict::Set(alarm.due_at(due)), found)
    }

    /// Deletes a place that no alarm has, and the alarm of a device that is gone.
    fn stale(place: Key, found: ListenedDevice) -> Self {
        let ListenedDevice { dev_id, device, alarm, entry } = found;
        let before = alarm.zip(entry);
        let after = if device.is_some() { before.as_ref().map(|(alarm, _)| alarm.clone()) } else { None };
        Self { dev_id, before, after, stale: Some(place) }
    }

    fn add_to(&self, batch: Batch, turn: &Turn) -> Result<Batch, Error> {
        let ids = (&turn.listened.app_id, &self.dev_id);
        let (before, entry) = self.before.as_ref().map(|(alarm, entry)| (alarm, entry)).unzip();
        let mut batch = batch.expect_entry(&store_keys::alarm(ids.0, ids.1)?, entry);
        if let Some(stale) = &self.stale {
            batch = batch.delete(stale.clone());
        }
        match (&self.after, before) {
            // Its version stays: the same look may report the device.
            (Some(after), Some(before)) if after == before => Ok(batch),
            (Some(after), before) => after.put(batch, ids, before),
            (None, Some(before)) => before.delete(batch, ids),
            (None, None) => Ok(batch),
        }
    }
}
