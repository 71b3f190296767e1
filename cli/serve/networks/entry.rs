//! The network of an entry of `[[bridge]]`, whichever it is.

use std::sync::Arc;

use bridge::{Environment, Error, Network, Observation, Route, Running};
use chirpstack::{ChirpStackNetwork, ChirpStackSettings, ChirpStackShadow};
use client::without_credentials;
use server::audit::visible;
use sha2::{Digest as _, Sha256};
use things_stack::{ThingsStackNetwork, ThingsStackSettings, ThingsStackShadow, WebhookListener};

use super::watched::NetworkDescription;
use crate::settings::NetworkSettings;

/// Maximum length of a name that the settings give.
const NAME_CHARS_MAX: usize = 64;
/// Maximum length of the part of a file's name that an address makes. File systems allow 255 bytes in all.
const NAME_BYTES_MAX: usize = 128;
/// Number of bytes of the hash of a longer address in the name.
const HASH_BYTES: usize = 8;

/// A network that was started.
pub(super) struct StartedNetwork {
    /// Its connections.
    pub(super) network: Arc<dyn Network>,
    /// Listener for its messages, if it sends them itself.
    pub(super) webhook: Option<WebhookListener>,
}

/// The network that an entry names.
#[derive(Clone, Copy)]
enum NamedNetwork<'a> {
    ChirpStack(&'a ChirpStackSettings),
    ThingsStack(&'a ThingsStackSettings),
}

impl NetworkSettings {
    /// Checks the settings, and connects in the background, however long the network is away.
    pub(super) fn start(&self, routes: Vec<Route>, environment: &Environment) -> Result<StartedNetwork, Error> {
        self.try_start(routes, environment).map_err(Error::in_entry)
    }

    fn try_start(&self, routes: Vec<Route>, environment: &Environment) -> Result<StartedNetwork, Error> {
        Ok(match self.named()? {
            NamedNetwork::ChirpStack(settings) => {
                let network = Arc::new(ChirpStackNetwork::start(settings, routes, environment)?);
                StartedNetwork { network, webhook: None }
            }
            NamedNetwork::ThingsStack(settings) => {
                let network = Arc::new(ThingsStackNetwork::start(settings, routes, environment)?);
                StartedNetwork { webhook: network.webhook().cloned(), network }
            }
        })
    }

    /// Checks the settings and the API, and connects in the background to compare results, which `observe` gets. It must
    /// not block.
    pub(super) async fn start_shadow(
        &self,
        environment: Environment,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Box<dyn Running>, Error> {
        let started = self.try_start_shadow(environment, observe).await;
        started.map_err(Error::in_entry)
    }

    async fn try_start_shadow(
        &self,
        environment: Environment,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Box<dyn Running>, Error> {
        Ok(match self.named()? {
            NamedNetwork::ChirpStack(settings) => {
                Box::new(ChirpStackShadow::start(settings, environment, observe).await?)
            }
            NamedNetwork::ThingsStack(settings) => {
                Box::new(ThingsStackShadow::start(settings, environment, observe).await?)
            }
        })
    }

    /// Returns true if two entries lead to the same events, as far as names and addresses tell.
    pub(super) async fn is_same_source(&self, other: &Self) -> Result<bool, Error> {
        Ok(match (self.named()?, other.named()?) {
            (NamedNetwork::ChirpStack(one), NamedNetwork::ChirpStack(other)) => {
                ChirpStackNetwork::is_same_source(one, other).await
            }
            (NamedNetwork::ThingsStack(one), NamedNetwork::ThingsStack(other)) => {
                origin(&one.api.url) == origin(&other.api.url)
            }
            _ => false,
        })
    }

    /// Returns the name that people know the network by: that of the settings, or its product and the address that its
    /// events come from.
    pub(in crate::serve) fn name(&self) -> Result<String, Error> {
        let named = self.named()?;
        let Some(name) = &self.name else {
            let (url, prefix) = named.source();
            let url = without_secrets(url);
            let address = url.split_once("://").map_or(&*url, |(_, address)| address).trim_end_matches('/');
            let place = if address.is_empty() { String::new() } else { format!(" at {address}") };
            let prefix = if prefix.is_empty() { String::new() } else { format!(", {prefix}") };
            return Ok(format!("{}{place}{prefix}", named.product()));
        };
        let is_readable = name.trim() == name && visible(name) == name.as_str();
        if !is_readable || !(1..=NAME_CHARS_MAX).contains(&name.chars().count()) {
            let reason = format!("must have 1 to {NAME_CHARS_MAX} visible characters");
            return Err(Error::setting("bridge.name", reason));
        }
        Ok(name.clone())
    }

    /// Names what is kept of the network on disk: the same as long as its address is written in the same way.
    pub(super) fn directory(&self) -> Result<String, Error> {
        let named = self.named()?;
        let network = match named {
            NamedNetwork::ChirpStack(_) => "chirpstack",
            NamedNetwork::ThingsStack(_) => "things-stack",
        };
        let (url, prefix) = named.source();
        // A URL with a password is refused later; by then the directory is there.
        Ok(format!("{network}-{}", file_name(&format!("{}{prefix}", without_credentials(url)))))
    }

    /// Describes the network for its operators.
    pub(super) fn description(&self) -> Result<NetworkDescription, Error> {
        let named = self.named()?;
        let (mut addresses, no_downlinks) = match named {
            NamedNetwork::ChirpStack(ChirpStackSettings { mqtt, redis, grpc, .. }) => {
                let events =
                    if redis.url.is_empty() { ("events", &mqtt.url) } else { ("stream of events", &redis.url) };
                let no_downlinks = grpc.url.is_empty().then_some("set chirpstack.grpc.url");
                (vec![events, ("API", &grpc.url)], no_downlinks)
            }
            NamedNetwork::ThingsStack(ThingsStackSettings { api, mqtt, webhook, .. }) => {
                let messages = match webhook.listen.is_empty() {
                    true => ("messages", &mqtt.url),
                    false => ("webhook, received at", &webhook.listen),
                };
                (vec![messages, ("API", &api.url)], None)
            }
        };
        addresses.retain(|(_, url)| !url.is_empty());
        let addresses = addresses.into_iter().map(|(role, url)| (role, without_secrets(url))).collect();
        Ok(NetworkDescription { kind: named.product(), addresses, no_downlinks })
    }

    fn named(&self) -> Result<NamedNetwork<'_>, Error> {
        match (&self.chirpstack, &self.things_stack) {
            (Some(settings), None) => Ok(NamedNetwork::ChirpStack(settings)),
            (None, Some(settings)) => Ok(NamedNetwork::ThingsStack(settings)),
            (None, None) => Err(Error::setting("bridge", "names no network: set `chirpstack` or `things_stack`")),
            (Some(_), Some(_)) => {
                Err(Error::setting("bridge", "names two networks: give each a `[[bridge]]` of its own"))
            }
        }
    }
}

impl<'a> NamedNetwork<'a> {
    /// The name of the product.
    fn product(self) -> &'static str {
        match self {
            Self::ChirpStack(_) => "ChirpStack",
            Self::ThingsStack(_) => "The Things Stack",
        }
    }

    /// The URL that its events come from, and the prefix of their key if that is a Redis; of The Things Stack, the URL of
    /// the cluster.
    fn source(self) -> (&'a str, &'a str) {
        match self {
            Self::ChirpStack(ChirpStackSettings { mqtt, redis, .. }) if redis.url.is_empty() => (&mqtt.url, ""),
            Self::ChirpStack(ChirpStackSettings { redis, .. }) => (&redis.url, &redis.key_prefix),
            Self::ThingsStack(settings) => (&settings.api.url, ""),
        }
    }
}

/// A text as a part of a file's name. The end of a long one is replaced by its hash.
fn file_name(text: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let mut name: String = text.chars().map(safe).collect();
    if name.len() > NAME_BYTES_MAX {
        name.truncate(NAME_BYTES_MAX - 2 * HASH_BYTES);
        name.push_str(&hex::encode(&Sha256::digest(text)[..HASH_BYTES]));
    }
    name
}

/// A URL for people, without user, password and query.
pub(super) fn without_secrets(url: &str) -> String {
    let (before, address) = url.rsplit_once('@').unwrap_or(("", url));
    // Either the password has such a character, or the query has an @: nobody knows where the address is.
    let address = if before.contains(['?', '#']) { "" } else { address.split(['?', '#']).next().unwrap_or_default() };
    before.split_once("://").map_or_else(String::new, |(scheme, _)| format!("{scheme}://")) + address
}

/// A URL as it is compared with others.
fn origin(url: &str) -> String {
    url.trim_end_matches('/').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use bridge::Remote;
    use things_stack::ApiSettings;

    use super::*;

    #[test]
    fn a_description_has_addresses_without_secrets() {
        let chirpstack = ChirpStackSettings::default();
        let mqtt = Remote { url: "mqtt://user:p@ss@broker:1883?key=secret".to_owned(), ..chirpstack.mqtt.clone() };
        let settings = NetworkSettings {
            chirpstack: Some(ChirpStackSettings { mqtt, ..chirpstack }),
            ..NetworkSettings::default()
        };
        let description = settings.description().unwrap();
        assert_eq!(description.addresses, [("events", "mqtt://broker:1883".to_owned())]);
        assert_eq!((description.kind, description.no_downlinks), ("ChirpStack", Some("set chirpstack.grpc.url")));
        assert_eq!(
            ["localhost", "me@localhost", "http://a/b", "mqtt://me:p#ss@host", "http://a/?key=p@ss"]
                .map(without_secrets),
            ["localhost", "localhost", "http://a/b", "mqtt://", "http://"]
        );
    }

    #[test]
    fn a_network_has_the_name_of_its_settings_or_that_of_product_and_address() {
        let of = |url: &str, prefix: &str| {
            let mut chirpstack = ChirpStackSettings::default();
            match url.starts_with("redis") {
                true => (chirpstack.redis.url, chirpstack.redis.key_prefix) = (url.to_owned(), prefix.to_owned()),
                false => chirpstack.mqtt.url = url.to_owned(),
            }
            NetworkSettings { chirpstack: Some(chirpstack), ..NetworkSettings::default() }
        };
        let broker = of("mqtt://me:hush@broker:1883/?key=hush", "");
        assert_eq!(broker.name().unwrap(), "ChirpStack at broker:1883");
        assert_eq!(of("redis://cache:6379/1", "eu868:").name().unwrap(), "ChirpStack at cache:6379/1, eu868:");
        let things_stack = ThingsStackSettings {
            api: ApiSettings { url: "https://eu1.example.com/".to_owned(), ..ApiSettings::default() },
            ..ThingsStackSettings::default()
        };
        let cluster = NetworkSettings { things_stack: Some(things_stack), ..NetworkSettings::default() };
        assert_eq!(cluster.name().unwrap(), "The Things Stack at eu1.example.com");

        let named = |name: &str| NetworkSettings { name: Some(name.to_owned()), ..broker.clone() };
        assert_eq!(named("North, 2nd floor").name().unwrap(), "North, 2nd floor");
        for refused in ["", " north", "a\u{202e}b", "a\nb", &"n".repeat(NAME_CHARS_MAX + 1)] {
            let error = named(refused).name().unwrap_err();
            assert_eq!(error.as_setting().map(|(name, _)| name), Some("bridge.name"), "{refused:?}");
        }
        assert_eq!(named("north").directory().unwrap(), broker.directory().unwrap(), "files keep their names");
    }

    #[test]
    fn a_name_fits_a_file_system_and_stays_what_it_was() {
        assert_eq!(file_name("mqtt://broker.example:1883"), "mqtt---broker.example-1883");
        let [one, other] = ["a", "b"].map(|end| format!("mqtt://{}{end}", "host.".repeat(60)));
        let names = [&one, &other].map(|address| file_name(address));
        assert_ne!(names[0], names[1]);
        assert_eq!(names[0], file_name(&one));
        assert!(names.iter().all(|name| name.len() == NAME_BYTES_MAX), "{names:?}");
    }
}
