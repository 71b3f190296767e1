//! Alarms that are due: they are set again for devices that were heard in the meantime, and the others are silent.

use futures::future::join_all;
use server::status::ErrorChain;
use store::{Batch, Key};
use types::{DevId, DevicePath, SilentAfter, SilentEvent, Timestamp};

use super::{
    alarm_change::AlarmChange,
    environment::Watcher,
    history::heard_after,
    next_step::NextStep,
    turn::{DEVICES, GRACE, Turn},
};
use crate::{
    Error,
    output::{Event, Message},
    registry::{alarm::Alarm, application::store_keys, device::WatchedDevice},
    status::metrics,
};

/// Alarms in the order of time.
#[derive(Default)]
struct Due {
    /// The next ones that are due, with their places, times and devices.
    alarms: Vec<(Key, Timestamp, DevId)>,
    /// When the one after them is due, if it was read.
    next: Option<Timestamp>,
}

/// Result of a look at alarms that are due.
pub(super) struct LookResult {
    /// Number of events.
    pub(super) events: usize,
    /// True if more alarms are due.
    pub(super) has_more: bool,
    /// When the next alarm is due; none if there is none.
    pub(super) next: Option<Timestamp>,
}

/// A device that this process has not heard since its alarm was set.
struct Unheard {
    found: WatchedDevice,
    after: SilentAfter,
}

impl Watcher {
    /// Looks at some alarms that are due.
    pub(super) async fn look_at_due(&self, turn: &mut Turn) -> Result<LookResult, Error> {
        let (app_id, now) = (turn.watched.app_id.clone(), self.clock.now());
        if turn.is_refused() {
            // The handler that reports deals with those before.
            let recent = store_keys::due_alarms_from(&app_id, now.minus(2 * GRACE))?;
            turn.last = turn.last.take().max(Some(recent));
        }
        let Due { alarms, next } = self.due(turn, now).await?;
        let (Some((_, oldest, _)), Some((last, ..))) = (alarms.first(), alarms.last()) else {
            // What this pass has looked at before may still be due.
            let next = if turn.last.is_some() { Some(now) } else { next };
            return Ok(LookResult { events: 0, has_more: false, next });
        };
        // Before they are read: what another handler has just reported must not be reported again.
        let may_report = self.may_report(turn, *oldest, now).await?;
        turn.last = Some(last.clone());
        let has_more = alarms.len() == DEVICES;
        let dev_ids = alarms.iter().map(|(.., dev_id)| dev_id.clone()).collect();
        let found = self.with.devices.watched(&app_id, dev_ids).await?;
        let (mut changes, mut unheard) = (Vec::new(), Vec::new());
        for ((place, time, _), found) in alarms.into_iter().zip(found) {
            let path = DevicePath { app_id: &app_id, dev_id: &found.dev_id };
            let alarm_place = found.alarm.as_ref().map(|alarm| alarm.place(path)).transpose()?;
            let is_set = alarm_place.flatten().as_ref() == Some(&place);
            match self.judge_found(turn, &found, now) {
                Some(NextStep::Due(after)) if is_set => {
                    // Otherwise, nobody needs to know more.
                    if may_report && self.may_report(turn, time, now).await? {
                        unheard.push(Unheard { found, after });
                    }
                }
                Some(next_step) if is_set => changes.extend(AlarmChange::of(next_step, found)),
                next_step => changes.push(AlarmChange::stale(place, found, next_step)),
            }
        }
        let (known, mut silent) = self.ask_history(turn, unheard, now).await;
        changes.extend(known);
        // History may have taken long.
        silent.retain(|device| !self.was_heard(turn, device));
        if !silent.is_empty() && !self.holds_lease(turn).await? {
            silent.clear();
        }
        self.commit(turn, changes).await?;
        Ok(LookResult { events: self.report(turn, silent).await?, has_more, next: Some(now) })
    }

    /// The next alarms that are due.
    async fn due(&self, turn: &Turn, now: Timestamp) -> Result<Due, Error> {
        let prefix = store_keys::due_alarms(&turn.watched.app_id)?;
        let mut due = Due::default();
        // Mostly nothing is due, and reading one place says so.
        for limit in [1, DEVICES - 1] {
            let last = due.alarms.last().map(|(place, ..)| place).or(turn.last.as_ref());
            let places = self.with.store.list(&prefix, last, limit).await?;
            for place in places {
                let (time, dev_id) = store_keys::due_alarm_of(&place.key)?;
                if time > now {
                    return Ok(Due { next: Some(time), ..due });
                }
                due.alarms.push((place.key, time, dev_id));
            }
            if due.alarms.is_empty() {
                break;
            }
        }
        Ok(due)
    }

    /// Returns changes for the devices that somebody else has heard, or of which nobody can say, and the silent ones.
    async fn ask_history(
        &self,
        turn: &Turn,
        unheard: Vec<Unheard>,
        now: Timestamp,
    ) -> (Vec<AlarmChange>, Vec<Unheard>) {
        let app_id = &turn.watched.app_id;
        let (mut changes, mut silent, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for device in unheard {
            let (_, complete_since) = self.with.last_heard.last(DevicePath { app_id, dev_id: &device.found.dev_id });
            match device.found.alarm.clone().filter(|alarm| complete_since > alarm.since) {
                Some(alarm) => open.push((alarm, complete_since, device)),
                None => silent.push(device),
            }
        }
        // What history has of the time before a jump has other times.
        let can_be_asked = |alarm: &Alarm| self.jumped.is_none_or(|jumped| alarm.since >= jumped);
        let asked = open.iter().filter(|(alarm, ..)| can_be_asked(alarm));
        let asked: Vec<_> = asked.map(|(alarm, _, device)| (device.found.dev_id.clone(), alarm.since)).collect();
        let known = heard_after(self.with.history.as_deref(), app_id, &asked, now).await;
        for (alarm, complete_since, device) in open {
            // If nobody can say, the time is counted from where this process can.
            let counted = complete_since.plus(device.after.duration());
            let set = match known.get(&device.found.dev_id) {
                Some(Some(heard)) => Some(Alarm::heard(*heard, device.after)),
                None if counted > now => Some(alarm.due_at(counted)),
                Some(None) | None => None,
            };
            match set {
                Some(alarm) => changes.extend(AlarmChange::of(NextStep::Set(alarm), device.found)),
                None => silent.push(device),
            }
        }
        (changes, silent)
    }

    /// Returns true if this process has heard a device by now. The next pass sets its alarm.
    fn was_heard(&self, turn: &Turn, Unheard { found, .. }: &Unheard) -> bool {
        let (heard, _) = self.with.last_heard.last(DevicePath { app_id: &turn.watched.app_id, dev_id: &found.dev_id });
        let heard = heard.filter(|heard| *heard <= self.clock.now());
        heard.zip(found.alarm.as_ref()).is_some_and(|(heard, alarm)| heard > alarm.since)
    }

    /// Publishes an event for each of these devices, and then notes that. If the process is killed in between, the
    /// events are published again. Returns their number.
    async fn report(&self, turn: &Turn, silent: Vec<Unheard>) -> Result<usize, Error> {
        let events = silent.len();
        let receipts = join_all(silent.into_iter().map(|silent| async move {
            let published = self.with.output.publish(self.message(turn, &silent)).wait().await;
            (silent, published)
        }));
        let (mut changes, mut reported) = (Vec::new(), 0);
        for (Unheard { found, after }, published) in receipts.await {
            match published {
                Ok(()) => {
                    reported += 1;
                    changes.extend(AlarmChange::reported(found));
                }
                Err(error) => {
                    let (app_id, dev_id, error) = (&turn.watched.app_id, &found.dev_id, ErrorChain(&error));
                    tracing::warn!(%app_id, %dev_id, %error, "cannot publish that a device is silent: trying again");
                    changes.extend(AlarmChange::retried(found, after, self.clock.now()));
                }
            }
        }
        metrics::silent(reported);
        // Where that conflicts, the device was heard in the meantime.
        self.commit_changes(turn, changes, &Batch::new()).await?;
        Ok(events)
    }

    fn message(&self, turn: &Turn, Unheard { found, after }: &Unheard) -> Message {
        let (app_id, dev_id) = (turn.watched.app_id.clone(), found.dev_id.clone());
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
}
