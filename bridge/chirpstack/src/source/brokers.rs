//! Connections of a bridge to brokers and streams.

use bridge::{Error, publish::prefix::prefix};
use link::{
    Remote,
    mqtt::Endpoint,
    redis::{Node, StreamTarget, is_redis},
};

use crate::{event::topic::Topic, settings::ChirpStackSettings, source::stream::KEY};

/// Prefix of the stream's key on the server that the events come from.
const SAME_SERVER_PREFIX: &str = "airlock:";

/// Sources and targets of events and commands.
pub(crate) struct Brokers {
    pub(crate) events: EventSource,
    pub(crate) out: Target,
    /// Without a broker of ChirpStack there is nowhere to pass commands on to.
    pub(crate) commands: Option<Commands>,
    pub(crate) prefix: String,
}

pub(crate) enum EventSource {
    Mqtt(Endpoint),
    Redis(Box<Node>),
}

/// Target of decoded events.
pub(crate) enum Target {
    Broker(Endpoint),
    Stream(Box<StreamTarget>),
}

/// Source and target of commands.
pub(crate) struct Commands {
    pub(crate) received: Endpoint,
    pub(crate) passed_on: Endpoint,
}

impl Brokers {
    pub(crate) async fn new(settings: &ChirpStackSettings, client_id: &str) -> Result<Self, Error> {
        if is_redis(&settings.to.url) {
            return Self::to_stream(settings, client_id);
        }
        let to = if settings.to.url.is_empty() { &settings.mqtt } else { &settings.to };
        check_output(settings, to)?;
        let target = |role: &str| Endpoint::new(to, "bridge.chirpstack.to", format!("{client_id}-{role}"));
        // ChirpStack's own broker, which is optional beside its Redis.
        let is_without_broker = settings.mqtt.url.is_empty() && !settings.redis.url.is_empty();
        let own = (!is_without_broker).then(|| source(settings, client_id, "events")).transpose()?;
        let out = target("out")?;
        let prefix = prefix(settings.to_prefix.as_deref(), own.as_ref(), &out, is_received)
            .await
            .map_err(|reason| Error::setting("bridge.chirpstack.to_prefix", reason))?;
        let commands = match &own {
            Some(_) => {
                Some(Commands { received: target("commands")?, passed_on: source(settings, client_id, "down")? })
            }
            None => None,
        };
        let events = network_source(settings, client_id)?;
        Ok(Self { events, out: Target::Broker(out), commands, prefix })
    }

    /// Events go to a stream like ChirpStack's own, from which no commands come.
    fn to_stream(settings: &ChirpStackSettings, client_id: &str) -> Result<Self, Error> {
        let events = network_source(settings, client_id)?;
        let node = Node::new(&settings.to, "bridge.chirpstack.to")?;
        let is_same = matches!(&events, EventSource::Redis(own) if own.is_same_server(&node));
        let default = if is_same { SAME_SERVER_PREFIX } else { "" };
        let prefix = settings.to_prefix.clone().unwrap_or_else(|| default.to_owned());
        if is_same && prefix == settings.redis.key_prefix {
            let reason = "must not be ChirpStack's `key_prefix` where events come from and go to the same Redis";
            return Err(Error::setting("bridge.chirpstack.to_prefix", reason));
        }
        let target = StreamTarget { node, key: format!("{prefix}{KEY}"), length_max: settings.to_history_max.max(1) };
        Ok(Self { events, out: Target::Stream(Box::new(target)), commands: None, prefix })
    }
}

/// Refuses to read ChirpStack's Redis without a broker to publish on.
fn check_output(settings: &ChirpStackSettings, to: &Remote) -> Result<(), Error> {
    if to.url.is_empty() && !settings.redis.url.is_empty() {
        let reason = "is empty: give the broker for decoded events with --to, or ChirpStack's own with --mqtt";
        return Err(Error::setting("bridge.chirpstack.to.url", reason));
    }
    Ok(())
}

/// Returns the source of events: Redis if it is set, otherwise MQTT.
pub(crate) fn network_source(settings: &ChirpStackSettings, client_id: &str) -> Result<EventSource, Error> {
    if settings.redis.url.is_empty() {
        source(settings, client_id, "events").map(EventSource::Mqtt)
    } else {
        let node = Node::of_stream(&settings.redis, "bridge.chirpstack.redis")?;
        Ok(EventSource::Redis(Box::new(node)))
    }
}

/// A connection to the broker on which ChirpStack publishes events.
pub(crate) fn source(settings: &ChirpStackSettings, client_id: &str, role: &str) -> Result<Endpoint, Error> {
    if settings.mqtt.url.is_empty() {
        let reason = "is empty: give the broker's URL, such as mqtt://localhost:1883";
        return Err(Error::flag("bridge.chirpstack.mqtt.url", reason, "--mqtt"));
    }
    Ok(Endpoint::new(&settings.mqtt, "bridge.chirpstack.mqtt", format!("{client_id}-{role}"))?)
}

/// Returns true if the bridge would receive what it publishes with this prefix on the broker of the events.
fn is_received(prefix: &str) -> bool {
    Topic::parse(&format!("{prefix}application/a/device/b/event/up"), "").is_some()
}
