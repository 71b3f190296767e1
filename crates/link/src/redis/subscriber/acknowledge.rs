//! Tells the server which entries are dealt with, and which are still being worked on.

use std::{sync::Arc, time::Duration};

use redis::RedisResult;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    super::{stream::Stream, subscription::StreamSubscription},
    in_progress::{Held, InProgress},
};
use crate::backoff::Backoff;

/// Maximum number of entries that one command names.
const BATCH: usize = 256;

/// Acknowledges entries, and keeps other consumers from taking over those in progress. It has a connection of its own,
/// because the reader waits while there is no room.
pub(super) struct Acknowledger {
    subscription: Arc<StreamSubscription>,
    in_progress: InProgress,
    stream: Option<Stream>,
}

impl Acknowledger {
    pub(super) fn new(subscription: Arc<StreamSubscription>, in_progress: InProgress) -> Self {
        Self { subscription, in_progress, stream: None }
    }

    /// Works until nobody can send more.
    pub(super) async fn run(mut self, mut acknowledged: mpsc::Receiver<Held>) {
        // Often enough for one that comes late.
        let every = Duration::from_millis(self.subscription.settings.claim_after_ms) / 3;
        let mut renewals = interval(every.max(Duration::from_millis(1)));
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = Vec::new();
        loop {
            tokio::select! {
                count = acknowledged.recv_many(&mut held, BATCH) => {
                    if count == 0 {
                        return;
                    }
                    self.acknowledge(&held).await;
                    held.drain(..).for_each(Held::finish);
                }
                _ = renewals.tick() => {
                    if let Err(error) = self.try_renew().await {
                        tracing::debug!(%error, "cannot renew entries");
                        self.stream = None;
                    }
                }
            }
        }
    }

    /// Acknowledges entries, however long the server is away.
    async fn acknowledge(&mut self, held: &[Held]) {
        let ids: Vec<String> = held.iter().map(|held| held.id().to_owned()).collect();
        let mut backoff = Backoff::default();
        while let Err(error) = self.try_acknowledge(&ids).await {
            tracing::debug!(%error, "cannot acknowledge entries");
            self.stream = None;
            backoff.pause().await;
        }
    }

    async fn try_acknowledge(&mut self, ids: &[String]) -> RedisResult<()> {
        self.stream().await?.acknowledge(ids).await
    }

    async fn try_renew(&mut self) -> RedisResult<()> {
        for ids in self.in_progress.ids().chunks(BATCH) {
            self.stream().await?.renew(ids).await?;
        }
        Ok(())
    }

    async fn stream(&mut self) -> RedisResult<&mut Stream> {
        let StreamSubscription { node, settings, key, consumer, .. } = &*self.subscription;
        match &mut self.stream {
            Some(stream) => Ok(stream),
            none => Ok(none.insert(Stream::open(node, settings, key, consumer).await?)),
        }
    }
}
