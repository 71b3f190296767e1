//! Delivers the queue of one destination: in order per device, several devices at a time, with pauses after failures.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt, poll, stream};
use server::{
    lease::{Lease, Leases},
    status::ErrorChain,
};
use store::Key;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use types::{Clock, Random};

use crate::{
    Error,
    destination::{Destination, WEBHOOK},
    destinations::Destinations,
    message::{DROPPED, DeadLetter, Message, Outgoing},
    metrics::{self, Fate, QueueLength},
    queue::{Queued, Queues, Settled},
    sender::{SendError, Sender},
};

/// How many messages are looked at together.
const ROUND_MESSAGES: usize = 64;
/// How many devices' messages are sent at once.
const DEVICES_AT_ONCE: usize = 8;
/// How many are while nothing gets through: two, so that one message that cannot be handled does not hide that others
/// can.
const PROBES: usize = 2;
/// How long to wait after the first failure; doubled after each.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long a receiver may ask to be left alone.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often it is looked whether another process still delivers.
const LEASE_PAUSE: Duration = Duration::from_millis(500);

/// How often the queue of a receiver is counted that is not ready.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// What every lane works with.
pub(crate) struct LaneContext {
    pub(crate) queues: Arc<Queues>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) leases: Leases,
    pub(crate) attempts_max: u32,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// Ends the lanes after what they are sending.
    pub(crate) stop: CancellationToken,
}

/// The delivery to one destination.
pub(crate) struct Lane {
    context: Arc<LaneContext>,
    destination: Destination,
    /// How often the messages at the front were sent.
    attempts: HashMap<Key, u32>,
    /// How many rounds got nothing through.
    failures: u32,
}

/// Why a lane has nothing more to do with its lease.
#[derive(PartialEq, Eq)]
enum End {
    Empty,
    Lost,
}

/// What a round of sending came to.
#[derive(Default)]
struct Round {
    settled: Settled,
    has_failed: bool,
    /// How long the receiver wants to be left alone.
    wait: Option<Duration>,
}

impl Lane {
    pub(crate) fn new(context: Arc<LaneContext>, destination: Destination) -> Self {
        Self { context, destination, attempts: HashMap::new(), failures: 0 }
    }

    /// Delivers until the queue is empty, or the outputs are stopped.
    pub(crate) async fn run(&mut self) {
        while !self.context.stop.is_cancelled() {
            match self.try_run().await {
                Ok(End::Empty) => return,
                Ok(End::Lost) => self.pause(LEASE_PAUSE).await,
                Err(error) => {
                    tracing::warn!(destination = %self.destination, error = %ErrorChain(&error), "cannot deliver messages: trying again");
                    self.pause(PAUSE).await;
                }
            }
        }
    }

    async fn try_run(&mut self) -> Result<End, Error> {
        let Some(lease) = self.context.leases.take(self.destination.lease()?).await? else {
            let is_empty = self.context.queues.is_empty(&self.destination).await?;
            return Ok(if is_empty { End::Empty } else { End::Lost });
        };
        let end = self.deliver(&lease).await;
        lease.release().await;
        end
    }

    async fn deliver(&mut self, lease: &Lease) -> Result<End, Error> {
        let mut length = QueueLength::of(&self.destination);
        while !self.context.stop.is_cancelled() {
            let queued = self.context.queues.first(&self.destination, ROUND_MESSAGES).await?;
            length.set(match queued.len() {
                ROUND_MESSAGES => self.context.queues.len(&self.destination).await?,
                fewer => fewer,
            });
            if queued.is_empty() {
                return Ok(End::Empty);
            }
            let Some(sender) = self.context.destinations.sender(&self.destination).await? else {
                // It was deleted.
                self.context.queues.delete(&self.destination).await?;
                return Ok(End::Empty);
            };
            let mut ready = sender.ready();
            if poll!(&mut ready).is_pending() {
                // It may take long: until then, nothing is kept in memory. The queue grows, so it is counted again.
                drop(queued);
                self.context.stop.run_until_cancelled(timeout(COUNT_INTERVAL, ready)).await;
                continue;
            }
            drop(ready);
            let round = self.send_round(sender.as_ref(), queued, lease).await;
            if !self.settle(&round.settled, lease).await? {
                return Ok(End::Lost);
            }
            self.wait_after(&round).await;
        }
        Ok(End::Empty)
    }

    async fn settle(&self, settled: &Settled, lease: &Lease) -> Result<bool, Error> {
        if settled.delivered.is_empty() && settled.dead.is_empty() {
            return Ok(!lease.is_lost().await);
        }
        let settle = async |version| self.context.queues.settle(&self.destination, settled, version).await;
        if !lease.hold(settle).await.unwrap_or(Ok(false))? {
            return Ok(false);
        }
        metrics::count(&self.destination, Fate::Delivered, settled.delivered.len());
        metrics::count(&self.destination, Fate::Dead, settled.dead.len());
        Ok(true)
    }

    /// Sends what waits for each device, until one of its messages fails.
    async fn send_round(&mut self, sender: &dyn Sender, queued: Vec<Queued>, lease: &Lease) -> Round {
        let mut round = Round::default();
        if self.failures == 0
            && let Err(error) = self.tell_dropped(sender, lease).await
        {
            tracing::debug!(destination = %self.destination, %error, "cannot say how many messages were dropped");
        }
        self.attempts.retain(|key, _| queued.iter().any(|queued| queued.key == *key));
        let mut devices = by_device(queued);
        if self.failures > 0 {
            devices.truncate(PROBES);
            devices.iter_mut().for_each(|messages| messages.truncate(1));
        }
        let sent: Vec<_> = stream::iter(devices)
            .map(|messages| send_in_order(sender, &self.destination, messages))
            .buffer_unordered(DEVICES_AT_ONCE)
            .collect()
            .await;
        for (queued, result) in sent.into_iter().flatten() {
            self.sort(queued, result, &mut round);
        }
        round
    }

    fn sort(&mut self, queued: Queued, result: Result<(), SendError>, round: &mut Round) {
        let error = match result {
            Ok(()) => return round.settled.delivered.push(queued.key),
            Err(error) => error,
        };
        let attempts = self.attempts.entry(queued.key.clone()).or_default();
        if !matches!(error, SendError::Unreachable(_)) {
            *attempts += 1;
        }
        let attempts = *attempts;
        if matches!(error, SendError::Refused(_)) || attempts >= self.context.attempts_max {
            let (failed_at, reason) = (self.context.clock.now(), error.to_string());
            if self.destination.kind != WEBHOOK {
                // Nobody but the operator can do something about it.
                tracing::warn!(destination = %self.destination, event = queued.message.event, reason, "a message was given up");
            }
            let letter = DeadLetter { id: String::new(), message: queued.message, failed_at, attempts, reason };
            return round.settled.dead.push((queued.key, letter));
        }
        metrics::count(&self.destination, Fate::Retried, 1);
        tracing::debug!(destination = %self.destination, %error, "cannot deliver a message: trying again");
        round.has_failed = true;
        if let SendError::Failed { wait: Some(wait), .. } = error {
            round.wait = round.wait.max(Some(wait.min(ASKED_PAUSE_MAX)));
        }
    }

    /// Says how many messages were dropped, before the next one.
    async fn tell_dropped(&self, sender: &dyn Sender, lease: &Lease) -> Result<(), Error> {
        let queues = &self.context.queues;
        let Some((messages, version)) = queues.dropped(&self.destination).await? else { return Ok(()) };
        if lease.is_lost().await {
            return Ok(());
        }
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "messages": messages }))?;
        let message = Message { dev_id: None, event: DROPPED.to_owned(), time: self.context.clock.now(), body };
        let outgoing = Outgoing { id: queues.next_id(), app_id: self.destination.app_id.clone(), message };
        match sender.send(&outgoing).await {
            // Whoever does not take such events is not asked again.
            Ok(()) | Err(SendError::Refused(_)) => queues.told(&self.destination, version).await,
            Err(_) => Ok(()),
        }
    }

    async fn wait_after(&mut self, round: &Round) {
        if !round.has_failed {
            self.failures = 0;
            return;
        }
        let is_progress = !round.settled.delivered.is_empty();
        self.failures = if is_progress { 0 } else { self.failures.saturating_add(1) };
        let pause = PAUSE.saturating_mul(1 << self.failures.saturating_sub(1).min(16)).min(PAUSE_MAX);
        // Receivers that were down are not asked by everybody at the same moment.
        let [chance] = self.context.random.array::<1>();
        let pause = pause / 2 + pause / 2 * u32::from(chance) / 255;
        self.pause(pause.max(round.wait.unwrap_or_default())).await;
    }

    async fn pause(&self, pause: Duration) {
        _ = self.context.stop.run_until_cancelled(sleep(pause)).await;
    }
}

/// The messages of each device, in order.
fn by_device(queued: Vec<Queued>) -> Vec<Vec<Queued>> {
    let mut devices: Vec<Vec<Queued>> = Vec::new();
    let mut places = HashMap::new();
    for queued in queued {
        let place = *places.entry(queued.message.dev_id.clone()).or_insert(devices.len());
        match devices.get_mut(place) {
            Some(messages) => messages.push(queued),
            None => devices.push(vec![queued]),
        }
    }
    devices
}

/// Sends messages one after the other, until one has to be sent again.
async fn send_in_order(
    sender: &dyn Sender,
    destination: &Destination,
    messages: Vec<Queued>,
) -> Vec<(Queued, Result<(), SendError>)> {
    let mut results = Vec::new();
    for queued in messages {
        let (id, app_id) = (queued.id().to_owned(), destination.app_id.clone());
        let result = sender.send(&Outgoing { id, app_id, message: queued.message.clone() }).await;
        let is_blocked = matches!(result, Err(SendError::Failed { .. } | SendError::Unreachable(_)));
        results.push((queued, result));
        if is_blocked {
            break;
        }
    }
    results
}
