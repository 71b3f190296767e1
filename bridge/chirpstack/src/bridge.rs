//! Starts and stops the parts of the bridge.

use std::{sync::Arc, time::Duration};

use bridge::{
    Connections, Environment, Error, Running, StateDir, metrics,
    publish::{output::Output, republish::Republisher},
    receive::{dedup::Dedup, receive},
    record::{HasDevice, Recorder},
};
use futures::{FutureExt, future::BoxFuture};
use link::{
    backoff::Backoff,
    mqtt::{Endpoint, Group, Membership, Subscriber, end_session},
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use types::Clock;

use super::{
    api::{check_api, directory},
    codec::{decoder::Decoder, directory::Directory},
    downlink::Downlinks,
    event::{
        forms::to_entry,
        topic::{COMMANDS, device},
    },
    settings::ChirpStackSettings,
    source::{
        Events,
        brokers::{Brokers, Commands, EventSource, Target},
        group, subscription,
    },
    uplink::Uplinks,
};

/// The bridges that share the messages of a broker.
const GROUP: &str = "airlock";

/// A running bridge to ChirpStack.
pub struct ChirpStackBridge {
    directory: Arc<Directory>,
    recorder: Arc<Recorder>,
    events: Events,
    commands: Option<Subscriber>,
    /// Sessions for which brokers keep messages.
    sessions: Vec<Endpoint>,
    connections: Connections,
    prefix: String,
    _refresh: AbortOnDropHandle<()>,
    state_dir: StateDir,
}

impl ChirpStackBridge {
    /// Checks the settings and the API, and connects to brokers and Redis in the background.
    pub async fn start(settings: &ChirpStackSettings, environment: Environment) -> Result<Self, Error> {
        Self::start_in(group(GROUP, settings), settings, environment).await
    }

    /// Publishes what brokers have kept for this bridge, and ends its sessions there, so that others get what comes.
    pub async fn leave(settings: &ChirpStackSettings, environment: Environment) -> Result<(), Error> {
        let group = Group { name: GROUP, membership: Membership::Leaving };
        let bridge = Self::start_in(group, settings, environment).await?;
        bridge.ready().await;
        let (sessions, _state_dir) = bridge.stop_when_idle().await;
        for session in &sessions {
            let mut backoff = Backoff::default();
            while !end_session(session).await {
                backoff.pause().await;
            }
        }
        Ok(())
    }

    async fn start_in(group: Group, settings: &ChirpStackSettings, environment: Environment) -> Result<Self, Error> {
        metrics::describe();
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let Brokers { events, out, commands, prefix } = Brokers::new(settings, &client_id).await?;
        let directory = Arc::new(directory(settings, &environment, &state_dir)?);
        check_api(&directory, &settings.grpc).await?;
        let recorder = Arc::new(Recorder::open(&environment, &state_dir, Some(has_device(&directory)))?);
        let refresh = AbortOnDropHandle::new(tokio::spawn(directory.clone().run()));
        let applications = Arc::new(match out {
            Target::Broker(endpoint) => {
                Output::start(endpoint, prefix.clone(), settings.refused_wait_ms_max, settings.in_flight_max)
            }
            Target::Stream(target) => Output::to_stream(*target, prefix.clone(), to_entry),
        });
        let sessions = match &events {
            EventSource::Mqtt(endpoint) => Some(endpoint.clone()),
            EventSource::Redis(_) => None,
        };
        let received = commands.as_ref().map(|commands| commands.received.clone());
        let sessions = sessions.into_iter().chain(received).collect();
        let parts = Parts {
            settings,
            group,
            clock: environment.clock,
            directory: directory.clone(),
            recorder: recorder.clone(),
            applications,
        };
        let events = parts.receive_events(events, &client_id);
        let mut connections = vec![
            ("events from ChirpStack", vec![events.connection().connected()]),
            ("events to applications", vec![parts.applications.connected()]),
        ];
        let commands = commands.map(|commands| {
            let (subscriber, passed_on) = parts.receive_commands(commands);
            connections.push(("commands from applications", vec![subscriber.connection().connected()]));
            connections.push(("commands to ChirpStack", vec![passed_on]));
            subscriber
        });
        if commands.is_none() {
            tracing::info!(
                "commands of applications are not taken: give ChirpStack's MQTT broker with --mqtt, and a broker with --to"
            );
        }
        Ok(Self { directory, recorder, events, commands, sessions, connections, prefix, _refresh: refresh, state_dir })
    }

    /// Returns the prefix of the topics of decoded events.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Stops when nothing comes any more; returns the sessions, and the directory with their client id.
    async fn stop_when_idle(self) -> (Vec<Endpoint>, StateDir) {
        self.events.idle().await;
        if let Some(commands) = &self.commands {
            commands.idle().await;
        }
        let Self { directory, recorder, events, commands, sessions, state_dir, .. } = self;
        drain((&directory, &recorder), events, commands).await;
        (sessions, state_dir)
    }

    /// Finishes the messages in progress, and stops. Those that are not finished come again on the next start.
    pub async fn stop(self) {
        drain((&self.directory, &self.recorder), self.events, self.commands).await;
    }
}

impl Running for ChirpStackBridge {
    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::stop(*self))
    }
}

/// Asks whether ChirpStack has a device in an application.
fn has_device(directory: &Arc<Directory>) -> HasDevice {
    let directory = directory.clone();
    Arc::new(move |application_id: &str, dev_eui: &str| {
        let (application_id, dev_eui) = (application_id.to_owned(), dev_eui.to_ascii_lowercase());
        let directory = directory.clone();
        async move { directory.has_device(&application_id, &dev_eui).await }.boxed()
    })
}

async fn drain((directory, recorder): (&Arc<Directory>, &Recorder), events: Events, commands: Option<Subscriber>) {
    // First, because the messages may take longer than the process may.
    directory.save().await;
    let commands = async {
        if let Some(commands) = commands {
            commands.drain().await;
        }
    };
    tokio::join!(events.drain(), commands);
    recorder.close().await;
    directory.save().await;
}

/// Settings and shared parts for handling events and commands.
struct Parts<'a> {
    settings: &'a ChirpStackSettings,
    group: Group,
    clock: Arc<dyn Clock>,
    directory: Arc<Directory>,
    recorder: Arc<Recorder>,
    applications: Arc<Output>,
}

impl Parts<'_> {
    fn receive_events(&self, source: EventSource, client_id: &str) -> Events {
        let uplinks = Arc::new(Uplinks {
            decoder: Decoder { directory: self.directory.clone(), clock: self.clock.clone() },
            republisher: Republisher { output: self.applications.clone(), dedup: self.dedup() },
            recorder: self.recorder.clone(),
            clock: self.clock.clone(),
        });
        Events::start(source, self.settings, (client_id, self.group), move |delivery| {
            let uplinks = uplinks.clone();
            Box::pin(async move { uplinks.handle(delivery).await })
        })
    }

    /// The subscription, and whether commands can be passed on.
    fn receive_commands(&self, commands: Commands) -> (Subscriber, watch::Receiver<bool>) {
        let ChirpStackSettings { refused_wait_ms_max, in_flight_max, .. } = *self.settings;
        let chirpstack = Output::start(commands.passed_on, String::new(), refused_wait_ms_max, in_flight_max);
        let connected = chirpstack.connected();
        let downlinks = Arc::new(Downlinks {
            directory: self.directory.clone(),
            chirpstack,
            applications: self.applications.clone(),
            recorder: self.recorder.clone(),
            dedup: self.dedup(),
            clock: self.clock.clone(),
        });
        let prefix = &self.applications.prefix;
        let subscription = subscription(self.settings, format!("{prefix}{COMMANDS}"), self.group);
        let subscriber = receive(commands.received, subscription, device(prefix.clone()), move |delivery| {
            let downlinks = downlinks.clone();
            Box::pin(async move { downlinks.handle(delivery).await })
        });
        (subscriber, connected)
    }

    fn dedup(&self) -> Dedup {
        let window = Duration::from_millis(self.settings.duplicate_window_ms);
        Dedup::new(self.settings.duplicate_messages_max, window, self.clock.clone())
    }
}
