//! URLs of MQTT brokers.

use std::fmt;

const PORT: u16 = 1883;
const TLS_PORT: u16 = 8883;

/// Address of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerUrl {
    /// A name or an address, an IPv6 one without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// True if the connection is encrypted.
    pub is_tls: bool,
}

impl BrokerUrl {
    /// Parses `mqtt://host(:port)` or `mqtts://host(:port)`, and the same with the schemes of ChirpStack, `tcp` and
    /// `ssl`. The error says what is wrong, without repeating the URL, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("must be like mqtt://host:1883")?;
        let is_tls = match scheme {
            "mqtt" | "tcp" => false,
            "mqtts" | "ssl" | "tls" => true,
            _ => return Err("must start with mqtt:// or mqtts://"),
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains('@') {
            return Err("must not contain a user: set `username` and `password_file`");
        }
        let default = if is_tls { TLS_PORT } else { PORT };
        let (host, port) =
            split_port(rest, default).ok_or("must end with a host and a port, as in mqtt://host:1883")?;
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
        if is_host { Ok(Self { host, port, is_tls }) } else { Err("must be like mqtt://host:1883, without a path") }
    }
}

fn split_port(rest: &str, default: u16) -> Option<(String, u16)> {
    if let Some((host, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = if after.is_empty() { default } else { after.strip_prefix(':')?.parse().ok()? };
        return Some((host.to_owned(), port));
    }
    match rest.split_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None => Some((rest.to_owned(), default)),
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, Self { host, port, .. }) = (if self.is_tls { "mqtts" } else { "mqtt" }, self);
        if host.contains(':') {
            write!(out, "{scheme}://[{host}]:{port}")
        } else {
            write!(out, "{scheme}://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_urls_that_people_write() {
        for (text, expected) in [
            ("mqtt://localhost", "mqtt://localhost:1883"),
            ("mqtts://broker.example", "mqtts://broker.example:8883"),
            ("tcp://127.0.0.1:1884/", "mqtt://127.0.0.1:1884"),
            ("ssl://broker:443", "mqtts://broker:443"),
            ("mqtt://[::1]:1884", "mqtt://[::1]:1884"),
        ] {
            assert_eq!(BrokerUrl::parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn an_ipv6_address_has_no_brackets_where_names_are_looked_up() {
        for text in ["mqtt://[::1]:1884", "mqtts://[::1]"] {
            assert_eq!(BrokerUrl::parse(text).unwrap().host, "::1", "{text}");
        }
    }

    #[test]
    fn rejects_everything_else_without_repeating_it() {
        for text in [
            "",
            "localhost:1883",
            "http://localhost",
            "mqtt://",
            "mqtt://:1883",
            "mqtt://localhost:port",
            "mqtt://localhost/x",
            "mqtt://me:hush@localhost",
            "mqtt://[::1",
        ] {
            let reason = BrokerUrl::parse(text).unwrap_err();
            assert!(!reason.contains("hush"), "{reason}");
        }
    }
}
