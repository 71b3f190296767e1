//! Destinations of an application: its webhooks, and the outputs of the operator.

mod operator;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use store::{Batch, Key};
use tokio::time::{Instant, sleep};
use types::AppId;

pub use self::operator::{OperatorOutputs, OperatorSettings};
use crate::{
    Error,
    destination::{self, Destination, WEBHOOK},
    message::OutputMessage,
    queue::Delivery,
    sender::{
        Sender,
        webhook::{Loaded, StoredWebhooks},
    },
};

/// Time until a process notices the first webhook that another process stores. All later changes are noticed with the
/// next message, because storing it expects the webhooks to be unchanged.
const CACHE_TIME: Duration = Duration::from_secs(2);
const APPLICATIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// The destinations of all applications.
pub(crate) struct Destinations {
    webhooks: Arc<StoredWebhooks>,
    operator: Arc<OperatorOutputs>,
    /// True if other processes change webhooks.
    is_shared: bool,
    cache: Mutex<LruCache<AppId, Cached>>,
}

#[derive(Clone)]
struct Cached {
    of_application: Arc<OfApplication>,
    loaded: Instant,
}

/// The destinations of an application.
pub(crate) struct OfApplication {
    /// The record of the webhooks, which is expected to be unchanged when messages are stored.
    record: Key,
    loaded: Loaded,
    /// Destinations of the webhooks, and then those of the operator's outputs.
    destinations: Vec<Destination>,
    operator: Arc<OperatorOutputs>,
    app_id: AppId,
}

impl Destinations {
    pub(crate) fn new(webhooks: Arc<StoredWebhooks>, operator: OperatorOutputs, is_shared: bool) -> Self {
        Self { webhooks, operator: Arc::new(operator), is_shared, cache: Mutex::new(LruCache::new(APPLICATIONS_MAX)) }
    }

    /// Returns true if an application is known to have no destinations.
    pub(crate) fn is_without(&self, app_id: &AppId) -> bool {
        !self.operator.have(app_id) && self.cached(app_id).is_some_and(|cached| cached.loaded.webhooks.is_empty())
    }

    /// The destinations of an application.
    pub(crate) async fn of(&self, app_id: &AppId) -> Result<Arc<OfApplication>, Error> {
        if let Some(cached) = self.cached(app_id) {
            return Ok(cached);
        }
        let now = Instant::now();
        let (record, loaded) = (destination::webhooks(app_id)?, self.webhooks.load(app_id).await?);
        let webhooks = loaded.webhooks.iter().map(|(id, _)| Destination::new(app_id, WEBHOOK, id.as_str()));
        let destinations = webhooks.chain(self.operator.of(app_id).map(|output| output.destination(app_id))).collect();
        let (operator, app_id) = (self.operator.clone(), app_id.clone());
        let of_application = Arc::new(OfApplication { record, loaded, destinations, operator, app_id: app_id.clone() });
        let cached = Cached { of_application: of_application.clone(), loaded: now };
        self.cache.lock().put(app_id, cached);
        Ok(of_application)
    }

    /// Returns true if this process may deliver to a destination. An output of the operator may be configured
    /// elsewhere, or be configured again: its messages stay until they expire.
    pub(crate) fn is_known(&self, destination: &Destination) -> bool {
        destination.kind == WEBHOOK || self.operator.sender(destination).is_some()
    }

    /// Returns the sender of a destination; none if it was deleted. Fails if the webhooks cannot be read.
    pub(crate) async fn sender(&self, destination: &Destination) -> Result<Option<Arc<dyn Sender>>, Error> {
        if destination.kind != WEBHOOK {
            return Ok(self.operator.sender(destination));
        }
        // Another process may have changed it.
        if self.is_shared {
            self.forget(&destination.app_id);
        }
        Ok(self.of(&destination.app_id).await?.sender(destination))
    }

    /// Reads the webhooks of an application again, because they were changed.
    pub(crate) fn forget(&self, app_id: &AppId) {
        self.cache.lock().pop(app_id);
    }

    /// Waits until every process has noticed the first webhook of an application.
    pub(crate) async fn noticed(&self) {
        if self.is_shared {
            sleep(CACHE_TIME).await;
        }
    }

    fn cached(&self, app_id: &AppId) -> Option<Arc<OfApplication>> {
        let cached = self.cache.lock().get(app_id).cloned()?;
        let is_fresh = !self.is_shared || cached.loaded.elapsed() < CACHE_TIME;
        is_fresh.then_some(cached.of_application)
    }
}

impl OfApplication {
    /// Requires that the webhooks are still the same.
    pub(crate) fn expect(&self, batch: Batch) -> Batch {
        match self.loaded.version {
            Some(version) => batch.expect(self.record.clone(), version),
            None => batch.expect_absent(self.record.clone()),
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Destination> {
        self.destinations.iter()
    }

    /// Returns the number of destinations.
    pub(crate) fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Each message, with the destinations that get it; none that nobody gets.
    pub(crate) fn deliveries<'a>(&'a self, messages: &[&'a OutputMessage]) -> Vec<Delivery<'a>> {
        let deliveries = messages.iter().map(|message| Delivery { message, to: self.wanting(message) });
        deliveries.filter(|delivery| !delivery.to.is_empty()).collect()
    }

    /// Those that get such messages.
    pub(crate) fn wanting(&self, message: &OutputMessage) -> Vec<&Destination> {
        self.wanting_event(&message.event)
    }

    /// Those that get messages about such an event.
    pub(crate) fn wanting_event(&self, event: &str) -> Vec<&Destination> {
        let webhooks = self.loaded.webhooks.iter().map(|(_, webhook)| webhook.wants(event));
        let operator = self.operator.of(&self.app_id).map(|output| output.wants(event));
        let wanting = self.destinations.iter().zip(webhooks.chain(operator)).filter(|(_, wants)| *wants);
        wanting.map(|(destination, _)| destination).collect()
    }

    fn sender(&self, destination: &Destination) -> Option<Arc<dyn Sender>> {
        let webhook = self.loaded.webhooks.iter().find(|(id, _)| id.as_str() == destination.name);
        webhook.map(|(_, webhook)| webhook.sender())
    }
}
