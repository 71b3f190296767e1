//! Shadow mode: decodes what passes by, and compares it with what ChirpStack made of it. Publishes nothing.

mod failures;

use std::{path::PathBuf, sync::Arc};

use bridge::{
    Connections, Environment, Error, Observation, ObservedApplication, ObservedResult, Running, StateDir,
    codec::outcome::Run, metrics,
};
use client::{Trust, chirpstack::ChirpStackClient};
use futures::future::BoxFuture;
use link::{delivery::Delivery, mqtt::Endpoint, secret_file::SecretFile};
use serde::Deserialize;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use types::{Clock, Secret};

use self::failures::Failures;

use super::{
    api::{check_api, directory, directory_of},
    codec::{decoder::Decoder, directory::Directory},
    event::{UplinkEvent, incoming::in_json, topic::Topic},
    settings::ChirpStackSettings,
    source::{
        Events,
        brokers::{EventSource, network_source},
    },
};

/// Credentials that are in no file.
pub struct GivenCredentials {
    /// Authorizes calls of ChirpStack's API.
    pub api_key: Secret,
    /// User and password for the broker, if it wants them.
    pub login: Option<(String, Secret)>,
}

/// A running comparison.
pub struct ChirpStackShadow {
    directory: Arc<Directory>,
    events: Events,
    comparisons: TaskTracker,
    connections: Connections,
    _refresh: AbortOnDropHandle<()>,
    _state_dir: StateDir,
}

impl ChirpStackShadow {
    /// Checks the settings and the API, and connects to the broker or Redis in the background. `observe` must not
    /// block.
    pub async fn start(
        settings: &ChirpStackSettings,
        environment: Environment,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let source = network_source(settings, &format!("{client_id}-shadow"))?;
        let directory = directory(settings, &environment, &state_dir)?;
        Self::start_with(settings, (source, directory, state_dir), environment.clock, observe).await
    }

    /// Starts in the same way, over MQTT, with credentials that are in no file.
    pub async fn start_given(
        settings: &ChirpStackSettings,
        GivenCredentials { api_key, login }: GivenCredentials,
        environment: Environment,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = format!("{}-shadow", state_dir.client_id(environment.random.as_ref())?);
        let (mqtt, table) = (&settings.mqtt, "bridge.chirpstack.mqtt");
        let endpoint = match login {
            Some((user, password)) => {
                Endpoint::with_login(mqtt, table, client_id, (&user, SecretFile::given(password)))?
            }
            None => Endpoint::new(mqtt, table, client_id)?,
        };
        let api = ChirpStackClient::connect(&settings.grpc.url, &Trust::System, api_key)?;
        let directory = directory_of((api, PathBuf::new()), settings, &environment, state_dir.imported());
        let parts = (EventSource::Mqtt(endpoint), directory, state_dir);
        Self::start_with(settings, parts, environment.clock, observe).await
    }

    async fn start_with(
        settings: &ChirpStackSettings,
        (source, directory, state_dir): (EventSource, Directory, StateDir),
        clock: Arc<dyn Clock>,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        metrics::describe();
        let directory = Arc::new(directory);
        check_api(&directory, &settings.grpc).await?;
        let refresh = AbortOnDropHandle::new(tokio::spawn(directory.clone().run()));
        let comparisons = TaskTracker::new();
        let observer = Arc::new(Observer {
            decoder: Decoder { directory: directory.clone(), clock },
            failures: Failures::new(),
            comparisons: comparisons.clone(),
            observe: Box::new(observe),
        });
        let events = Events::watch(
            source,
            settings,
            in_json(move |delivery| {
                let observer = observer.clone();
                Box::pin(async move { observer.handle(delivery).await })
            }),
        );
        let connections = vec![("events from ChirpStack", vec![events.connection().connected()])];
        Ok(Self { directory, events, comparisons, connections, _refresh: refresh, _state_dir: state_dir })
    }

    /// Finishes the messages in progress, and stops.
    pub async fn stop(self) {
        self.events.drain().await;
        self.comparisons.close();
        self.comparisons.wait().await;
        self.directory.save().await;
    }
}

impl Running for ChirpStackShadow {
    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn failure(&self) -> Option<String> {
        self.events.connection().state().failure
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::stop(*self))
    }
}

struct Observer {
    decoder: Decoder,
    failures: Failures,
    /// Comparisons that wait for a failure, which may come after its uplink.
    comparisons: TaskTracker,
    observe: Box<dyn Fn(Observation) + Send + Sync>,
}

/// The parts of a `log` event that are read.
#[derive(Deserialize)]
struct Log {
    code: String,
    description: String,
    context: LogContext,
}

#[derive(Deserialize)]
struct LogContext {
    deduplication_id: String,
}

/// The member of `deviceInfo` that only people read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamedApplication {
    application_name: String,
}

impl Observer {
    async fn handle(self: Arc<Self>, Delivery { topic, payload, ack, .. }: Delivery) {
        if let Some(topic) = Topic::parse(&topic, "") {
            match topic.event() {
                Some("log") => self.remember(&payload),
                Some("up") => self.compare(topic, &payload).await,
                _ => {}
            }
        }
        ack.acknowledge().await;
    }

    fn remember(&self, payload: &[u8]) {
        if let Ok(log) = serde_json::from_slice::<Log>(payload)
            && log.code == "UPLINK_CODEC"
        {
            self.failures.add(log.context.deduplication_id, log.description);
        }
    }

    async fn compare(self: Arc<Self>, topic: Topic<'_>, payload: &[u8]) {
        let event = match UplinkEvent::parse(payload) {
            Ok(event) if event.is_decodable() => event,
            Ok(_) => return metrics::uplink("unchanged"),
            Err(error) => {
                tracing::warn!(%error, "an uplink cannot be decoded");
                return metrics::uplink("malformed");
            }
        };
        let mut observation = self.run(&event, topic).await;
        match (event.object(), &event.deduplication_id) {
            (Some(object), _) => observation.theirs = ObservedResult::Object(object.to_owned()),
            (None, None) => {}
            (None, Some(id)) => {
                let (id, observer) = (id.clone(), self.clone());
                self.comparisons.spawn(async move {
                    if let Some(description) = observer.failures.of(&id).await {
                        observation.theirs = ObservedResult::Failed(description);
                    }
                    (observer.observe)(observation);
                });
                return;
            }
        }
        (self.observe)(observation);
    }

    /// Runs the codec. What ChirpStack made of the uplink is left open.
    async fn run(&self, event: &UplinkEvent<'_>, topic: Topic<'_>) -> Observation {
        let mut ran = Run::default();
        let decoded = self.decoder.decode(event, topic, &mut ran).await;
        metrics::uplink(if decoded.is_ok() { "decoded" } else { "failed" });
        let id = event.device.device_profile_id.clone();
        let profile = self.decoder.directory.profile(&id).await;
        let name = profile.map(|profile| profile.name().to_owned()).unwrap_or_default();
        Observation::new(application(event, topic), (id, name), ObservedResult::Nothing, (decoded, &ran))
    }
}

fn application(event: &UplinkEvent<'_>, topic: Topic<'_>) -> ObservedApplication {
    let named = event.device_info().and_then(|info| serde_json::from_str::<NamedApplication>(info.get()).ok());
    let NamedApplication { application_name } = named.unwrap_or_default();
    ObservedApplication { id: topic.application_id.to_owned(), name: application_name }
}
