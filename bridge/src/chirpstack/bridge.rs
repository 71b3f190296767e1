//! Starts and stops the parts of the bridge.

use std::{path::PathBuf, sync::Arc, time::Duration};

use runtime::Pool;
use server::telemetry::Health;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use types::{Clock, Random};

use super::{
    api::{check_api, directory},
    brokers::Brokers,
    decoder::Decoder,
    directory::Directory,
    downlink::Downlinks,
    output::Output,
    receive::{receive, report_connection},
    settings::ChirpStackSettings,
    state_dir::StateDir,
    topic::{COMMANDS, EVENTS},
    uplink::Uplinks,
};
use crate::{
    Error,
    dedup::Dedup,
    metrics,
    mqtt::{DEFAULT_GROUP, Publisher, Subscriber, Subscription},
};

/// What a bridge takes from its process.
pub struct Environment {
    /// Runs codecs.
    pub pool: Arc<Pool>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for a client id.
    pub random: Arc<dyn Random>,
    /// Where imported codecs are kept, and the client id; for this bridge alone.
    pub state_dir: PathBuf,
}

/// A running bridge to ChirpStack.
pub struct Bridge {
    directory: Arc<Directory>,
    events: Subscriber,
    commands: Subscriber,
    connected: [(&'static str, watch::Receiver<bool>); 4],
    prefix: String,
    _refresh: AbortOnDropHandle<()>,
    _state_dir: StateDir,
}

impl Bridge {
    /// Checks the settings and the API, and connects to the brokers in the background.
    pub async fn start(settings: &ChirpStackSettings, environment: Environment) -> Result<Self, Error> {
        metrics::describe();
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let brokers = Brokers::new(settings, &client_id).await?;
        let directory = Arc::new(directory(settings, &environment, &state_dir)?);
        check_api(&directory, &settings.grpc).await?;
        let refresh = AbortOnDropHandle::new(tokio::spawn(directory.clone().run()));
        let applications = Arc::new(Output::new(Publisher::start(brokers.out), brokers.prefix.clone(), settings));
        let chirpstack = Output::new(Publisher::start(brokers.commands_out), String::new(), settings);
        let dedup = || {
            let window = Duration::from_millis(settings.duplicate_window_ms);
            Dedup::new(settings.duplicate_messages_max, window, environment.clock.clone())
        };
        let published = [applications.publisher.connected(), chirpstack.publisher.connected()];
        let uplinks = Arc::new(Uplinks {
            decoder: Decoder { directory: directory.clone(), clock: environment.clock.clone() },
            output: applications.clone(),
            dedup: dedup(),
            clock: environment.clock.clone(),
        });
        let downlinks = Arc::new(Downlinks {
            directory: directory.clone(),
            chirpstack,
            applications,
            dedup: dedup(),
            clock: environment.clock.clone(),
        });
        let subscription = |filter: String| Subscription {
            filters: vec![filter],
            group: settings.shared_subscription.then_some(DEFAULT_GROUP),
            in_flight_max: settings.in_flight_max.max(1),
            keeps_session: true,
        };
        let events = receive(brokers.events, subscription(EVENTS.to_owned()), String::new(), move |delivery| {
            let uplinks = uplinks.clone();
            Box::pin(async move { uplinks.handle(delivery).await })
        });
        let filter = format!("{}{COMMANDS}", brokers.prefix);
        let commands = receive(brokers.commands, subscription(filter), brokers.prefix.clone(), move |delivery| {
            let downlinks = downlinks.clone();
            Box::pin(async move { downlinks.handle(delivery).await })
        });
        let [out, commands_out] = published;
        let connected = [
            ("events from ChirpStack", events.subscribed()),
            ("events to applications", out),
            ("commands from applications", commands.subscribed()),
            ("commands to ChirpStack", commands_out),
        ];
        let prefix = brokers.prefix;
        Ok(Self { directory, events, commands, connected, prefix, _refresh: refresh, _state_dir: state_dir })
    }

    /// What precedes the topics of decoded events.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Waits until the brokers are connected.
    pub async fn ready(&self) {
        for (_, connected) in &self.connected {
            // It fails only when the connection's task has ended.
            _ = connected.clone().wait_for(|connected| *connected).await;
        }
    }

    /// Reports each connection as a health check.
    pub fn report_to(&self, health: &Health) {
        self.connected.iter().for_each(|(name, connected)| report_connection(health, name, connected));
    }

    /// Finishes the messages in progress, and stops. Those that are not finished come again on the next start.
    pub async fn stop(self) {
        // First, because the messages may take longer than the process may.
        self.directory.save().await;
        tokio::join!(self.events.drain(), self.commands.drain());
        self.directory.save().await;
    }
}
