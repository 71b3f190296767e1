//! Passes over the applications whose devices are watched: owners take turns, and so do the applications of each.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    time::Duration,
};

use server::{ledger::Owner, status::ErrorChain};
use store::Entry;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use types::{AppId, Kind, Kinded, Timestamp};

use super::{
    clock::{TimeLimit, WatchedClock},
    environment::{Environment, Watcher},
    schedule::{LastLook, Schedule},
    turn::{Turn, TurnResult},
    walk::Walk,
};
use crate::{
    Error,
    registry::application::{WatchedApplication, store_keys},
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
/// The same for the time, because the store may be slow. Half of it is for turns.
const PASS_MAX: Duration = Duration::from_secs(60);

/// Notices devices that are silent.
pub struct SilenceWatch {
    watcher: Watcher,
    /// The owner who had the last turn.
    last_owner: Option<Owner>,
    /// The application of each owner that had its last turn.
    last_applications: BTreeMap<Owner, AppId>,
    schedule: Schedule,
    /// In each round, each application has a turn if it is to have one. It takes several passes if there is no time.
    round: u64,
    /// True if there was no time in this round for applications that were found before others.
    has_left: bool,
    /// Where the next pass goes on with the names; none at the beginning.
    last_listed: Option<AppId>,
    /// When this process started, and the applications of which it does not know yet how they were before.
    recalled: (Timestamp, Walk),
    /// The applications whose alarms are to be set again because the clock has jumped.
    outdated: Walk,
}

/// Applications in which something is to be done, by owner.
struct WatchedApplications {
    owners: BTreeMap<Owner, VecDeque<Turn>>,
    /// True if these are all.
    is_all: bool,
}

impl SilenceWatch {
    /// A watch that has not looked yet.
    pub fn new(environment: Environment) -> Self {
        let clock = WatchedClock::new(environment.clock.clone(), environment.monotonic.clone());
        let (started, has_history) = (clock.now(), environment.history.is_some());
        Self {
            watcher: Watcher { with: environment, clock, jumped: None },
            last_owner: None,
            last_applications: BTreeMap::new(),
            schedule: Schedule::default(),
            round: 1,
            has_left: false,
            last_listed: None,
            recalled: (started, if has_history { Walk::default() } else { Walk::done() }),
            outdated: Walk::done(),
        }
    }

    /// Looks again and again, until it is to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
            if let Err(error) = self.pass(&stop).await {
                tracing::warn!(error = %ErrorChain(&error), "cannot look for silent devices: trying again");
            }
        }
    }

    /// Looks once at the applications whose devices are watched, and in which something is to be done.
    pub async fn pass(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let looked = self.look_at_all(stop).await;
        if looked.is_err() {
            // As after a start: other handlers could not set alarms, and networks have kept uplinks.
            self.watcher.clock.restart();
            self.schedule = Schedule::default();
            self.last_listed = None;
            self.recalled.1.restart();
            self.outdated.restart();
        }
        looked
    }

    async fn look_at_all(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let [quarter, half, whole] = [4, 2, 1].map(|part| self.watcher.clock.limit(PASS_MAX / part));
        if self.watcher.clock.has_jumped() {
            let now = self.watcher.clock.now();
            tracing::warn!("the clock has jumped: the silence of devices is counted from now on");
            self.watcher.with.last_heard.forget(now);
            self.watcher.jumped = Some(now);
            (self.recalled.1, self.outdated) = (Walk::done(), Walk::default());
        }
        self.prepare(&quarter).await?;
        if !self.outdated.is_done() {
            // What was set by another clock says nothing.
            return Ok(());
        }
        let WatchedApplications { mut owners, is_all } = self.applications(&half).await?;
        if is_all {
            self.last_applications.retain(|owner, _| owners.contains_key(owner));
        }
        for (owner, waiting) in &mut owners {
            let Some(last) = self.last_applications.get(owner) else { continue };
            waiting.rotate_left(waiting.partition_point(|turn| turn.watched.app_id <= *last));
        }
        let served = self.last_owner.as_ref().map_or(0, |last| owners.range::<Owner, _>(..=last).count());
        let mut owners: Vec<_> = owners.into_iter().collect();
        // A pass may end before all have had a turn.
        owners.rotate_left(served);
        let had_time = self.take_turns(owners, &whole, stop).await?;
        self.has_left |= !had_time;
        if self.last_listed.is_none() {
            // Those that were left have their turns first.
            self.round += u64::from(!self.has_left);
            self.has_left = false;
        }
        Ok(())
    }

    /// Does what is to be done once after a start, and after a jump of the clock.
    async fn prepare(&mut self, limit: &TimeLimit) -> Result<(), Error> {
        let Environment { applications, .. } = &self.watcher.with;
        let (started, recalled) = &mut self.recalled;
        while let Some((app_id, _)) = recalled.next(applications, limit).await? {
            unless_away(&app_id, self.watcher.recall(&app_id, *started).await)?;
        }
        while let Some((app_id, name)) = self.outdated.next(applications, limit).await? {
            unless_away(&app_id, applications.note_alarms_outdated(&name).await)?;
        }
        Ok(())
    }

    /// Gives all of them turns, unless the pass ends before. Returns false if there was no time left.
    async fn take_turns(
        &mut self,
        mut owners: Vec<(Owner, VecDeque<Turn>)>,
        limit: &TimeLimit,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let (mut turns, mut events) = (0, 0);
        while !owners.is_empty() {
            for (owner, waiting) in &mut owners {
                if stop.is_cancelled() || turns >= TURNS_MAX || events >= EVENTS_MAX || limit.is_over() {
                    return Ok(!limit.is_over());
                }
                let Some(mut turn) = waiting.pop_front() else { continue };
                turns += 1;
                self.last_owner = Some(owner.clone());
                self.last_applications.insert(owner.clone(), turn.watched.app_id.clone());
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
        Ok(true)
    }

    /// An application that fails has its next turn in the next pass. An error if the store is away.
    async fn take(&mut self, turn: &mut Turn) -> Result<TurnResult, Error> {
        let taken = match self.watcher.take_turn(turn).await {
            Err(error) if error.kind() != Kind::Unavailable => {
                let (app_id, error) = (&turn.watched.app_id, ErrorChain(&error));
                tracing::warn!(%app_id, %error, "cannot look for silent devices of an application: trying again");
                TurnResult { events: 0, has_more: false, next: Some(self.watcher.clock.now()) }
            }
            taken => taken?,
        };
        let (version, now) = (turn.watched.name.version, self.watcher.clock.now());
        let look = match turn.unfinished() {
            Some(dev_id) => LastLook::soon(version, now, Some(dev_id.clone())),
            None if taken.has_more => LastLook::soon(version, now, None),
            None => LastLook::when_due(version, now, taken.next),
        };
        self.schedule.note(turn.watched.app_id.clone(), look.after_turn(self.round));
        Ok(taken)
    }

    /// The applications whose devices are watched, and in which something is to be done in this round. What is left
    /// of others is deleted.
    async fn applications(&mut self, limit: &TimeLimit) -> Result<WatchedApplications, Error> {
        let Environment { applications, owners: known, last_heard, .. } = &self.watcher.with;
        let (applications, known, last_heard) = (applications.clone(), known.clone(), last_heard.clone());
        let (mut owners, mut before) = (BTreeMap::<Owner, VecDeque<Turn>>::new(), mem::take(&mut self.schedule));
        // Before the names are read: of an application that is named later, all alarms are set.
        let mut changed = last_heard.changed_applications();
        let is_from_start = self.last_listed.is_none();
        let is_to_end = 'names: loop {
            let names = applications.watched(self.last_listed.as_ref()).await?;
            if names.is_empty() {
                break true;
            }
            for name in names {
                if limit.is_over() {
                    break 'names false;
                }
                let app_id = store_keys::watched_app_of(&name.key)?;
                let look = before.take(&app_id, name.version);
                let is_changed = changed.remove(&app_id);
                if let Some(turn) = self.turn_of(&app_id, name, look, is_changed).await? {
                    owners.entry(known.last(&app_id)).or_default().push_back(turn);
                }
                self.last_listed = Some(app_id);
            }
        };
        if is_to_end {
            self.last_listed = None;
        }
        let is_all = is_from_start && is_to_end;
        match is_all {
            // Nobody wants to know of the others.
            true => changed.iter().for_each(|app_id| last_heard.forget_application(app_id)),
            false => self.schedule.keep(before),
        }
        Ok(WatchedApplications { owners, is_all })
    }

    /// The turn of an application with this name; none if nothing is to be done there, or it had one in this round.
    async fn turn_of(
        &mut self,
        app_id: &AppId,
        name: Entry,
        look: Option<LastLook>,
        is_changed: bool,
    ) -> Result<Option<Turn>, Error> {
        let (version, now) = (name.version, self.watcher.clock.now());
        let last_set = match look {
            Some(look) if look.had_turn(self.round) || (look.is_idle(now) && !is_changed) => {
                self.schedule.note(app_id.clone(), look);
                return Ok(None);
            }
            look => look.and_then(|look| look.last_set),
        };
        let turn = match self.watcher.watched(name).await {
            Ok(None) => return Ok(None),
            Ok(Some(watched)) => Turn::new(watched, last_set.clone()),
            Err(error) if error.kind() == Kind::Unavailable => return Err(error),
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::warn!(%app_id, %error, "cannot look for silent devices in it: trying again");
                None
            }
        };
        // The pass may end before its turn.
        self.schedule.note(app_id.clone(), LastLook::soon(version, now, last_set));
        Ok(turn)
    }
}

/// Passes over an application that cannot be read; an error if the store is away.
fn unless_away(app_id: &AppId, result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != Kind::Unavailable => {
            let error = ErrorChain(&error);
            tracing::warn!(%app_id, %error, "cannot look for silent devices in it: passing over it");
            Ok(())
        }
        done => done,
    }
}

impl Watcher {
    /// The application of this name; none if its devices never count as silent, and then its alarms are deleted.
    async fn watched(&self, name: Entry) -> Result<Option<WatchedApplication>, Error> {
        let applications = &self.with.applications;
        let watched = applications.watched_application(name).await?;
        if watched.after.is_none() {
            applications.delete_alarms(&watched).await?;
            self.with.last_heard.forget_application(&watched.app_id);
            return Ok(None);
        }
        Ok(Some(watched))
    }
}
