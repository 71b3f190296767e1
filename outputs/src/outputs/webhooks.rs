//! Operations of application owners on their webhooks.

mod sample;

use std::sync::Arc;

use types::{AppId, DevId, Timestamp, WebhookId};

use crate::{
    Error,
    appender::Receivers,
    destination::{Destination, Part, WEBHOOK},
    destinations::Destinations,
    message::DeadLetter,
    queue::{Queues, index::Index, stored::Queued},
    queue_workers::{Failing, QueueWorkers, RecentDelivery, WorkerContext},
    sender::webhook::{Standing, StoredWebhooks, Webhook, WebhookChange},
};

/// Maximum number of webhooks of an application.
pub const WEBHOOKS_MAX: usize = 8;

/// The webhooks of all applications.
pub struct Webhooks {
    pub(crate) stored: Arc<StoredWebhooks>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) index: Arc<Index>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) workers: Arc<QueueWorkers>,
}

/// Some of the messages that a webhook did not take.
pub struct DeadLetters {
    /// The oldest first.
    pub letters: Vec<DeadLetter>,
    /// Number of all dead letters of the webhook.
    pub total: usize,
    /// True if the webhook has ever taken a message, so that having no dead letters means something.
    pub has_delivered: bool,
}

/// The first messages that wait for a webhook.
pub struct FirstWaiting {
    /// The oldest first.
    pub messages: Vec<WaitingMessage>,
    /// When the next attempts begin; none if they do not pause, or if another process delivers.
    pub next: Option<Timestamp>,
}

/// A message in the queue of a webhook.
pub struct WaitingMessage {
    /// The device that it is about.
    pub dev_id: Option<DevId>,
    /// Event that it reports.
    pub event: String,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// Number of times that this process sent it, as far as that is known.
    pub attempts: u32,
}

impl Webhooks {
    /// The webhooks of an application, ordered by id.
    pub async fn list(&self, app_id: &AppId) -> Result<Vec<(WebhookId, Webhook)>, Error> {
        let loaded = self.stored.load(app_id).await?;
        Ok(loaded.webhooks.into_iter().map(|(id, loaded)| (id, loaded.webhook)).collect())
    }

    /// Gets a webhook.
    pub async fn get(&self, app_id: &AppId, id: &WebhookId) -> Result<Webhook, Error> {
        let found = self.list(app_id).await?.into_iter().find(|(other, _)| other == id);
        found.map(|(_, webhook)| webhook).ok_or_else(|| Error::NotFound(id.to_string()))
    }

    /// Returns true if an application has such receivers: webhooks, or outputs of the operator.
    pub async fn are_there(&self, app_id: &AppId, receivers: Receivers<'_>) -> Result<bool, Error> {
        Ok(self.destinations.of(app_id).await?.iter().any(|destination| receivers.include(destination)))
    }

    /// Returns the standing of the grant with which a webhook was set: it must allow reading the messages that it
    /// sends.
    pub async fn standing(&self, app_id: &AppId, webhook: &Webhook) -> Standing {
        self.stored.grants.standing(app_id, &webhook.set_by).await
    }

    /// Returns the number of messages that wait for a webhook.
    pub async fn waiting(&self, app_id: &AppId, id: &WebhookId) -> Result<usize, Error> {
        self.queues.len(&destination(app_id, id)).await
    }

    /// Returns since when nothing gets through to a webhook; none if messages do, or another process delivers them.
    pub fn failing(&self, app_id: &AppId, id: &WebhookId) -> Option<Failing> {
        self.workers.progress(&destination(app_id, id))?.failing()
    }

    /// Returns what this process delivered to a webhook, or gave up, as far as it remembers; the newest first.
    pub async fn recent(&self, app_id: &AppId, id: &WebhookId) -> Result<Vec<RecentDelivery>, Error> {
        self.get(app_id, id).await?;
        let WorkerContext { owners, recent, .. } = self.workers.context();
        Ok(recent.list((&owners.of(app_id).await, &destination(app_id, id))))
    }

    /// Returns the first messages that wait for a webhook, and when the next attempts begin, if they pause.
    pub async fn first_waiting(&self, app_id: &AppId, id: &WebhookId, count: usize) -> Result<FirstWaiting, Error> {
        let destination = destination(app_id, id);
        let progress = self.workers.progress(&destination);
        let queued = self.queues.first(&destination, count).await?;
        let message = |queued: Queued| WaitingMessage {
            attempts: progress.as_ref().map_or(0, |progress| progress.attempts(&queued.key)),
            dev_id: queued.message.dev_id,
            event: queued.message.event,
            accepted: queued.message.time,
        };
        let next = progress.as_ref().and_then(|progress| progress.next());
        Ok(FirstWaiting { messages: queued.into_iter().map(message).collect(), next })
    }

    /// Creates or replaces a webhook, and returns it with its revision. What waits for it stays. When this returns, all
    /// processes know it.
    pub async fn set(&self, app_id: &AppId, id: &WebhookId, webhook: Webhook) -> Result<Webhook, Error> {
        let others = self.list(app_id).await?;
        if !others.iter().any(|(other, _)| other == id) {
            // Of a webhook that was deleted, the new one must not get anything.
            self.forget(app_id, id).await?;
        }
        let set = self.stored.put(app_id, id, webhook, WEBHOOKS_MAX).await?;
        self.destinations.forget(app_id);
        let too_many = || format!("an application has at most {WEBHOOKS_MAX}: delete one first");
        let set = set.ok_or_else(|| Error::invalid("Webhook", too_many()))?;
        if others.is_empty() {
            self.destinations.noticed().await;
        }
        Ok(set)
    }

    /// Changes a webhook, and returns it. What waits for it stays.
    pub async fn update(&self, app_id: &AppId, id: &WebhookId, change: &WebhookChange) -> Result<Webhook, Error> {
        let updated = self.stored.update(app_id, id, |stored| change.apply(id, stored)).await;
        self.destinations.forget(app_id);
        updated
    }

    /// Deletes a webhook, with what waits for it.
    pub async fn delete(&self, app_id: &AppId, id: &WebhookId) -> Result<(), Error> {
        let is_removed = self.stored.remove(app_id, id).await?;
        self.destinations.forget(app_id);
        if !is_removed {
            return Err(Error::NotFound(id.to_string()));
        }
        self.forget(app_id, id).await
    }

    async fn forget(&self, app_id: &AppId, id: &WebhookId) -> Result<(), Error> {
        let WorkerContext { owners, recent, .. } = self.workers.context();
        recent.forget((&owners.of(app_id).await, &destination(app_id, id)));
        self.queues.delete(&destination(app_id, id)).await
    }

    /// The messages that were given up.
    pub async fn dead_letters(
        &self,
        app_id: &AppId,
        id: &WebhookId,
        offset: usize,
        limit: usize,
    ) -> Result<DeadLetters, Error> {
        self.get(app_id, id).await?;
        let destination = destination(app_id, id);
        let (letters, total) = self.queues.dead_letters(&destination, offset, limit).await?;
        Ok(DeadLetters { letters, total, has_delivered: self.queues.has_delivered(&destination).await? })
    }

    /// Sends messages again that were given up until now, those with these ids or all, each once; returns how many.
    pub async fn resend(&self, app_id: &AppId, id: &WebhookId, ids: Option<&[String]>) -> Result<usize, Error> {
        self.get(app_id, id).await?;
        let destination = destination(app_id, id);
        self.index.put(app_id).await?;
        let destinations = self.destinations.of(app_id).await?.len();
        let resent = self.queues.resend(&destination, ids, self.queues.limit(Part::Queue, destinations)).await;
        self.workers.wake(&destination);
        resent
    }

    /// Deletes the messages that were given up.
    pub async fn delete_dead_letters(&self, app_id: &AppId, id: &WebhookId) -> Result<(), Error> {
        self.get(app_id, id).await?;
        self.queues.delete_part(&destination(app_id, id), Part::DeadLetters).await
    }
}

fn destination(app_id: &AppId, id: &WebhookId) -> Destination {
    Destination::new(app_id, WEBHOOK, id.as_str())
}
