//! Publishes messages, those of a device one after the other: the next one goes out when the broker has confirmed the
//! last, so that neither a lost connection nor a broker that confirms out of order can turn them round.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use link::mqtt::{Endpoint, PublishError, Publisher};
use lru::LruCache;
use parking_lot::Mutex;
use server::telemetry::Health;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    metrics,
    receive::{lanes::Lanes, report_connection},
};

/// Maximum number of publications that are not confirmed yet.
const PLACES: u32 = 4096;
/// Maximum wait of a single message at which the broker closes the connection. Its sender gives up long before.
const SUSPECT_WAIT_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of kinds of messages whose refusal is remembered, so that it is not logged again.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// A publication with QoS 1, which is never retained.
#[derive(Clone, Debug)]
pub struct BrokerMessage {
    /// Topic on which it is published.
    pub topic: String,
    /// Its content.
    pub payload: Bytes,
}

/// Reasons why a message was not confirmed. The broker may have it all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconfirmed {
    /// Too many others wait.
    #[error("too many messages wait for the MQTT broker")]
    Busy,
    /// It has not answered in time.
    #[error("the MQTT broker does not confirm messages")]
    NoAnswer,
    /// It said no.
    #[error("the MQTT broker refuses messages")]
    Refused,
    /// There is no connection to it.
    #[error("the MQTT broker is not connected")]
    Disconnected,
    /// It will never take this message.
    #[error("the MQTT broker cannot take the message: {0}")]
    Impossible(String),
}

/// Handling of messages that come while the broker is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    /// They are refused at once: their sender repeats them.
    Refuse,
    /// They wait for a connection, for as long as for a confirmation.
    Wait,
}

/// Resolves when the broker has confirmed a publication, or will not.
pub type Confirmation = oneshot::Receiver<Result<(), Unconfirmed>>;

/// Publishes messages on a broker, to which it connects again whenever the connection is lost.
pub struct BrokerPublisher {
    connected: watch::Receiver<bool>,
    lanes: Lanes<Job>,
    places: Arc<Semaphore>,
    confirm_wait_max: Duration,
}

struct Job {
    messages: Vec<BrokerMessage>,
    kind: String,
    deadline: Instant,
    done: oneshot::Sender<Result<(), Unconfirmed>>,
    _place: OwnedSemaphorePermit,
}

impl BrokerPublisher {
    pub(super) fn start(endpoint: Endpoint, confirm_wait_max: Duration) -> Self {
        let publisher = Publisher::start(endpoint, SUSPECT_WAIT_MAX);
        let connected = publisher.connected();
        let work = Arc::new(Worker { publisher, refused: Mutex::new(LruCache::new(REFUSED_MAX)) });
        let lanes = Lanes::new(Arc::new(move |job| {
            let work = work.clone();
            Box::pin(async move { work.publish(job).await })
        }));
        Self { connected, lanes, places: Arc::new(Semaphore::new(PLACES as usize)), confirm_wait_max }
    }

    /// Publishes messages together, after the earlier ones of the same device. `kind` is what the broker's access
    /// control treats alike. What becomes of them does not depend on whether anybody waits for the confirmation.
    pub fn publish(
        &self,
        device: &str,
        kind: String,
        messages: Vec<BrokerMessage>,
        offline: Offline,
    ) -> Result<Confirmation, Unconfirmed> {
        if offline == Offline::Refuse && !self.is_connected() {
            return Err(Unconfirmed::Disconnected);
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            metrics::dropped("too many in progress");
            return Err(Unconfirmed::Busy);
        };
        let (done, confirmation) = oneshot::channel();
        let deadline = Instant::now() + self.confirm_wait_max;
        self.lanes.add(device, Job { messages, kind, deadline, done, _place: place });
        Ok(confirmation)
    }

    /// Returns true while the broker is connected.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Reports the connection as a health check.
    pub fn report_to(&self, health: &Health) {
        report_connection(health, "publishing to the MQTT broker", &self.connected);
    }

    /// Waits until everything is confirmed or given up.
    pub async fn finished(&self) {
        // An error means that it takes too long, because the semaphore is never closed.
        _ = timeout(2 * self.confirm_wait_max, self.places.acquire_many(PLACES)).await;
    }
}

struct Worker {
    publisher: Publisher,
    /// Kinds of messages that the broker refuses.
    refused: Mutex<LruCache<String, ()>>,
}

impl Worker {
    async fn publish(&self, Job { messages, kind, deadline, done, _place }: Job) {
        let publishing = messages.into_iter().map(|BrokerMessage { topic, payload }| {
            let (kind, publisher) = (kind.clone(), &self.publisher);
            async move { (topic.clone(), publisher.publish(topic, kind, payload).await) }
        });
        // What is dropped here is not sent again on the next connection.
        let published = timeout_at(deadline, join_all(publishing)).await;
        let result = match published {
            Ok(published) => self.judge_all(&kind, published),
            Err(_) => Err(Unconfirmed::NoAnswer),
        };
        // Nobody waits for the confirmation of many events.
        if let Err(Err(_)) = done.send(result) {
            metrics::dropped("unconfirmed");
        }
    }

    /// Combines the results of messages that were published together. If the broker takes the first one, the others may
    /// fail with [`Unconfirmed::Impossible`]: sending all of them again would not help.
    fn judge_all(&self, kind: &str, published: Vec<(String, Result<(), PublishError>)>) -> Result<(), Unconfirmed> {
        let mut is_first = true;
        for (topic, result) in published {
            match self.judge(&topic, kind, result) {
                Err(Unconfirmed::Impossible(_)) if !is_first => {}
                judged => judged?,
            }
            is_first = false;
        }
        Ok(())
    }

    /// Turns the result of a publication into the error for its caller; logs and counts failures.
    fn judge(&self, topic: &str, kind: &str, result: Result<(), PublishError>) -> Result<(), Unconfirmed> {
        match result {
            Ok(()) => {
                let mut refused = self.refused.lock();
                if !refused.is_empty() {
                    refused.pop(kind);
                }
                Ok(())
            }
            Err(PublishError::Stopped) => Err(Unconfirmed::NoAnswer),
            Err(error @ PublishError::Refused(_)) => {
                if self.refused.lock().put(kind.to_owned(), ()).is_none() {
                    tracing::error!(topic, %error, "cannot publish a message");
                }
                Err(Unconfirmed::Refused)
            }
            Err(error @ (PublishError::TooLarge(_) | PublishError::TopicTooLong | PublishError::ClosesConnections)) => {
                tracing::error!(topic, %error, "dropped a message");
                metrics::dropped(if error == PublishError::ClosesConnections {
                    "closes connections"
                } else {
                    "too large"
                });
                Err(Unconfirmed::Impossible(error.to_string()))
            }
        }
    }
}
