//! Connections of a bridge to MQTT brokers.

use bridge::{Error, publish::prefix::prefix};
use link::{Remote, mqtt::Endpoint};

use crate::{
    application::{Application, topic::Topic},
    settings::ThingsStackSettings,
};

/// The broker for decoded messages and downlinks.
pub(crate) struct Output {
    pub(crate) out: Endpoint,
    pub(crate) commands: Endpoint,
    pub(crate) prefix: String,
}

impl Output {
    /// `own` is The Things Stack's MQTT server.
    pub(crate) async fn new(
        settings: &ThingsStackSettings,
        own: Option<&Endpoint>,
        client_id: &str,
    ) -> Result<Self, Error> {
        const TABLE: &str = "bridge.things_stack.to";
        if settings.to.url.is_empty() {
            let reason = "is empty: give the broker for decoded messages with --to, such as mqtt://localhost:1883";
            return Err(Error::setting(format!("{TABLE}.url"), reason));
        }
        let target = |role: &str| Endpoint::new(&settings.to, TABLE, format!("{client_id}-{role}"));
        let out = target("out")?;
        let prefix = prefix(settings.to_prefix.as_deref(), own, &out, is_received)
            .await
            .map_err(|reason| Error::setting("bridge.things_stack.to_prefix", reason))?;
        Ok(Self { out, commands: target("commands")?, prefix })
    }
}

/// Returns true if the bridge would receive what it publishes with this prefix on The Things Stack's server.
fn is_received(prefix: &str) -> bool {
    Topic::parse(&format!("{prefix}v3/a/devices/b/up"), "").is_some()
}

/// The connection of an application to The Things Stack's MQTT server.
pub(crate) fn source(
    settings: &ThingsStackSettings,
    application: &Application,
    client_id: &str,
) -> Result<Endpoint, Error> {
    let login = (application.uid.as_str(), application.key.clone());
    let client_id = format!("{client_id}-{}", application.uid);
    Ok(Endpoint::with_login(&server(settings), "bridge.things_stack.mqtt", client_id, login)?)
}

/// The MQTT server, which has the host of the API unless it is set.
fn server(settings: &ThingsStackSettings) -> Remote {
    let mut server = settings.mqtt.clone();
    if server.url.is_empty() {
        let url = &settings.api.url;
        let host = |rest: &str| {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let port = rest[..end].rfind(':').filter(|place| !rest[*place..end].contains(']'));
            rest[..port.unwrap_or(end)].to_owned()
        };
        server.url = match url.split_once("://") {
            Some(("http", rest)) => format!("mqtt://{}", host(rest)),
            Some((_, rest)) => format!("mqtts://{}", host(rest)),
            None => String::new(),
        };
        if server.ca_certificate.is_none() && server.url.starts_with("mqtts") {
            server.ca_certificate.clone_from(&settings.api.ca_certificate);
        }
    }
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mqtt_server_has_the_host_of_the_api() {
        for (api, expected) in [
            ("https://eu1.cloud.thethings.network", "mqtts://eu1.cloud.thethings.network"),
            ("https://stack.example:8443/", "mqtts://stack.example"),
            ("http://localhost:1885", "mqtt://localhost"),
            ("http://[::1]:1885", "mqtt://[::1]"),
            ("http://[::1]", "mqtt://[::1]"),
        ] {
            let mut settings = ThingsStackSettings::default();
            settings.api.url = api.to_owned();
            assert_eq!(server(&settings).url, expected);
            settings.mqtt.url = "mqtt://other:1884".to_owned();
            assert_eq!(server(&settings).url, "mqtt://other:1884");
        }
    }
}
