//! The messages of an application: those that it missed, and live ones, in this order.

pub(super) mod catch_up;
pub(super) mod position;

use std::{sync::Arc, time::Duration};

use bridge::{
    ConnectionState,
    receive::lanes::{LaneWork, Lanes},
};
use bytes::Bytes;
use link::{
    delivery::Delivery,
    mqtt::{Endpoint, Subscriber, Subscription},
};
use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::task::AbortOnDropHandle;
use types::{Clock, Timestamp};

use self::{
    catch_up::{CatchUp, CaughtUp, StoredInProgress},
    position::{Positions, latest},
};
use super::application::topic::device;

/// Time after a connection at which the storage integration is asked again: it may not have stored the last uplinks
/// before at once.
const SETTLE: Duration = Duration::from_secs(10);
/// The pause before a storage integration that cannot be reached is asked again.
const RETRY: Duration = Duration::from_secs(30);

/// The messages of an application.
pub(super) struct Feed {
    /// The id and tenant of the application.
    uid: String,
    subscriber: Subscriber,
    stored: StoredInProgress,
    task: AbortOnDropHandle<()>,
}

/// Events of the connection, in order.
enum Item {
    /// Messages may have been missed before.
    Granted,
    Live(Delivery),
}

/// Resources for delivering messages.
pub(super) struct Intake {
    pub(super) catch_up: CatchUp,
    pub(super) positions: Arc<Positions>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Feed {
    /// Connects in the background.
    pub(super) fn start(
        endpoint: Endpoint,
        subscription: Subscription,
        intake: Intake,
        work: LaneWork<Delivery>,
    ) -> Self {
        // The messages in it are among those in progress, which are bounded; others are one for each connection.
        let (sender, items) = mpsc::unbounded_channel();
        let granted = sender.clone();
        let on_granted: Box<dyn Fn() + Send + Sync> = Box::new(move || _ = granted.send(Item::Granted));
        let subscription = Subscription { on_granted: Some(on_granted), ..subscription };
        let (uid, stored) = (intake.catch_up.application.uid.clone(), intake.catch_up.in_progress());
        let task = Task { intake, device: Box::new(device(String::new())), lanes: Lanes::new(work), due: None };
        let task = AbortOnDropHandle::new(tokio::spawn(task.run(items)));
        // The receiver ends only with the bridge.
        let subscriber =
            Subscriber::start(endpoint, subscription, move |delivery| _ = sender.send(Item::Live(delivery)));
        Self { uid, subscriber, stored, task }
    }

    /// Watches whether live messages are being received.
    pub(super) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscriber.connection().connected()
    }

    /// Returns the application, and since when its live messages are being received, or why they are not.
    pub(super) fn connection(&self) -> (String, ConnectionState) {
        (self.uid.clone(), self.subscriber.connection().state())
    }

    /// Returns the number of messages that are not acknowledged yet, or not dealt with.
    pub(super) fn in_progress(&self) -> usize {
        self.subscriber.in_progress() + self.stored.count()
    }

    /// Receives no more, and waits for the messages in progress.
    pub(super) async fn drain(self) {
        let Self { subscriber, stored, task, .. } = self;
        subscriber.drain().await;
        // Asks for no more, and delivers nothing once it has ended. A panic of the task has been logged.
        task.abort();
        _ = task.await;
        stored.finished().await;
    }
}

struct Task {
    intake: Intake,
    device: Box<dyn Fn(&str) -> String + Send + Sync>,
    lanes: Lanes<Delivery>,
    /// Time at which the storage integration is asked again, and start of that query.
    due: Option<(Instant, Timestamp)>,
}

impl Task {
    /// Live messages wait while those before them are fetched.
    async fn run(mut self, mut items: mpsc::UnboundedReceiver<Item>) {
        loop {
            let due = self.due;
            let asked_again = async {
                match due {
                    Some((at, since)) => {
                        sleep_until(at).await;
                        since
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                item = items.recv() => match item {
                    Some(Item::Granted) => self.granted().await,
                    Some(Item::Live(delivery)) => self.deliver(delivery),
                    None => return,
                },
                since = asked_again => self.ask_again(since).await,
            }
        }
    }

    async fn granted(&mut self) {
        let uid = self.uid().to_owned();
        let since = self.intake.positions.connected(&uid, self.intake.clock.now());
        // From the first connection on, nothing may be missed.
        self.intake.positions.save();
        self.due = match self.catch_up(since).await {
            CaughtUp::Until(until) => Some((Instant::now() + SETTLE, until)),
            CaughtUp::Failed { until } => Some(self.retry(until)),
            CaughtUp::Refused => {
                self.intake.positions.caught_up(&uid);
                None
            }
        };
    }

    async fn ask_again(&mut self, since: Timestamp) {
        self.due = match self.catch_up(since).await {
            CaughtUp::Failed { until } => Some(self.retry(until)),
            CaughtUp::Until(_) | CaughtUp::Refused => {
                let uid = self.uid().to_owned();
                self.intake.positions.caught_up(&uid);
                None
            }
        };
    }

    async fn catch_up(&self, since: Timestamp) -> CaughtUp {
        let latest = latest(self.intake.clock.now());
        self.intake.catch_up.run((since, latest), |delivery| self.deliver(delivery)).await
    }

    /// Returns the time of the next query, and its start. Delivered uplinks are not queried again after a restart.
    fn retry(&self, until: Timestamp) -> (Instant, Timestamp) {
        self.intake.positions.caught_up_to(self.uid(), until);
        (Instant::now() + RETRY, until)
    }

    /// Works on a message behind those of the same device.
    fn deliver(&self, delivery: Delivery) {
        let device = (self.device)(&delivery.topic);
        let Some(received_at) = received_at(&delivery) else { return self.lanes.add(&device, delivery) };
        let (uid, positions) = (self.uid().to_owned(), self.intake.positions.clone());
        positions.begin(&uid, received_at);
        let Delivery { topic, payload, is_duplicate, is_late, ack } = delivery;
        let clock = self.intake.clock.clone();
        let ack = ack.then(move || positions.end(&uid, received_at, clock.now()));
        self.lanes.add(&device, Delivery { topic, payload, is_duplicate, is_late, ack });
    }

    fn uid(&self) -> &str {
        &self.intake.catch_up.application.uid
    }
}

/// Returns the time at which an uplink was received; `None` for other messages, which are not stored with them.
fn received_at(delivery: &Delivery) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Received {
        received_at: Timestamp,
    }
    let parse = |payload: &Bytes| serde_json::from_slice::<Received>(payload).ok();
    if delivery.topic.ends_with("/up") { parse(&delivery.payload).map(|message| message.received_at) } else { None }
}
