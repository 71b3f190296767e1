//! Delivers the queue of one destination: in order per device, several devices at a time, with pauses after failures.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt, poll, stream};
use server::{
    lease::{Lease, Leases},
    ledger::{Owner, OwnerTurn, Owners, Turns},
    status::ErrorChain,
};
use store::Key;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use types::{Clock, Random};

use super::{
    progress::Progress,
    recent::{FinishedDelivery, RecentDeliveries, Ring, Timing},
};
use crate::{
    Error,
    destination::{Destination, Part, WEBHOOK},
    destinations::Destinations,
    message::{DROPPED, Outgoing, OutputMessage},
    metrics::{self, Fate, QueueLength},
    queue::{Failure, Queued, Queues, Settled, aging::Aging},
    sender::{SendError, SendReceipt, Sender},
};

/// Maximum number of messages looked at together.
const ROUND_MESSAGES: usize = 64;
/// Maximum number of devices whose messages are sent at once.
const DEVICES_AT_ONCE: usize = 8;
/// The same while nothing gets through: two, so that one message that its receiver cannot handle does not hide that
/// others get through.
const PROBES: usize = 2;
/// Pause after the first failure; doubled after each.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Maximum pause that a receiver may ask for.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(300);
/// Interval at which the lease of another process is checked.
const LEASE_PAUSE: Duration = Duration::from_millis(500);

/// Interval at which the queue of a receiver that is not ready is counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// The reason why nothing gets through to a receiver that is not ready.
const NOT_CONNECTED: &str = "it is not connected";

/// Services and limits that all workers share.
pub(crate) struct WorkerContext {
    pub(crate) queues: Arc<Queues>,
    pub(crate) destinations: Arc<Destinations>,
    pub(crate) leases: Leases,
    pub(crate) aging: Arc<Aging>,
    pub(crate) owners: Arc<Owners>,
    /// Whoever sends a message has one: what waits is not in memory.
    pub(crate) turns: Arc<Turns>,
    pub(crate) attempts_max: u32,
    /// The last deliveries.
    pub(crate) recent: RecentDeliveries,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// Ends the workers after what they are sending.
    pub(crate) stop: CancellationToken,
}

/// The delivery to one destination.
pub(crate) struct QueueWorker {
    context: Arc<WorkerContext>,
    destination: Destination,
    /// Number of times that each message at the front was sent.
    attempts: HashMap<Key, u32>,
    /// Number of consecutive rounds that got nothing through.
    failures: u32,
    progress: Arc<Progress>,
    /// The messages that left the queue in this round, and the ring that remembers them.
    left: Vec<FinishedDelivery>,
    ring: Option<Arc<Ring>>,
}

/// Reasons for a worker to give up its lease.
#[derive(PartialEq, Eq)]
enum End {
    Empty,
    Lost,
}

/// Result of sending one message.
enum Attempt {
    Sent(Result<SendReceipt, SendError>, Timing),
    /// Its body is missing: it was dropped meanwhile.
    Lost,
}

/// Result of a round of sending.
#[derive(Default)]
struct Round {
    settled: Settled,
    has_failed: bool,
    /// The last failure, if there was one. That the receiver refuses a message for good is none.
    failure: Option<String>,
    /// Pause that the receiver asks for.
    wait: Option<Duration>,
}

impl WorkerContext {
    /// Waits for a turn to send a message; none if the outputs are stopped.
    async fn turn(&self, owner: &Owner) -> Option<OwnerTurn> {
        self.stop.run_until_cancelled(self.turns.take(owner)).await.flatten()
    }
}

impl QueueWorker {
    pub(crate) fn new(context: Arc<WorkerContext>, destination: Destination, progress: Arc<Progress>) -> Self {
        Self { context, destination, attempts: HashMap::new(), failures: 0, progress, left: Vec::new(), ring: None }
    }

    /// Delivers until the queue is empty, or the outputs are stopped.
    pub(crate) async fn run(&mut self) {
        while !self.context.stop.is_cancelled() {
            match self.try_run().await {
                Ok(End::Empty) => return,
                Ok(End::Lost) => {
                    self.progress.forget();
                    self.pause(LEASE_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(destination = %self.destination, error = %ErrorChain(&error), "cannot deliver messages: trying again");
                    self.pause(PAUSE).await;
                }
            }
        }
    }

    async fn try_run(&mut self) -> Result<End, Error> {
        let Some(lease) = self.context.leases.acquire(self.destination.lease()?).await? else {
            let is_empty = self.context.queues.is_empty(&self.destination).await?;
            return Ok(if is_empty { End::Empty } else { End::Lost });
        };
        let end = self.deliver(&lease).await;
        lease.release().await;
        end
    }

    async fn deliver(&mut self, lease: &Lease) -> Result<End, Error> {
        let context = Arc::clone(&self.context);
        let mut length = QueueLength::of(&self.destination);
        while !context.stop.is_cancelled() {
            let Some(sender) = context.destinations.sender(&self.destination).await? else {
                // It was deleted.
                context.queues.delete(&self.destination).await?;
                return Ok(End::Empty);
            };
            let owner = context.owners.of(&self.destination.app_id).await;
            if !self.is_ready(sender.as_ref(), &owner, &mut length).await? {
                continue;
            }
            let Some(turn) = context.turn(&owner).await else { continue };
            let queued = context.queues.first(&self.destination, ROUND_MESSAGES).await?;
            length.set(match queued.len() {
                ROUND_MESSAGES => context.queues.len(&self.destination).await?,
                fewer => fewer,
            });
            if queued.is_empty() {
                return Ok(End::Empty);
            }
            if self.drop_old(&queued).await? {
                continue;
            }
            let round = self.send_round(sender.as_ref(), queued, lease, (&owner, turn)).await?;
            self.note(&round, &owner);
            if !self.settle(&round.settled, lease).await? {
                return Ok(End::Lost);
            }
            self.wait_after(&round).await;
        }
        Ok(End::Empty)
    }

    /// Waits for what every message needs, for a while. The queue may grow meanwhile, so it is counted again.
    async fn is_ready(&self, sender: &dyn Sender, owner: &Owner, length: &mut QueueLength) -> Result<bool, Error> {
        let mut ready = sender.ready(owner);
        if poll!(&mut ready).is_ready() {
            return Ok(true);
        }
        if self.destination.kind != WEBHOOK {
            self.progress.failed(self.context.clock.now(), NOT_CONNECTED);
        }
        length.set(self.context.queues.len(&self.destination).await?);
        let ready = self.context.stop.run_until_cancelled(timeout(COUNT_INTERVAL, ready)).await;
        Ok(matches!(ready, Some(Ok(()))))
    }

    /// Keeps in memory what became of a round, for those who ask.
    fn note(&mut self, round: &Round, owner: &Owner) {
        // Before it leaves the queue, so that it is always found in one of them.
        self.context.recent.record(&mut self.ring, (owner, &self.destination), &self.left);
        self.left.clear();
        self.progress.note_attempts(&self.attempts);
        match &round.failure {
            _ if !round.settled.delivered.is_empty() => self.progress.succeeded(),
            Some(failure) => self.progress.failed(self.context.clock.now(), failure),
            None => {}
        }
    }

    /// Drops messages that are too old; returns whether there were any. The destination is told, as about others that
    /// were dropped.
    async fn drop_old(&self, queued: &[Queued]) -> Result<bool, Error> {
        let Some(before) = self.context.aging.messages_before() else { return Ok(false) };
        let old = Queues::queued_before(queued, before);
        if old.is_empty() {
            return Ok(false);
        }
        let dropped = self.context.queues.drop_these(&self.destination, old).await?;
        metrics::count(&self.destination, Fate::Dropped, dropped);
        Ok(true)
    }

    async fn settle(&self, settled: &Settled, lease: &Lease) -> Result<bool, Error> {
        if settled.is_empty() {
            return Ok(!lease.is_lost().await);
        }
        let WorkerContext { queues, destinations, .. } = &*self.context;
        let destinations = destinations.of(&self.destination.app_id).await?.len();
        let dead_letters = queues.limit(Part::DeadLetters, destinations);
        let settle = async |version| queues.settle(&self.destination, settled, version, dead_letters).await;
        if !lease.hold(settle).await.unwrap_or(Ok(false))? {
            return Ok(false);
        }
        metrics::count(&self.destination, Fate::Delivered, settled.delivered.len());
        metrics::count(&self.destination, Fate::Dead, settled.dead.len());
        Ok(true)
    }

    /// Sends what waits for each device, until one of its messages fails.
    async fn send_round(
        &mut self,
        sender: &dyn Sender,
        queued: Vec<Queued>,
        lease: &Lease,
        (owner, turn): (&Owner, OwnerTurn),
    ) -> Result<Round, Error> {
        let mut round = Round::default();
        if self.failures == 0
            && let Err(error) = self.report_dropped(sender, lease, owner).await
        {
            tracing::debug!(destination = %self.destination, %error, "cannot say how many messages were dropped");
        }
        self.attempts.retain(|key, _| queued.iter().any(|queued| queued.key == *key));
        let mut devices = by_device(queued);
        if self.failures > 0 {
            devices.truncate(PROBES);
            devices.iter_mut().for_each(|messages| messages.truncate(1));
        }
        let (context, destination) = (&*self.context, &self.destination);
        let mut turn = Some(turn);
        let sent: Vec<_> = stream::iter(devices)
            .map(|messages| send_in_order(context, sender, (destination, owner), messages, turn.take()))
            .buffer_unordered(DEVICES_AT_ONCE)
            .collect()
            .await;
        for sent in sent {
            for (queued, attempt) in sent? {
                self.sort(queued, attempt, &mut round);
            }
        }
        Ok(round)
    }

    fn sort(&mut self, queued: Queued, attempt: Attempt, round: &mut Round) {
        let Attempt::Sent(result, timing) = attempt else { return round.settled.lost.push(queued) };
        let error = match result {
            Ok(taken) => {
                let attempts = self.attempts.get(&queued.key).map_or(1, |failed| failed + 1);
                self.left.push(FinishedDelivery::new((&queued.message).into(), (Ok(taken), attempts), timing));
                return round.settled.delivered.push(queued);
            }
            Err(error) => error,
        };
        let attempts = self.attempts.entry(queued.key.clone()).or_default();
        if !matches!(error, SendError::Unreachable(_)) {
            *attempts += 1;
        }
        let attempts = *attempts;
        let is_refused = matches!(error, SendError::Refused { .. });
        if !is_refused {
            // A message that is given up has not got through either.
            round.failure = Some(error.to_string());
        }
        if is_refused || attempts >= self.context.attempts_max {
            let reason = error.to_string();
            if self.destination.kind != WEBHOOK {
                // Nobody but the operator can do something about it.
                tracing::warn!(destination = %self.destination, event = queued.message.event, reason, "a message was given up");
            }
            self.left.push(FinishedDelivery::new((&queued.message).into(), (Err(&error), attempts), timing));
            return round.settled.dead.push((queued, Failure { attempts, reason }));
        }
        metrics::count(&self.destination, Fate::Retried, 1);
        tracing::debug!(destination = %self.destination, %error, "cannot deliver a message: trying again");
        round.has_failed = true;
        if let SendError::Failed { wait: Some(wait), .. } = error {
            round.wait = round.wait.max(Some(wait.min(ASKED_PAUSE_MAX)));
        }
    }

    /// Says how many messages were dropped, before the next one.
    async fn report_dropped(&self, sender: &dyn Sender, lease: &Lease, owner: &Owner) -> Result<(), Error> {
        let queues = &self.context.queues;
        let Some((messages, version)) = queues.dropped(&self.destination).await? else { return Ok(()) };
        if lease.is_lost().await {
            return Ok(());
        }
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "messages": messages }))?;
        let (event, time) = (DROPPED.to_owned(), self.context.clock.now());
        let message = OutputMessage { dev_id: None, event, time, identity: 0, body };
        let (app_id, owner) = (self.destination.app_id.clone(), owner.clone());
        let outgoing = Outgoing { id: queues.next_id(), app_id, owner, message };
        match sender.send(&outgoing).await {
            // Whoever does not take such events is not asked again.
            Ok(_) | Err(SendError::Refused { .. }) => queues.mark_reported(&self.destination, version).await,
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
        let pause = pause.max(round.wait.unwrap_or_default());
        self.progress.pauses_until(Some(self.context.clock.now().plus(pause)));
        self.pause(pause).await;
        self.progress.pauses_until(None);
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
    context: &WorkerContext,
    sender: &dyn Sender,
    (destination, owner): (&Destination, &Owner),
    messages: Vec<Queued>,
    mut first_turn: Option<OwnerTurn>,
) -> Result<Vec<(Queued, Attempt)>, Error> {
    let mut attempts = Vec::new();
    for queued in messages {
        let turn = match first_turn.take() {
            Some(turn) => Some(turn),
            None => context.turn(owner).await,
        };
        let Some(_turn) = turn else { break };
        let Some(message) = context.queues.message(destination, &queued).await? else {
            attempts.push((queued, Attempt::Lost));
            continue;
        };
        let (id, app_id, owner) = (queued.id().to_owned(), destination.app_id.clone(), owner.clone());
        let began = Instant::now();
        let result = sender.send(&Outgoing { id, app_id, owner, message }).await;
        let timing = Timing { at: context.clock.now(), duration: began.elapsed() };
        let is_blocked = matches!(result, Err(SendError::Failed { .. } | SendError::Unreachable(_)));
        attempts.push((queued, Attempt::Sent(result, timing)));
        if is_blocked {
            break;
        }
    }
    Ok(attempts)
}
