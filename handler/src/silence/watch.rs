//! Passes over the applications whose devices are listened to: owners take turns, and so do the applications of each.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    mem,
    time::Duration,
};

use server::{ledger::Owner, status::ErrorChain};
use store::{Entry, Version};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use types::{AppId, DevId, Kind, Kinded};

use super::{
    clock::WatchedClock,
    environment::{Environment, Watcher},
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
    /// Until which device the alarms of an application are set by its time, which was set with this version of its name.
    unfinished: HashMap<AppId, (Version, DevId)>,
}

impl SilenceWatch {
    /// A watch that has not looked yet.
    pub fn new(environment: Environment) -> Self {
        let clock = WatchedClock::new(environment.clock.clone(), environment.monotonic.clone());
        let watcher = Watcher { with: environment, clock, jumped: None };
        Self { watcher, last_owner: None, last_applications: BTreeMap::new(), unfinished: HashMap::new() }
    }

    /// Looks again and again, until it is to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
            if let Err(error) = self.pass(&stop).await {
                tracing::warn!(error = %ErrorChain(&error), "cannot look for silent devices: trying again");
            }
        }
    }

    /// Looks once at all applications whose devices are listened to.
    pub async fn pass(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let looked = self.look_at_all(stop).await;
        if looked.is_err() {
            // As after a start: other handlers could not set alarms, and networks have kept uplinks.
            self.watcher.clock.restart();
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
        let taken = self.watcher.take_turn(turn).await;
        self.note_unfinished(turn);
        match taken {
            Err(error) if error.kind() != Kind::Unavailable => {
                let (app_id, error) = (&turn.listened.app_id, ErrorChain(&error));
                tracing::warn!(%app_id, %error, "cannot look for silent devices of an application: trying again");
                Ok(Taken { events: 0, has_more: false })
            }
            taken => taken,
        }
    }

    fn note_unfinished(&mut self, turn: &Turn) {
        let (app_id, version) = (&turn.listened.app_id, turn.listened.name.version);
        match turn.unfinished() {
            Some(dev_id) => _ = self.unfinished.insert(app_id.clone(), (version, dev_id.clone())),
            None => _ = self.unfinished.remove(app_id),
        }
    }

    /// The applications whose devices are listened to, by owner. What is left of others is deleted.
    async fn applications(&mut self, has_jumped: bool) -> Result<BTreeMap<Owner, VecDeque<Turn>>, Error> {
        let (applications, known) = (&self.watcher.with.applications, &self.watcher.with.owners);
        let mut owners: BTreeMap<Owner, VecDeque<Turn>> = BTreeMap::new();
        let mut unfinished = mem::take(&mut self.unfinished);
        let mut last: Option<AppId> = None;
        loop {
            let names = applications.listened(last.as_ref()).await?;
            let Some(end) = names.last() else { return Ok(owners) };
            last = Some(store_keys::listened_app_of(&end.key)?);
            for name in names {
                let key = name.key.clone();
                let listened = match self.watcher.listened(name, has_jumped).await {
                    Ok(Some(listened)) => listened,
                    Ok(None) => continue,
                    Err(error) if error.kind() == Kind::Unavailable => return Err(error),
                    Err(error) => {
                        let error = ErrorChain(&error);
                        tracing::warn!(%key, %error, "cannot look for silent devices of an application: trying again");
                        continue;
                    }
                };
                let owner = known.last(&listened.app_id);
                let before = unfinished.remove(&listened.app_id);
                let before = before.filter(|(version, _)| *version == listened.name.version);
                let last_set = before.as_ref().map(|(_, dev_id)| dev_id.clone());
                self.unfinished.extend(before.map(|before| (listened.app_id.clone(), before)));
                owners.entry(owner).or_default().extend(Turn::new(listened, last_set));
            }
        }
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
