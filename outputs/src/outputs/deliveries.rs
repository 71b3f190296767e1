//! The fate of a message at the destinations of its application, as far as that is kept: of what was delivered, the
//! process that did it remembers the newest.

use types::{AppId, Timestamp};

use super::Outputs;
use crate::{
    Error,
    destination::{Destination, Part},
    queue::search::{MessageQuery, Search},
    queue_workers::{Failing, RecentDelivery, WorkerContext},
};

/// The fate of a message at a destination that gets such messages.
pub struct DeliveryReport {
    /// The kind of output, such as `webhook`.
    pub kind: String,
    /// Its name among those of its kind.
    pub name: String,
    /// The state of the message.
    pub state: DeliveryState,
}

/// The state of a message at a destination.
pub enum DeliveryState {
    /// It is in the queue.
    Waiting {
        /// Number of times that this process sent it, as far as that is known.
        attempts: u32,
        /// Since when nothing gets through, if that is so.
        failing: Option<Failing>,
        /// When the next attempts begin, if they pause after failures.
        next: Option<Timestamp>,
    },
    /// It was delivered.
    Delivered(RecentDelivery),
    /// It was given up.
    GivenUp {
        /// Names it among the dead letters; empty if it is not there any more.
        id: String,
        /// Number of times that it was sent.
        attempts: u32,
        /// When it was given up.
        at: Timestamp,
        /// The last answer, or the error; empty if it is not among the dead letters.
        reason: String,
    },
    /// It is not known any more: it was delivered, or dropped.
    Settled {
        /// True if all messages were looked at that can be it.
        is_certain: bool,
    },
}

impl Outputs {
    /// Says what became of a message at each destination that gets such messages.
    pub async fn deliveries(&self, app_id: &AppId, sought: &MessageQuery<'_>) -> Result<Vec<DeliveryReport>, Error> {
        let of_application = self.destinations.of(app_id).await?;
        let mut reports = Vec::new();
        for destination in of_application.wanting_event(sought.event) {
            let (kind, name) = (destination.kind.clone(), destination.name.clone());
            reports.push(DeliveryReport { kind, name, state: self.delivery(destination, sought).await? });
        }
        Ok(reports)
    }

    async fn delivery(&self, destination: &Destination, sought: &MessageQuery<'_>) -> Result<DeliveryState, Error> {
        let is_certain = match self.queues.find(destination, Part::Queue, sought).await? {
            Search::Found(queued) => {
                let progress = self.workers.progress(destination);
                return Ok(DeliveryState::Waiting {
                    attempts: progress.as_ref().map_or(0, |progress| progress.attempts(&queued.key)),
                    next: progress.as_ref().and_then(|progress| progress.next()),
                    failing: progress.and_then(|progress| progress.failing()),
                });
            }
            Search::Missing { is_certain } => is_certain,
        };
        // After the queue, from which it may have gone to one of these meanwhile.
        let WorkerContext { owners, recent, .. } = self.workers.context();
        let owner = owners.of(&destination.app_id).await;
        let left = recent.find((&owner, destination), sought.identity, (sought.before, sought.accepted_until));
        if let Some(delivered) = left.clone().filter(|left| left.is_delivered) {
            return Ok(DeliveryState::Delivered(delivered));
        }
        match self.queues.find(destination, Part::DeadLetters, sought).await? {
            Search::Found(queued) => match self.queues.dead_letter(destination, &queued).await? {
                Some(letter) => Ok(DeliveryState::GivenUp {
                    id: letter.id,
                    attempts: letter.attempts,
                    at: letter.failed_at,
                    reason: letter.reason,
                }),
                None => Ok(DeliveryState::Settled { is_certain: false }),
            },
            Search::Missing { is_certain: all_letters } => Ok(match left {
                Some(RecentDelivery { attempts, at, .. }) => {
                    DeliveryState::GivenUp { id: String::new(), attempts, at, reason: String::new() }
                }
                None => DeliveryState::Settled { is_certain: is_certain && all_letters },
            }),
        }
    }
}
