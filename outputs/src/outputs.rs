//! The outputs of a process: what keeps messages, and what delivers them.

mod confirmed;
mod deliveries;
mod sweeper;
mod webhooks;

use std::{collections::HashSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use server::{
    lease::Leases,
    ledger::{Ledger, Owners, Turns},
    seal::SealingKeys,
};
use store::Store;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::{AppId, Clock, Random};

use self::sweeper::Sweeper;
pub use self::webhooks::{DeadLetters, FirstWaiting, WEBHOOKS_MAX, WaitingMessage, Webhooks};
pub use self::{
    confirmed::Confirmed,
    deliveries::{DeliveryReport, DeliveryState},
};
use crate::{
    Error, Settings,
    appender::{Appender, Receivers, Recipients, SpareRoom},
    destinations::{Destinations, OperatorOutputs},
    message::{MESSAGE_BYTES_MAX, OutputMessage},
    metrics,
    queue::{Queues, aging::Aging, index::Index},
    queue_workers::{QueueWorkers, RecentDeliveries, WorkerContext},
    sender::webhook::{Grants, LookUp, Names, StoredWebhooks, WebhookClient},
};

/// Interval at which applications are put into the index again.
const INDEX_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Time that storing may take before the sender of a message is told to repeat it.
const STORE_WAIT: Duration = Duration::from_secs(10);

/// Services that outputs use.
pub struct Environment {
    /// Store of the queues.
    pub store: Arc<dyn Store>,
    /// True if other processes use the store.
    pub is_shared: bool,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for names and pauses.
    pub random: Arc<dyn Random>,
    /// Seals the secrets of webhooks.
    pub keys: SealingKeys,
    /// The outputs of the operator.
    pub operator: OperatorOutputs,
    /// Finds the addresses of webhooks.
    pub look_up: LookUp,
    /// Ledger that deliveries and look-ups are charged to.
    pub ledger: Ledger,
    /// Owners of applications.
    pub owners: Arc<Owners>,
    /// Says if the user who set a webhook may still read the messages of its application.
    pub grants: Arc<dyn Grants>,
    /// The threads that deliver. With some of their own, hundreds of receivers that answer at the same moment do not
    /// delay messages on their way to the queues.
    pub threads: Handle,
}

/// The queues of all destinations, and the workers that deliver them from this process.
pub struct Outputs {
    destinations: Arc<Destinations>,
    appender: Arc<Appender>,
    queues: Arc<Queues>,
    workers: Arc<QueueWorkers>,
    webhooks: Arc<Webhooks>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// Resolves when a message is stored for all destinations.
#[must_use = "a message may be lost until it is stored"]
pub struct StorageReceipt(Option<oneshot::Receiver<bool>>);

impl StorageReceipt {
    /// Returns true if there is nothing to wait for.
    pub fn is_stored(&self) -> bool {
        self.0.is_none()
    }

    /// Waits until the message is stored.
    pub async fn stored(self) -> Result<(), Error> {
        let Some(stored) = self.0 else { return Ok(()) };
        match timeout(STORE_WAIT, stored).await {
            Ok(Ok(true)) => Ok(()),
            _ => Err(store::Error::Unavailable { what: "store messages for outputs", source: None }.into()),
        }
    }
}

impl Outputs {
    /// Starts to deliver what earlier processes left.
    pub fn start(settings: &Settings, environment: Environment) -> Result<Self, Error> {
        metrics::describe();
        let Environment { store, is_shared, clock, random, keys, operator, grants, look_up, ledger, owners, threads } =
            environment;
        let process = u64::from_be_bytes(random.array());
        let look_ups = Turns::new(ledger.look_ups.clone());
        let names = Names::new(look_up, look_ups, settings.allow_private_addresses);
        let client = Arc::new(WebhookClient::new(settings, Arc::new(names), clock.clone())?);
        let stored = Arc::new(StoredWebhooks::new(store.clone(), keys, random.clone(), client, grants));
        let queues = Arc::new(Queues::new(store.clone(), clock.clone(), settings, is_shared, process));
        let index = Arc::new(Index { store: store.clone(), clock: clock.clone() });
        let aging = Arc::new(Aging::new(clock.clone()));
        let destinations = Arc::new(Destinations::new(stored.clone(), operator, is_shared));
        let process = format!("{process:016x}");
        let context = WorkerContext {
            queues: queues.clone(),
            destinations: destinations.clone(),
            leases: Leases { store: store.clone(), clock: clock.clone(), is_shared, process },
            aging: aging.clone(),
            owners,
            turns: Turns::new(ledger.deliveries.clone()),
            attempts_max: settings.attempts_max.max(1),
            recent: RecentDeliveries::new(settings),
            clock,
            random,
            stop: CancellationToken::new(),
        };
        let workers = Arc::new(QueueWorkers::new(context, index.clone(), threads));
        tokio::spawn(workers.clone().sweep());
        let appender = Arc::new(Appender {
            store,
            queues: queues.clone(),
            index: index.clone(),
            destinations: destinations.clone(),
            workers: workers.clone(),
            waiting: Mutex::default(),
            indexed: Mutex::new(HashSet::new()),
        });
        let sweeper = Sweeper {
            queues: queues.clone(),
            index: index.clone(),
            aging,
            destinations: destinations.clone(),
            workers: workers.clone(),
            appender: appender.clone(),
        };
        let webhooks = Webhooks {
            stored,
            queues: queues.clone(),
            index,
            destinations: destinations.clone(),
            workers: workers.clone(),
        };
        let tasks = vec![
            AbortOnDropHandle::new(tokio::spawn(refresh_index(appender.clone()))),
            AbortOnDropHandle::new(tokio::spawn(sweeper.run())),
        ];
        Ok(Self { destinations, appender, queues, workers, webhooks: Arc::new(webhooks), _tasks: tasks })
    }

    /// Returns true if an application is known to have no destination. Then messages need not be made.
    pub fn is_without_destination(&self, app_id: &AppId) -> bool {
        self.destinations.is_without(app_id)
    }

    /// Has a message stored for all destinations of its application, and delivered. Never waits.
    pub fn publish(&self, app_id: &AppId, message: OutputMessage) -> StorageReceipt {
        if message.body.get().len() > MESSAGE_BYTES_MAX {
            metrics::too_large();
            return StorageReceipt(None);
        }
        // If it is refused, whoever waits for the receiver learns at once that there is no sender.
        StorageReceipt(Some(self.appender.append(app_id, message).unwrap_or_else(|_| oneshot::channel().1)))
    }

    /// Returns the room for such messages in those receivers that get them, behind live messages.
    pub async fn spare(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<SpareRoom, Error> {
        self.appender.spare(app_id, messages, to).await
    }

    /// Has messages of one application stored for those of the receivers that have room for them behind what is live,
    /// and delivered. Says of each message who got it.
    pub async fn publish_behind(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<Vec<Recipients>, Error> {
        self.appender.publish_behind(app_id, messages, to).await
    }

    /// The webhooks of applications.
    pub fn webhooks(&self) -> Arc<Webhooks> {
        Arc::clone(&self.webhooks)
    }

    /// Stops to deliver, after what is being sent.
    pub async fn stop(&self) {
        self.workers.stop().await;
    }
}

async fn refresh_index(appender: Arc<Appender>) {
    let mut ticks = interval(INDEX_INTERVAL);
    loop {
        ticks.tick().await;
        appender.refresh_index();
    }
}
