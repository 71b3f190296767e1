//! Shadows: networks whose own results are compared with our runs of the same codecs. They bring no devices.

use std::{mem, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use bridge::{Environment, Error, Observation, Running};
use console::ShadowConnection;
use parking_lot::Mutex;
use runtime::Pool;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::watched::NetworkDescription;
use crate::{exit::chain, serve::context::Context, services::shadow_report::Report, settings::NetworkSettings};

/// The pause before a network is tried again whose API cannot be used.
const RETRY: Duration = Duration::from_secs(10);
/// Maximum time for which the start of the process waits for the API.
const START_MAX: Duration = Duration::from_secs(3);

/// A network whose results are compared.
pub(in crate::serve) struct Shadow {
    pub(in crate::serve) name: String,
    pub(in crate::serve) description: NetworkDescription,
    report: Arc<Mutex<Report>>,
    state: Arc<Mutex<ShadowState>>,
    stopping: CancellationToken,
    /// Tries again until it has started; none once it is stopped.
    starting: Mutex<Option<JoinHandle<()>>>,
}

/// The state of a comparison.
enum ShadowState {
    /// The network's API cannot be used, for this reason.
    Waiting(String),
    Running(Box<dyn Running>),
    Stopped,
}

/// Resources for starting a comparison.
struct Starter {
    settings: NetworkSettings,
    environment: Environment,
    report: Arc<Mutex<Report>>,
}

impl Shadow {
    /// Checks the settings, and starts; in the background, if the network's API cannot be used now.
    pub(super) async fn start(context: &Context, settings: &NetworkSettings, pool: &Arc<Pool>) -> anyhow::Result<Self> {
        let unusable = || "cannot use a network of `bridge`";
        ensure!(
            settings.applications.is_empty(),
            "a `[[bridge]]` with `shadow` brings no devices: leave out its `applications`"
        );
        let name = settings.name().map_err(Error::in_entry).with_context(unusable)?;
        let directory = settings.directory().with_context(unusable)?;
        let description = settings.description().with_context(unusable)?;
        let fuel_max = context.settings.sandbox.limits.fuel;
        let report = Arc::new(Mutex::new(Report::new(context.clock.now(), fuel_max)));
        let environment = Environment {
            pool: pool.clone(),
            clock: context.clock.clone(),
            random: context.random.clone(),
            state_dir: context.settings.data_dir.join("bridge").join(format!("shadow-{directory}")),
            history: None,
        };
        let starter = Starter { settings: settings.clone(), environment, report: report.clone() };
        let state = Arc::new(Mutex::new(match timeout(START_MAX, starter.start()).await {
            Ok(Ok(running)) => ShadowState::Running(running),
            Ok(Err(error @ Error::Api { .. })) => ShadowState::waiting(chain(&anyhow::Error::from(error))),
            Ok(Err(error)) => return Err(error).with_context(unusable),
            Err(_) => ShadowState::waiting("its API has not answered yet".to_owned()),
        }));
        let stopping = CancellationToken::new();
        let retrying = stopping.clone().run_until_cancelled_owned(retry(starter, state.clone()));
        let starting = tokio::spawn(async move { _ = retrying.await });
        Ok(Self { name, description, report, state, stopping, starting: Mutex::new(Some(starting)) })
    }

    /// Returns the state of its connections at this moment.
    pub(in crate::serve) fn connection(&self) -> ShadowConnection {
        match &*self.state.lock() {
            ShadowState::Waiting(reason) => ShadowConnection::NotStarted(reason.clone()),
            ShadowState::Running(running) => {
                let mut connections = running.connections().iter().flat_map(|(_, connected)| connected);
                match connections.all(|connected| *connected.borrow()) {
                    true => ShadowConnection::Connected,
                    false => ShadowConnection::Disconnected(running.failure()),
                }
            }
            ShadowState::Stopped => ShadowConnection::Disconnected(None),
        }
    }

    /// Reads the report, to which nothing is added meanwhile.
    pub(in crate::serve) fn read<T>(&self, read: impl FnOnce(&Report) -> T) -> T {
        read(&self.report.lock())
    }

    /// Compares what is in progress, and stops.
    pub(super) async fn stop(&self) {
        self.stopping.cancel();
        let starting = self.starting.lock().take();
        if let Some(starting) = starting {
            // A panic has been logged.
            _ = starting.await;
        }
        let state = mem::replace(&mut *self.state.lock(), ShadowState::Stopped);
        if let ShadowState::Running(running) = state {
            running.stop().await;
        }
    }
}

impl ShadowState {
    fn waiting(reason: String) -> Self {
        tracing::warn!(%reason, "cannot compare the results of a network yet: trying again");
        Self::Waiting(reason)
    }
}

impl Starter {
    async fn start(&self) -> Result<Box<dyn Running>, Error> {
        let report = self.report.clone();
        let observe = move |observation: Observation| report.lock().add(&observation);
        self.settings.start_shadow(self.environment.clone(), observe).await
    }
}

async fn retry(starter: Starter, state: Arc<Mutex<ShadowState>>) {
    while matches!(*state.lock(), ShadowState::Waiting(_)) {
        sleep(RETRY).await;
        let next = match starter.start().await {
            Ok(running) => ShadowState::Running(running),
            Err(error) => ShadowState::Waiting(chain(&anyhow::Error::from(error))),
        };
        *state.lock() = next;
    }
}
