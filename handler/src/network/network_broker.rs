//! The network brokers of The Things Network v2, from which uplinks come and through which downlinks leave.
//!
//! The handler trusts those in the setting `handler.brokers`, and finds them in discovery.

mod application_locks;
mod caller;
mod change;
mod connection;
mod metadata;
mod receive_window;
mod receiver;
mod reconciliation;
mod registration;
mod response;

use std::sync::Arc;

use client::{discovery::DiscoveryClient, network_broker::CallingComponent};
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use types::{Clock, ComponentId};

pub(crate) use self::application_locks::ApplicationLock;
pub use self::application_locks::ApplicationLocks;
use self::connection::Connection;
pub(crate) use self::metadata::metadata;
use self::reconciliation::Reconciler;
pub use self::{receiver::UplinkReceiver, reconciliation::Reconciliation};

/// The network brokers that this handler trusts.
pub struct NetworkBrokers {
    /// Their ids.
    pub ids: Vec<ComponentId>,
    /// Knows their addresses and keys.
    pub discovery: DiscoveryClient,
    /// This handler, as it calls them.
    pub caller: CallingComponent,
    /// The time of a call.
    pub clock: Arc<dyn Clock>,
    /// The changes of devices that wait for each other.
    pub locks: ApplicationLocks,
}

/// The subscriptions to the uplinks of network brokers.
pub struct Subscriptions {
    receiver: Arc<UplinkReceiver>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl NetworkBrokers {
    /// Subscribes to the uplinks of all network brokers, and stays subscribed. Each time, devices are brought to the
    /// network server that lacks them.
    pub fn subscribe(
        self: &Arc<Self>,
        receiver: Arc<UplinkReceiver>,
        reconciliation: &Arc<Reconciliation>,
    ) -> Subscriptions {
        let subscriptions = Subscriptions { receiver, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        for id in &self.ids {
            let (id, brokers, subscribed) = (id.clone(), self.clone(), Arc::new(Notify::new()));
            let connection = Connection {
                id: id.clone(),
                brokers: brokers.clone(),
                receiver: subscriptions.receiver.clone(),
                subscribed: subscribed.clone(),
            };
            let reconciler = Reconciler { id, brokers, reconciliation: reconciliation.clone(), subscribed };
            let running = async move { tokio::join!(connection.run(), reconciler.run()) };
            subscriptions.tasks.spawn(subscriptions.stop.clone().run_until_cancelled_owned(running));
        }
        subscriptions
    }
}

impl Subscriptions {
    /// Takes no more uplinks, and finishes those in progress.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.receiver.finish().await;
    }
}
