//! Removes old records that nothing else removes: dead letters, messages for outputs that are no longer configured, and
//! unused applications.

use std::{sync::Arc, time::Duration};

use server::status::ErrorChain;
use tokio::time::{Instant, interval_at};
use types::AppId;

use crate::{
    Error,
    appender::Appender,
    destination::Part,
    destinations::Destinations,
    metrics::{self, Fate},
    queue::{
        Queues,
        aging::{Aging, STEADY},
        index::{Index, Indexed},
    },
    queue_workers::QueueWorkers,
};

/// Interval between two sweeps.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Removes old records.
pub(crate) struct Sweeper {
    pub(crate) queues: Arc<Queues>,
    pub(crate) index: Arc<Index>,
    pub(crate) aging: Arc<Aging>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) workers: Arc<QueueWorkers>,
    pub(crate) appender: Arc<Appender>,
}

impl Sweeper {
    /// Looks as long as it is polled, at first when the clock can be trusted at the earliest.
    pub(crate) async fn run(self) {
        let mut ticks = interval_at(Instant::now() + STEADY, INTERVAL);
        loop {
            ticks.tick().await;
            if let Err(error) = self.sweep().await {
                tracing::warn!(error = %ErrorChain(&error), "cannot look for messages that are too old: trying again");
            }
        }
    }

    async fn sweep(&self) -> Result<(), Error> {
        for indexed in self.index.all().await? {
            let has_messages = self.sweep_application(&indexed.app_id).await?;
            if !has_messages {
                self.forget(indexed).await?;
            }
        }
        Ok(())
    }

    /// Returns whether anything is left.
    async fn sweep_application(&self, app_id: &AppId) -> Result<bool, Error> {
        let Some(before) = self.aging.messages_before() else { return Ok(true) };
        for destination in self.queues.destinations_with(app_id, Part::DeadLetters).await? {
            self.queues.delete_dead_letters_before(&destination, before).await?;
        }
        for destination in self.queues.destinations_with(app_id, Part::Queue).await? {
            if self.destinations.is_known(&destination) {
                // Its worker drops them.
                self.workers.wake(&destination);
                continue;
            }
            loop {
                let old = self.queues.oldest_before(&destination, before).await?;
                if old.is_empty() {
                    break;
                }
                metrics::count(&destination, Fate::Dropped, self.queues.drop_these(&destination, old).await?);
            }
        }
        for part in Part::ALL {
            if !self.queues.destinations_with(app_id, part).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Forgets an application for which nothing was queued for a long time.
    async fn forget(&self, indexed: Indexed) -> Result<(), Error> {
        let Some(before) = self.aging.applications_before() else { return Ok(()) };
        match indexed.queued {
            Some(queued) if queued >= before => {}
            Some(_) if self.index.forget(&indexed).await? => self.appender.forget_index(&indexed.app_id),
            Some(_) => {}
            // An earlier version did not say when.
            None => self.index.put(&indexed.app_id).await?,
        }
        Ok(())
    }
}
