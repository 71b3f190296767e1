//! Passes over the applications whose devices are listened to: owners take turns, and so do the applications of each.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    time::Duration,
};

use server::{ledger::Owner, status::ErrorChain};
use store::Entry;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use types::{AppId, Kind, Kinded};

use super::{
    clock::WatchedClock,
    environment::{Environment, Watcher},
    schedule::{Look, Schedule},
    turn::{Taken, Turn},
};
use crate::{
    Error,
    registry::application::{Listened, store_keys},
};

/// Pause between two passes.
const INTERVAL: Duration = Duration::from_secs(15);
/// Number of events that are published each second, of all applications together.
const EVENTS_PER_S: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);
/// Maximum number of turns of a pass, so that what happens to the clock is seen soon.
const TURNS_MAX: usize = 10_000;
/// The same for events.
const EVENTS_MAX: usize = EVENTS_PER_S as usize * 15;

/// Notices devices that are silent.
pub struct SilenceWatch {
    watcher: Watcher,
    /// The owner who had the last turn.
    last_owner: Option<Owner>,
    /// The application of each owner that had its last turn.
    last_applications: BTreeMap<Owner, AppId>,
    schedule: Schedule,
}

impl SilenceWatch {
    /// A watch that has not looked yet.
    pub fn new(environment: Environment) -> Self {
        let clock = WatchedClock::new(environment.clock.clone(), environment.monotonic.clone());
        let watcher = Watcher { with: environment, clock, jumped: None };
        Self { watcher, last_owner: None, last_applications: BTreeMap::new(), schedule: Schedule::default() }
    }

    /// Looks again and again, until it is to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
            if let Err(error) = self.pass(&stop).await {
                tracing::warn!(error = %ErrorChain(&error), "cannot look for silent devices: trying again");
            }
        }
    }

    /// Looks once at the applications whose devices are listened to, and in which something is to be done.
    pub async fn pass(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let looked = self.look_at_all(stop).await;
        if looked.is_err() {
            // As after a start: other handlers could not set alarms, and networks have kept uplinks.
            self.watcher.clock.restart();
            self.schedule = Schedule::default();
        }
        looked
    }

    async fn look_at_all(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let has_jumped = self.watcher.clock.has_jumped();
        if has_jumped {
            let now = self.watcher.clock.now();
            tracing::warn!("the clock has jumped: the silence of devices is counted from now on");
            self.watcher.with.heard.forget(now);
            self.watcher.jumped = Some(now);
        }
        let mut owners = self.applications(has_jumped).await?;
        self.last_applications.retain(|owner, _| owners.contains_key(owner));
        for (owner, waiting) in &mut owners {
            let Some(last) = self.last_applications.get(owner) else { continue };
            waiting.rotate_left(waiting.partition_point(|turn| turn.listened.app_id <= *last));
        }
        let served = self.last_owner.as_ref().map_or(0, |last| owners.range::<Owner, _>(..=last).count());
        let mut owners: Vec<_> = owners.into_iter().collect();
        // A pass may end before all have had a turn.
        owners.rotate_left(served);
        let (mut turns, mut events) = (0, 0);
        while !owners.is_empty() {
            for (owner, waiting) in &mut owners {
                if stop.is_cancelled() || turns >= TURNS_MAX || events >= EVENTS_MAX {
                    return Ok(());
                }
                let Some(mut turn) = waiting.pop_front() else { continue };
                turns += 1;
                self.last_owner = Some(owner.clone());
                self.last_applications.insert(owner.clone(), turn.listened.app_id.clone());
                let taken = self.take(&mut turn).await?;
                events += taken.events;
                if taken.has_more {
                    waiting.push_back(turn);
                }
                let pause = SECOND * u32::try_from(taken.events).unwrap_or(u32::MAX) / EVENTS_PER_S;
                _ = stop.run_until_cancelled(sleep(pause)).await;
            }
            owners.retain(|(_, waiting)| !waiting.is_empty());
        }
        Ok(())
    }

    /// An application that fails has its next turn in the next pass. An error if the store is away.
    async fn take(&mut self, turn: &mut Turn) -> Result<Taken, Error> {
        let taken = match self.watcher.take_turn(turn).await {
            Err(error) if error.kind() != Kind::Unavailable => {
                let (app_id, error) = (&turn.listened.app_id, ErrorChain(&error));
                tracing::warn!(%app_id, %error, "cannot look for silent devices of an application: trying again");
                Taken { events: 0, has_more: false, next: Some(self.watcher.clock.now()) }
            }
            taken => taken?,
        };
        let (version, now) = (turn.listened.name.version, self.watcher.clock.now());
        let look = match turn.unfinished() {
            Some(dev_id) => Look::soon(version, now, Some(dev_id.clone())),
            None if taken.has_more => Look::soon(version, now, None),
            None => Look::when_due(version, now, taken.next),
        };
        self.schedule.note(turn.listened.app_id.clone(), look);
        Ok(taken)
    }

    /// The applications whose devices are listened to, and in which something is to be done, by owner. What is left of
    /// others is deleted.
    async fn applications(&mut self, has_jumped: bool) -> Result<BTreeMap<Owner, VecDeque<Turn>>, Error> {
        let Environment { applications, owners: known, heard, .. } = &self.watcher.with;
        let mut owners: BTreeMap<Owner, VecDeque<Turn>> = BTreeMap::new();
        let (mut before, now) = (mem::take(&mut self.schedule), self.watcher.clock.now());
        // Before the names are read: of an application that is named later, all alarms are set.
        let mut changed = heard.changed_applications();
        let mut last: Option<AppId> = None;
        loop {
            let names = applications.listened(last.as_ref()).await?;
            let Some(end) = names.last() else { break };
            last = Some(store_keys::listened_app_of(&end.key)?);
            for name in names {
                let (app_id, version) = (store_keys::listened_app_of(&name.key)?, name.version);
                let is_changed = changed.remove(&app_id) || has_jumped;
                let last_set = match before.take(&app_id, version) {
                    Some(look) if look.is_idle(now) && !is_changed => {
                        self.schedule.note(app_id, look);
                        continue;
                    }
                    look => look.and_then(|look| look.last_set),
                };
                match self.watcher.listened(name, has_jumped).await {
                    Ok(None) => continue,
                    Ok(Some(listened)) => {
                        let owner = known.last(&app_id);
                        owners.entry(owner).or_default().extend(Turn::new(listened, last_set.clone()));
                    }
                    Err(error) if error.kind() == Kind::Unavailable => return Err(error),
                    Err(error) => {
                        let error = ErrorChain(&error);
                        tracing::warn!(%app_id, %error, "cannot look for silent devices in it: trying again");
                    }
                }
                // The pass may end before its turn.
                self.schedule.note(app_id, Look::soon(version, now, last_set));
            }
        }
        // Nobody wants to know of the others.
        changed.iter().for_each(|app_id| heard.forget_application(app_id));
        Ok(owners)
    }
}

impl Watcher {
    /// The application of this name; none if its devices never count as silent, and then its alarms are deleted.
    async fn listened(&self, name: Entry, has_jumped: bool) -> Result<Option<Listened>, Error> {
        let applications = &self.with.applications;
        let listened = applications.listened_application(name).await?;
        if listened.after.is_none() {
            applications.delete_alarms(&listened).await?;
            self.with.heard.forget_application(&listened.app_id);
            return Ok(None);
        }
        if has_jumped {
            // What was set by another clock is set again.
            applications.note_alarms_outdated(&listened).await?;
        }
        Ok(Some(listened))
    }
}
