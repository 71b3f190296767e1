//! Saves the sessions of an application, one commit at a time: while one is written, further changes gather.

use std::sync::Arc;

use server::status::ErrorChain;
use store::{Batch, Commit, Error};

use super::{Application, log::Work};
use crate::durable::Durable;

/// How often a commit is tried while other instances take sessions over.
const ATTEMPTS_MAX: usize = 5;

impl Application {
    /// Starts to save what there is, unless that is being done.
    pub(in crate::router) fn start_saving(self: &Arc<Self>, durable: &Arc<Durable>) {
        let is_first = !std::mem::replace(&mut self.lock().log.is_saving, true);
        if is_first && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (this, durable) = (Arc::clone(self), Arc::clone(durable));
            runtime.spawn(async move { this.save(&durable).await });
        }
    }

    /// Saves until there is nothing more to save.
    async fn save(&self, durable: &Durable) {
        while let Some(mut work) = self.take_work() {
            let saved = self.commit(durable, &mut work).await;
            let was_failing = std::mem::replace(&mut self.lock().log.is_failing, saved.is_err());
            if let Err(error) = &saved
                && !was_failing
            {
                let error = ErrorChain(error);
                tracing::warn!(app_id = %self.app_id, %error, "cannot save MQTT sessions: trying again");
            }
            work.waiting.drain(..).for_each(|waiting| _ = waiting.send(saved.is_ok()));
            if saved.is_err() {
                let mut subscribers = self.lock();
                subscribers.log.failed(work);
                // Tried again at the next change, or when the broker next looks for changes.
                if !subscribers.log.is_urgent() {
                    subscribers.log.is_saving = false;
                    return;
                }
            }
        }
    }

    async fn commit(&self, durable: &Durable, work: &mut Work) -> Result<(), Error> {
        for _ in 0..ATTEMPTS_MAX {
            let batch = self.batch(durable, work)?;
            if durable.commit(batch).await? == Commit::Done {
                return Ok(());
            }
            for (id, version) in work.owners() {
                if !durable.is_owner(&self.app_id, &id, version).await? {
                    work.forget(&id, version);
                    self.lose(&id, version);
                }
            }
        }
        Err(Error::Unavailable { what: "save MQTT sessions that others keep taking over", source: None })
    }

    fn batch(&self, durable: &Durable, work: &Work) -> Result<Batch, Error> {
        let mut batch = Batch::new();
        for (id, version) in work.owners() {
            batch = durable.expect_owner(batch, &self.app_id, &id, version)?;
        }
        for append in work.appended.iter().filter(|append| !append.recipients.is_empty()) {
            batch = durable.put_message(batch, append.stored.key.clone(), append.value.clone());
        }
        for (session, record) in &work.changed {
            batch = durable.put_session(batch, &self.app_id, &session.id, record)?;
        }
        for (id, _) in &work.removed {
            batch = durable.delete_session(batch, &self.app_id, id)?;
        }
        Ok(work.released.iter().cloned().fold(batch, Batch::delete))
    }
}
