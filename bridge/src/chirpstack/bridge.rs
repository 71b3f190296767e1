//! Starts and stops the parts of the bridge.

use std::{path::PathBuf, sync::Arc, time::Duration};

use client::{Trust, chirpstack::ChirpStackClient};
use runtime::Pool;
use server::telemetry::Health;
use tokio::{net::lookup_host, sync::watch};
use tokio_util::task::AbortOnDropHandle;
use types::{Clock, Kind, Kinded, Random};

use super::{
    decoder::Decoder,
    directory::{Codecs, Directory, DirectoryLimits},
    downlink::Downlinks,
    output::Output,
    settings::{ChirpStackSettings, GrpcSettings},
    state_dir::StateDir,
    topic::{COMMANDS, EVENTS, Topic},
    uplink::Uplinks,
};
use crate::{
    Error,
    dedup::Dedup,
    lanes::Lanes,
    metrics,
    mqtt::{Delivery, Endpoint, Publisher, Subscriber, Subscription, read, read_secret},
};

/// The name under which several bridges share the messages of a broker.
const GROUP: &str = "airlock";

/// What precedes topics that are published on the broker that the events come from.
const SAME_BROKER_PREFIX: &str = "airlock/";

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
        let applications =
            Arc::new(Output { publisher: Publisher::start(brokers.out), prefix: brokers.prefix.clone() });
        let chirpstack = Output { publisher: Publisher::start(brokers.commands_out), prefix: String::new() };
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
            group: settings.shared_subscription.then_some(GROUP),
            in_flight_max: settings.in_flight_max.max(1),
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
        for (name, connected) in &self.connected {
            let connected = connected.clone();
            health.add(name, move || {
                let is_connected = *connected.borrow();
                async move { if is_connected { Ok(()) } else { Err("not connected to the MQTT broker".to_owned()) } }
            });
        }
    }

    /// Finishes the messages in progress, and stops. Those that are not finished come again on the next start.
    pub async fn stop(self) {
        tokio::join!(self.events.drain(), self.commands.drain());
        self.directory.save().await;
    }
}

/// The four connections.
struct Brokers {
    events: Endpoint,
    out: Endpoint,
    commands: Endpoint,
    commands_out: Endpoint,
    prefix: String,
}

impl Brokers {
    async fn new(settings: &ChirpStackSettings, client_id: &str) -> Result<Self, Error> {
        if settings.mqtt.url.is_empty() {
            return Err(Error::setting(
                "bridge.chirpstack.mqtt.url",
                "is empty: give the broker's URL with --mqtt, such as mqtt://localhost:1883",
            ));
        }
        let to = if settings.to.url.is_empty() { &settings.mqtt } else { &settings.to };
        let source =
            |role: &str| Endpoint::new(&settings.mqtt, "bridge.chirpstack.mqtt", format!("{client_id}-{role}"));
        let target = |role: &str| Endpoint::new(to, "bridge.chirpstack.to", format!("{client_id}-{role}"));
        let (events, out) = (source("events")?, target("out")?);
        let is_same = is_same_broker(&events, &out).await;
        let default = if is_same { SAME_BROKER_PREFIX } else { "" };
        let prefix = settings.to_prefix.clone().unwrap_or_else(|| default.to_owned());
        check_prefix(&prefix, is_same)?;
        Ok(Self { events, out, commands: target("commands")?, commands_out: source("down")?, prefix })
    }
}

/// Refuses a prefix with which the bridge would receive what it publishes.
fn check_prefix(prefix: &str, is_same_broker: bool) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::setting("bridge.chirpstack.to_prefix", reason));
    if prefix.contains(['+', '#', '\0']) || prefix.starts_with('$') {
        return refused("must not contain `+` or `#`, or start with `$`");
    }
    let receives_itself = Topic::parse(&format!("{prefix}application/a/device/b/event/up"), "").is_some();
    if is_same_broker && receives_itself {
        return refused("must not be empty where events come from and go to the same broker, as in `airlock/`");
    }
    Ok(())
}

/// Whether two URLs lead to the same broker, as far as names and addresses tell. Where they do not, duplicates are still
/// recognised, so that no message goes round twice.
async fn is_same_broker(one: &Endpoint, other: &Endpoint) -> bool {
    if one.url.port != other.url.port {
        return false;
    }
    if one.url.host.eq_ignore_ascii_case(&other.url.host) {
        return true;
    }
    let addresses = async |endpoint: &Endpoint| -> Vec<_> {
        let host = endpoint.url.host.trim_matches(['[', ']']).to_owned();
        lookup_host((host, endpoint.url.port)).await.map(Iterator::collect).unwrap_or_default()
    };
    let (one, other) = (addresses(one).await, addresses(other).await);
    one.iter().any(|address| other.contains(address))
}

fn directory(
    settings: &ChirpStackSettings,
    environment: &Environment,
    state_dir: &StateDir,
) -> Result<Directory, Error> {
    let api = api(&settings.grpc)?;
    let codecs = Codecs {
        pool: environment.pool.clone(),
        wait_max: Duration::from_millis(settings.sandbox_wait_ms_max),
        kept_scripts: settings.kept_scripts,
    };
    let limits = DirectoryLimits {
        profiles_max: settings.profiles_max,
        devices_max: settings.devices_max,
        wait_max: Duration::from_millis(settings.api_wait_ms_max),
        refresh_interval: Duration::from_millis(settings.refresh_interval_ms.max(1)),
    };
    Ok(Directory::open(api, codecs, &limits, state_dir.imported()))
}

fn api(settings: &GrpcSettings) -> Result<ChirpStackClient, Error> {
    let missing = |name: &str, reason: &str| Error::setting(format!("bridge.chirpstack.grpc.{name}"), reason);
    if settings.url.is_empty() {
        return Err(missing("url", "is empty: give the URL of ChirpStack with --grpc, such as http://localhost:8080"));
    }
    let token_file = settings.token_file.as_deref().ok_or_else(|| {
        missing("token_file", "is not set: create an API key in ChirpStack, and give its file with --token-file")
    })?;
    let trust = match &settings.ca_certificate {
        Some(path) => Trust::Certificate(read(path)?),
        None => Trust::System,
    };
    Ok(ChirpStackClient::connect(&settings.url, &trust, read_secret(token_file)?)?)
}

/// Fails if the API can never be used, or cannot be used now and nothing is known from before.
async fn check_api(directory: &Directory, settings: &GrpcSettings) -> Result<(), Error> {
    let Err(source) = directory.check().await else { return Ok(()) };
    let (url, token_file) = (&settings.url, settings.token_file.as_deref().map(|path| path.display().to_string()));
    let advice = match source.kind() {
        Kind::Unauthenticated | Kind::Denied => {
            let file = token_file.unwrap_or_default();
            format!("it does not accept the API key in `{file}`; create one in ChirpStack under `API keys`")
        }
        Kind::Unsupported => format!("{url} is not a ChirpStack 4 server; its API has the port of its web site"),
        _ if directory.is_empty() => format!("start ChirpStack, or correct its URL, {url}"),
        _ => {
            tracing::warn!(url, error = &source as &dyn std::error::Error, "starting with the codecs on disk");
            return Ok(());
        }
    };
    Err(Error::Api { advice, source })
}

/// Receives messages, and works on those of one device one after the other.
fn receive(
    endpoint: Endpoint,
    subscription: Subscription,
    prefix: String,
    work: impl Fn(Delivery) -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Subscriber {
    let lanes = Lanes::new(Arc::new(work));
    Subscriber::start(endpoint, subscription, move |delivery| {
        let device = Topic::parse(&delivery.topic, &prefix).map_or_else(String::new, |topic| topic.dev_eui.to_owned());
        lanes.add(&device, delivery);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_prefixes_that_would_make_a_loop() {
        for (prefix, is_same, fits) in [
            ("", false, true),
            ("", true, false),
            ("airlock/", true, true),
            ("airlock", true, true),
            ("a/+/", false, false),
            ("$SYS/", false, false),
        ] {
            assert_eq!(check_prefix(prefix, is_same).is_ok(), fits, "{prefix}");
        }
    }
}
