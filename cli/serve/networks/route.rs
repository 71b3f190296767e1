//! The way of an application's events from a network to the handler, and of its downlinks to the network.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bridge::{Network, Receiver, Route};
use futures::future::BoxFuture;
use handler::{
    downlink,
    network::{NetworkEvents, Registration},
};
use history::Outcome;
use server::status::ErrorChain;
use types::{AppId, DevEui, Kinded, NetworkDownlink, NetworkEvent, NetworkRefusal};

use crate::settings::ApplicationSettings;

/// An application of a network and one of this handler, with what passes between them.
#[derive(Clone)]
pub(in crate::serve) struct WatchedRoute {
    /// The id or name of the application there.
    pub(in crate::serve) application: String,
    /// The id of the application here.
    pub(in crate::serve) app_id: AppId,
    /// True if a device is registered when it is first heard.
    pub(in crate::serve) registers: bool,
    /// The uplinks that the handler took.
    pub(in crate::serve) uplinks: Arc<UplinkCounts>,
}

/// Number of uplinks since the start, by what payload functions made of them.
#[derive(Default)]
pub(in crate::serve) struct UplinkCounts {
    decoded: AtomicU64,
    failed: AtomicU64,
    invalid: AtomicU64,
    not_converted: AtomicU64,
}

impl WatchedRoute {
    pub(super) fn new(settings: &ApplicationSettings) -> Self {
        let ApplicationSettings { application, app_id, register, .. } = settings.clone();
        Self { application, app_id, registers: register, uplinks: Arc::default() }
    }

    /// The route as the network takes it.
    pub(super) fn to_handler(&self, settings: &ApplicationSettings, events: &Arc<NetworkEvents>) -> Route {
        let Self { application, app_id, registers, uplinks } = self.clone();
        let registration = Registration { app_id: app_id.clone(), is_automatic: registers, ids: settings.ids };
        let receiver = ApplicationReceiver { registration, events: events.clone(), uplinks };
        Route { application, app_id, receiver: Arc::new(receiver) }
    }
}

impl UplinkCounts {
    fn count(&self, made: Outcome) {
        self.of(made).fetch_add(1, Relaxed);
    }

    /// Returns the number of uplinks of which this was made.
    pub(in crate::serve) fn get(&self, made: Outcome) -> u64 {
        self.of(made).load(Relaxed)
    }

    fn of(&self, made: Outcome) -> &AtomicU64 {
        match made {
            Outcome::Decoded => &self.decoded,
            Outcome::Failed => &self.failed,
            Outcome::Invalid => &self.invalid,
            Outcome::NotConverted => &self.not_converted,
        }
    }
}

/// Takes the events of a network's application.
struct ApplicationReceiver {
    registration: Registration,
    events: Arc<NetworkEvents>,
    uplinks: Arc<UplinkCounts>,
}

impl Receiver for ApplicationReceiver {
    fn receive(&self, event: NetworkEvent) -> BoxFuture<'_, Result<(), NetworkRefusal>> {
        Box::pin(async move {
            match self.events.handle(&self.registration, event).await {
                Ok(made) => {
                    if let Some(made) = made {
                        self.uplinks.count(made);
                    }
                    Ok(())
                }
                Err(error) => Err(NetworkRefusal::new(error.kind(), ErrorChain(&error))),
            }
        })
    }
}

/// Sends the downlinks of an application through the network of its devices.
pub(super) struct DownlinkRoute(pub(super) Arc<dyn Network>, pub(super) AppId);

impl downlink::DownlinkNetwork for DownlinkRoute {
    fn send(&self, dev_eui: DevEui, downlink: NetworkDownlink) -> BoxFuture<'_, Result<String, NetworkRefusal>> {
        self.0.send(self.1.clone(), dev_eui, downlink)
    }
}
