//! Saves the sessions of an application, one commit at a time: while one is written, further changes gather.

use std::sync::Arc;

use server::status::ErrorChain;
use store::{Batch, Commit, Error, ErrorKind};
use types::Clock;

use super::{
    Application,
    log::{Append, LogCommit},
};
use crate::session::{Session, durable::Durable};

/// Maximum number of attempts to commit while other processes take sessions over.
const ATTEMPTS_MAX: usize = 5;

impl Application {
    /// Starts to save changes and to read needed messages, unless that is in progress.
    pub(in crate::router) fn start_saving(self: &Arc<Self>, durable: &Arc<Durable>) {
        self.start_reading(durable);
        let is_first = !std::mem::replace(&mut self.lock().log.is_saving, true);
        if is_first && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (this, durable) = (Arc::clone(self), Arc::clone(durable));
            runtime.spawn(async move { this.save(&durable).await });
        }
    }

    /// Saves until there is nothing more to save.
    async fn save(&self, durable: &Durable) {
        while let Some(mut commit) = self.take_commit(durable.clock()) {
            let saved = self.commit(durable, &mut commit).await;
            if self.finish(commit, &saved) {
                return;
            }
        }
    }

    fn take_commit(&self, clock: &dyn Clock) -> Option<LogCommit> {
        let mut subscribers = self.lock();
        let (next, now) = (subscribers.log.next, clock.now());
        let is_due = std::mem::take(&mut subscribers.log.saves_all);
        let record = |session: &Arc<Session>| session.take_record(next, is_due, now);
        let changed = subscribers.sessions.values();
        let changed = changed.filter_map(|session| Some((Arc::clone(session), record(session)?))).collect();
        let commit = subscribers.log.take(changed);
        subscribers.log.is_saving = !commit.is_empty();
        (!commit.is_empty()).then_some(commit)
    }

    /// Tells everybody what became of a commit; returns whether it is to be tried again later.
    fn finish(&self, mut commit: LogCommit, saved: &Result<(), Error>) -> bool {
        let mut subscribers = self.lock();
        let log = &mut subscribers.log;
        let was_failing = std::mem::replace(&mut log.is_failing, saved.is_err());
        match saved {
            Ok(()) => log.succeeded(&commit),
            Err(error) => {
                if !was_failing {
                    let error = ErrorChain(error);
                    tracing::warn!(app_id = %self.app_id, %error, "cannot save MQTT sessions: trying again");
                }
                log.failed(&mut commit);
            }
        }
        // Tried again at the next change, or when the broker next looks for changes.
        let stops = saved.is_err() && !log.is_urgent();
        log.is_saving = !stops;
        drop(subscribers);
        commit.resolve(saved.is_ok());
        stops
    }

    async fn commit(&self, durable: &Durable, commit: &mut LogCommit) -> Result<(), Error> {
        for _ in 0..ATTEMPTS_MAX {
            let committed = match durable.commit(self.batch(durable, commit)?).await {
                Err(error) if error.kind() == ErrorKind::Full && !commit.appended.is_empty() => {
                    self.refuse_appended(commit, &error);
                    continue;
                }
                committed => committed?,
            };
            if committed == Commit::Done {
                return Ok(());
            }
            let ids: Vec<_> = commit.owners.keys().map(|(id, _)| Arc::clone(id)).collect();
            let owners = durable.owners(&self.app_id, &ids).await?;
            let is_lost = |(id, version): &(Arc<str>, _)| owners.get(id) != Some(version);
            let lost: Vec<_> =
                commit.owners.iter().filter(|(owner, _)| is_lost(owner)).map(|(_, it)| it.clone()).collect();
            let mut subscribers = self.lock();
            for ownership in &lost {
                subscribers.lose(ownership);
                let numbers = commit.forget(ownership);
                subscribers.log.lost(commit, &numbers);
            }
        }
        Err(Error::Unavailable { what: "save MQTT sessions that others keep taking over", source: None })
    }

    /// Leaves out the messages for which there is no room, so that what clients have acknowledged is saved and makes
    /// some. Whoever published them is told.
    fn refuse_appended(&self, commit: &mut LogCommit, error: &Error) {
        tracing::debug!(app_id = %self.app_id, %error, "cannot save messages for MQTT sessions");
        let refused: Vec<_> = commit.appended.drain(..).map(|append| append.stored.number).collect();
        self.lock().log.lost(commit, &refused);
    }

    fn batch(&self, durable: &Durable, commit: &LogCommit) -> Result<Batch, Error> {
        let mut batch = Batch::new();
        for (id, version) in commit.owners.keys() {
            batch = durable.expect_owner(batch, &self.app_id, id, *version)?;
        }
        for Append { stored, record, .. } in &commit.appended {
            let owned = stored.recipients.iter().map(|recipient| recipient.version().is_some());
            if let Some(record) = record.for_recipients(owned) {
                batch = durable.put_message(batch, stored.key.clone(), record).growing();
            }
        }
        for (session, record) in &commit.changed {
            batch = durable.put_session(batch, &self.app_id, &session.id, record)?;
        }
        for removed in &commit.removed {
            batch = durable.delete_session(batch, &self.app_id, &removed.id)?;
        }
        Ok(commit.released.iter().map(|release| release.key.clone()).fold(batch, Batch::delete))
    }
}
