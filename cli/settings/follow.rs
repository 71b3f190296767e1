//! Commands follow the services of the same settings: what moves these, moves those.

use std::net::SocketAddr;

use super::{ClientSettings, ListenSettings, Settings, TlsMode, check};

impl Settings {
    /// Makes commands talk to the services of these settings, except where they are told otherwise: by another value
    /// than the default, or by a variable or flag. A file may have all settings, as `airlock config print` writes them,
    /// so the default there does not count.
    pub(super) fn follow_services(&mut self, is_named: impl Fn(&str) -> bool) {
        let default = ClientSettings::default();
        let is_free = |key: &str, is_default: bool| is_default && !is_named(key);
        let (listen, listen_default) = (&self.listen, ListenSettings::default());
        if is_free("client.handler_id", self.client.handler_id == default.handler_id) {
            self.client.handler_id.clone_from(&self.handler.id);
        }
        if let ([router], None) = (&*self.account.routers, &self.client.router_id) {
            self.client.router_id = Some(router.id.clone());
        }
        if is_free("client.auth_server", self.client.auth_server == default.auth_server)
            && listen.account != listen_default.account
            && let Some(address) = self.reachable(&listen.account)
        {
            self.client.auth_server = format!("http://{address}");
        }
        if !is_free("client.discovery_address", self.client.discovery_address == default.discovery_address) {
            return;
        }
        // Only these services are known to have no TLS.
        if is_free("client.allow_insecure", !self.client.allow_insecure) {
            self.client.allow_insecure = self.tls.mode == TlsMode::Off;
        }
        if self.listen.discovery != listen_default.discovery
            && let Some(address) = self.reachable(&self.listen.discovery)
        {
            self.client.discovery_address = address;
        }
    }

    /// Returns the address at which this machine reaches a listening service; `None` if the system picks the port.
    fn reachable(&self, listen: &str) -> Option<String> {
        let port = check::port(listen).filter(|port| *port != 0)?;
        let is_any = listen.parse().is_ok_and(|address: SocketAddr| address.ip().is_unspecified());
        Some(if is_any { format!("{}:{port}", self.announce_host) } else { listen.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved() -> Settings {
        let mut settings = Settings::default();
        "0.0.0.0:9000".clone_into(&mut settings.listen.account);
        "[::1]:2900".clone_into(&mut settings.listen.discovery);
        settings.handler.id = "ttn-handler-eu".parse().unwrap();
        settings.tls.mode = TlsMode::Off;
        settings
    }

    fn seen(settings: &Settings) -> (&str, &str, &str, bool) {
        let client = &settings.client;
        (&client.auth_server, &client.discovery_address, client.handler_id.as_str(), client.allow_insecure)
    }

    #[test]
    fn commands_follow_services_that_were_moved() {
        let mut settings = Settings::default();
        settings.follow_services(|_| false);
        assert_eq!(seen(&settings), ("http://127.0.0.1:8000", "127.0.0.1:1900", "handler", false));
        let mut settings = moved();
        settings.follow_services(|_| false);
        assert_eq!(seen(&settings), ("http://127.0.0.1:9000", "[::1]:2900", "ttn-handler-eu", true));
        let mut settings = moved();
        "localhost:9000".clone_into(&mut settings.listen.account);
        settings.follow_services(|_| false);
        assert_eq!(settings.client.auth_server, "http://localhost:9000");
        let mut settings = moved();
        "127.0.0.1:0".clone_into(&mut settings.listen.account);
        settings.follow_services(|_| false);
        assert_eq!(settings.client.auth_server, "http://127.0.0.1:8000", "the port is not known");
    }

    #[test]
    fn gateways_get_the_only_router_of_the_network() {
        let router = |id: &str| account::RouterSettings {
            id: id.parse().unwrap(),
            address: "router.example.com:1901".to_owned(),
            mqtt_address: "mqtts://router.example.com:8883".to_owned(),
        };
        for (routers, named, expected) in [
            (&["router-eu"][..], None, Some("router-eu")),
            (&["router-eu"], Some("router-us"), Some("router-us")),
            (&["router-eu", "router-us"], None, None),
            (&[], None, None),
        ] {
            let mut settings = Settings::default();
            settings.account.routers = routers.iter().copied().map(router).collect();
            settings.client.router_id = named.map(|id: &str| id.parse().unwrap());
            settings.follow_services(|_| false);
            assert_eq!(settings.client.router_id.as_ref().map(types::ComponentId::as_str), expected, "{routers:?}");
        }
    }

    #[test]
    fn commands_follow_nothing_that_they_are_told() {
        let mut settings = moved();
        settings.follow_services(|key| key.starts_with("client."));
        assert_eq!(seen(&settings), ("http://127.0.0.1:8000", "127.0.0.1:1900", "handler", false));
        let mut settings = moved();
        "discovery.example.com:1900".clone_into(&mut settings.client.discovery_address);
        settings.follow_services(|_| false);
        let expected = ("http://127.0.0.1:9000", "discovery.example.com:1900", "ttn-handler-eu", false);
        assert_eq!(seen(&settings), expected, "another service may have TLS");
    }
}
