//! Which brokers a bridge connects to, and how loops are ruled out.

use tokio::net::lookup_host;

use super::{settings::ChirpStackSettings, topic::Topic};
use crate::{
    Error,
    mqtt::{Endpoint, MqttSettings},
    redis::Node,
};

/// What precedes topics that are published on the broker that the events come from.
const SAME_BROKER_PREFIX: &str = "airlock/";

/// Where events and commands come from, and go to.
pub(super) struct Brokers {
    pub(super) events: Source,
    pub(super) out: Endpoint,
    /// Without a broker of ChirpStack there is nowhere to pass commands on to.
    pub(super) commands: Option<Commands>,
    pub(super) prefix: String,
}

/// Where events come from.
pub(super) enum Source {
    Mqtt(Endpoint),
    Redis(Node),
}

/// Where commands come from, and go to.
pub(super) struct Commands {
    pub(super) received: Endpoint,
    pub(super) passed_on: Endpoint,
}

impl Brokers {
    pub(super) async fn new(settings: &ChirpStackSettings, client_id: &str) -> Result<Self, Error> {
        let to = if settings.to.url.is_empty() { &settings.mqtt } else { &settings.to };
        check_output(settings, to)?;
        let target = |role: &str| Endpoint::new(to, "bridge.chirpstack.to", format!("{client_id}-{role}"));
        // ChirpStack's own broker, which is optional beside its Redis.
        let is_without_broker = settings.mqtt.url.is_empty() && !settings.redis.url.is_empty();
        let own = (!is_without_broker).then(|| source(settings, client_id, "events")).transpose()?;
        let out = target("out")?;
        let is_same = match &own {
            Some(own) => is_same_broker(own, &out).await,
            None => false,
        };
        let default = if is_same { SAME_BROKER_PREFIX } else { "" };
        let prefix = settings.to_prefix.clone().unwrap_or_else(|| default.to_owned());
        check_prefix(&prefix, is_same)?;
        let commands = match &own {
            Some(_) => {
                Some(Commands { received: target("commands")?, passed_on: source(settings, client_id, "down")? })
            }
            None => None,
        };
        let events = match own {
            Some(own) if settings.redis.url.is_empty() => Source::Mqtt(own),
            _ => Source::Redis(Node::new(&settings.redis, "bridge.chirpstack.redis")?),
        };
        Ok(Self { events, out, commands, prefix })
    }
}

/// Refuses to read ChirpStack's Redis without a broker to publish on.
fn check_output(settings: &ChirpStackSettings, to: &MqttSettings) -> Result<(), Error> {
    if to.url.is_empty() && !settings.redis.url.is_empty() {
        let reason = "is empty: give the broker for decoded events with --to, or ChirpStack's own with --mqtt";
        return Err(Error::setting("bridge.chirpstack.to.url", reason));
    }
    Ok(())
}

/// A connection to the broker on which ChirpStack publishes events.
pub(super) fn source(settings: &ChirpStackSettings, client_id: &str, role: &str) -> Result<Endpoint, Error> {
    if settings.mqtt.url.is_empty() {
        return Err(Error::setting(
            "bridge.chirpstack.mqtt.url",
            "is empty: give the broker's URL with --mqtt, such as mqtt://localhost:1883",
        ));
    }
    Endpoint::new(&settings.mqtt, "bridge.chirpstack.mqtt", format!("{client_id}-{role}"))
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

/// Whether two URLs lead to the same broker, as far as names and addresses tell. Where they do not, duplicates are
/// still recognized, so that no message goes round twice.
async fn is_same_broker(one: &Endpoint, other: &Endpoint) -> bool {
    if one.url.port != other.url.port {
        return false;
    }
    if one.url.host.eq_ignore_ascii_case(&other.url.host) {
        return true;
    }
    let addresses = async |endpoint: &Endpoint| -> Vec<_> {
        lookup_host((endpoint.url.host.as_str(), endpoint.url.port)).await.map(Iterator::collect).unwrap_or_default()
    };
    let (one, other) = (addresses(one).await, addresses(other).await);
    one.iter().any(|address| other.contains(address))
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
