//! Checks addresses and URLs when settings are loaded, so that no service starts before one of them is found wrong.

use std::net::SocketAddr;

use server::{Error, settings::Layers};
use url::Url;

use super::Settings;

const LISTENS: &str = "must be a host and a port up to 65535, such as 127.0.0.1:8000";
const REACHES: &str = "must be a host and a port from 1 to 65535, such as 127.0.0.1:1900";

impl Settings {
    /// Returns the first setting that is not valid.
    pub(super) fn check(&self, layers: &Layers) -> Result<(), Error> {
        let (listen, broker) = (&self.listen, &self.broker);
        let telemetry = self.telemetry.listen.clone().unwrap_or_default();
        let needed = [
            ("listen.account", &listen.account),
            ("listen.discovery", &listen.discovery),
            ("listen.discovery_http", &listen.discovery_http),
            ("listen.handler", &listen.handler),
            ("listen.handler_http", &listen.handler_http),
        ];
        let optional = [
            ("broker.listen", &broker.listen),
            ("broker.tls_listen", &broker.tls_listen),
            ("broker.websocket_listen", &broker.websocket_listen),
            ("broker.websocket_tls_listen", &broker.websocket_tls_listen),
            ("telemetry.listen", &telemetry),
            ("codecs.listen", &self.codecs.listen),
            ("console.listen", &self.console.listen),
            ("external_broker.access_listen", &self.external_broker.access_listen),
        ];
        let mut checks = Vec::new();
        checks.extend(needed.map(|(key, address)| (key, LISTENS, port(address).is_some())));
        checks.extend(optional.map(|(key, address)| (key, LISTENS, address.is_empty() || port(address).is_some())));
        let reaches = |address: &str| port(address).is_some_and(|port| port > 0);
        let client = &self.client;
        checks.push(("client.discovery_address", REACHES, reaches(&client.discovery_address)));
        let rule = "must be a host, with a port if that is another than usual, such as mqtts://lora.example.com:8883";
        checks.push(("client.mqtt_address", rule, client.mqtt_address.as_deref().is_none_or(is_broker)));
        let rule = "must be a URL, such as http://127.0.0.1:8000";
        checks.push(("client.auth_server", rule, is_web(&client.auth_server)));
        let rule = "must be the name or the IPv4 address of a host, without a port, such as airlock.example.com";
        checks.push(("announce_host", rule, is_name(&self.announce_host)));
        match checks.into_iter().find(|(.., is_valid)| !is_valid) {
            Some((key, rule, _)) => Err(layers.invalid(key, rule)),
            None => Ok(()),
        }
    }
}

/// The port of `host:port`.
pub(super) fn port(address: &str) -> Option<u16> {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return Some(address.port());
    }
    let (host, port) = address.rsplit_once(':')?;
    port.parse().ok().filter(|_| is_name(host))
}

/// Returns true for addresses that the client takes: `(mqtt(s)://)host(:port)`, where the host is no address of IPv6.
fn is_broker(address: &str) -> bool {
    let address = address.strip_prefix("mqtt://").or_else(|| address.strip_prefix("mqtts://")).unwrap_or(address);
    is_name(address) || port(address).is_some_and(|port| port > 0 && !address.starts_with('['))
}

fn is_web(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A name, or an address of IPv4.
fn is_name(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|character| character.is_ascii_alphanumeric() || "-._".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error that a value of a setting causes.
    fn said(key: &str, value: &str) -> Option<String> {
        let layers = Layers::new().flag("--set", key, value);
        let settings: Settings = layers.load().unwrap();
        settings.check(&layers).err().map(|error| error.to_string())
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (key, value, is_valid) in [
            ("listen.account", "127.0.0.1:0", true),
            ("listen.account", "localhost:65535", true),
            ("listen.handler", "[::1]:80", true),
            ("listen.handler", "[fe80::1%2]:80", true),
            ("listen.account", "127.0.0.1:65536", false),
            ("listen.account", "127.0.0.1", false),
            ("listen.discovery", ":1900", false),
            ("listen.handler_http", "http://127.0.0.1:80", false),
            ("broker.tls_listen", "", true),
            ("listen.account", "", false),
            ("broker.listen", "localhost", false),
            ("telemetry.listen", "9", false),
            ("client.mqtt_address", "example.com:1883", true),
            ("client.mqtt_address", "mqtts://example.com", true),
            ("client.mqtt_address", "example.com:0", false),
            ("client.mqtt_address", "http://example.com", false),
            ("client.discovery_address", "example.com", false),
            ("client.auth_server", "https://account.example.com/path", true),
            ("client.auth_server", "account.example.com:8000", false),
            ("client.auth_server", "ftp://account.example.com", false),
            ("client.mqtt_address", "[::1]:1883", false),
            ("client.discovery_address", "[::1]:1900", true),
            ("announce_host", "192.0.2.1", true),
            ("announce_host", "::1", false),
            ("announce_host", "a b", false),
            ("announce_host", "example.com:80", false),
        ] {
            let said = said(key, value);
            assert_eq!(said.is_none(), is_valid, "{key} = {value}: {said:?}");
            let begins = format!("setting `{key}` from the flag `--set` not valid: must be ");
            assert!(said.is_none_or(|said| said.starts_with(&begins)), "{key} = {value}");
        }
    }
}
