//! The network of an entry of `[[bridge]]`, whichever it is.

use std::sync::Arc;

use crate::{
    Environment, Error, Network, NetworkSettings,
    chirpstack::{ChirpStackNetwork, ChirpStackSettings},
    network::Route,
    things_stack::{ThingsStackNetwork, ThingsStackSettings},
};

/// The network that an entry names.
enum Named<'a> {
    ChirpStack(&'a ChirpStackSettings),
    ThingsStack(&'a ThingsStackSettings),
}

impl NetworkSettings {
    /// Checks the settings, and connects in the background, however long the network is away.
    pub fn start(&self, routes: Vec<Route>, environment: &Environment) -> Result<Arc<dyn Network>, Error> {
        Ok(match self.named()? {
            Named::ChirpStack(settings) => Arc::new(ChirpStackNetwork::start(settings, routes, environment)?),
            Named::ThingsStack(settings) => Arc::new(ThingsStackNetwork::start(settings, routes, environment)?),
        })
    }

    /// Whether two entries lead to the same events, as far as names and addresses tell.
    pub async fn is_same_source(&self, other: &Self) -> Result<bool, Error> {
        Ok(match (self.named()?, other.named()?) {
            (Named::ChirpStack(one), Named::ChirpStack(other)) => ChirpStackNetwork::is_same_source(one, other).await,
            (Named::ThingsStack(one), Named::ThingsStack(other)) => host(&one.api.url) == host(&other.api.url),
            _ => false,
        })
    }

    /// Names what is kept of the network on disk: the same as long as its address is written in the same way.
    pub fn name(&self) -> Result<String, Error> {
        let (network, url, prefix) = match self.named()? {
            Named::ChirpStack(ChirpStackSettings { mqtt, redis, .. }) if redis.url.is_empty() => {
                ("chirpstack", mqtt.url.as_str(), "")
            }
            Named::ChirpStack(ChirpStackSettings { redis, .. }) => {
                ("chirpstack", redis.url.as_str(), redis.key_prefix.as_str())
            }
            Named::ThingsStack(settings) => ("things-stack", settings.api.url.as_str(), ""),
        };
        // A URL with a password is refused later; by then the directory is there.
        let url = url.rsplit_once('@').map_or(url, |(_, address)| address);
        let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        Ok(format!("{network}-{}", url.chars().chain(prefix.chars()).map(safe).collect::<String>()))
    }

    fn named(&self) -> Result<Named<'_>, Error> {
        match (&self.chirpstack, &self.things_stack) {
            (Some(settings), None) => Ok(Named::ChirpStack(settings)),
            (None, Some(settings)) => Ok(Named::ThingsStack(settings)),
            (None, None) => Err(Error::setting("bridge", "names no network: set `chirpstack` or `things_stack`")),
            (Some(_), Some(_)) => {
                Err(Error::setting("bridge", "names two networks: give each a `[[bridge]]` of its own"))
            }
        }
    }
}

fn host(url: &str) -> String {
    url.trim_end_matches('/').to_ascii_lowercase()
}
