//! Addresses in announcements, validated before any client is sent to them.

use serde::{Deserialize, Serialize};

use crate::{Error, error::Result};

/// Maximum number of addresses of one gRPC API.
const ADDRESSES_MAX: usize = 8;
/// Maximum length of a host name, in characters.
const HOST_LENGTH_MAX: usize = 253;
/// Maximum length of one label of a host name, in characters.
const LABEL_LENGTH_MAX: usize = 63;

/// A valid address; empty if none was announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Address(String);

struct Form {
    what: &'static str,
    schemes: &'static [&'static str],
    scheme_required: bool,
    port_required: bool,
    expected: &'static str,
}

const NET: Form = Form {
    what: "NetAddress",
    schemes: &[],
    scheme_required: false,
    port_required: true,
    expected: "host:port, several separated by commas",
};
const API: Form = Form {
    what: "ApiAddress",
    schemes: &["http", "https"],
    scheme_required: true,
    port_required: false,
    expected: "http(s)://host(:port)",
};
const MQTT: Form = Form {
    what: "MqttAddress",
    schemes: &["mqtt", "mqtts"],
    scheme_required: false,
    port_required: false,
    expected: "(mqtt(s)://)host(:port)",
};
const AMQP: Form = Form {
    what: "AmqpAddress",
    schemes: &["amqp", "amqps"],
    scheme_required: false,
    port_required: false,
    expected: "(amqp(s)://)host(:port)",
};

impl Address {
    /// Parses addresses of a gRPC API: `host:port[,host:port]`.
    pub(crate) fn net(text: &str) -> Result<Self> {
        match text.split(',').count() {
            0..=ADDRESSES_MAX => {
                let parts: Result<Vec<_>> = text.split(',').map(|part| NET.parse(part.trim())).collect();
                Ok(Self(if text.is_empty() { String::new() } else { parts?.join(",") }))
            }
            _ => Err(Error::invalid(NET.what, format!("must be at most {ADDRESSES_MAX} addresses"))),
        }
    }

    /// Parses the address of an HTTP API: `http(s)://host(:port)`. A trailing slash is dropped.
    pub(crate) fn api(text: &str) -> Result<Self> {
        API.optional(text.strip_suffix('/').unwrap_or(text))
    }

    /// Parses the address of an MQTT broker: `(mqtt(s)://)host(:port)`.
    pub(crate) fn mqtt(text: &str) -> Result<Self> {
        MQTT.optional(text)
    }

    /// Parses the address of an AMQP broker: `(amqp(s)://)host(:port)`.
    pub(crate) fn amqp(text: &str) -> Result<Self> {
        AMQP.optional(text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0
    }
}

impl Form {
    fn optional(&self, text: &str) -> Result<Address> {
        if text.is_empty() { Ok(Address::default()) } else { self.parse(text).map(Address) }
    }

    /// Returns the address in lowercase, as it is stored.
    fn parse(&self, text: &str) -> Result<String> {
        let address = text.to_ascii_lowercase();
        let rest = match address.split_once("://") {
            Some((scheme, rest)) if self.schemes.contains(&scheme) => Some(rest),
            Some(_) => None,
            None => (!self.scheme_required).then_some(address.as_str()),
        };
        match rest {
            Some(rest) if is_host(rest, self.port_required) => Ok(address),
            _ => Err(Error::invalid(self.what, format!("must be {}", self.expected))),
        }
    }
}

/// Returns true if a text is `host(:port)`, where the host is a name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(text: &str, port_required: bool) -> bool {
    let end = if text.starts_with('[') { text.find(']').map(|at| at + 1) } else { text.find(':') };
    let (host, port) = text.split_at(end.unwrap_or(text.len()));
    let port = match port.strip_prefix(':') {
        Some(port) => is_port(port),
        None => port.is_empty() && !port_required,
    };
    port && (is_name(host) || is_ipv6(host))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Returns true if a text consists of labels of letters, digits, dashes and underscores; IPv4 addresses qualify too.
fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        plain && (1..=LABEL_LENGTH_MAX).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= HOST_LENGTH_MAX && text.split('.').all(label)
}

fn is_ipv6(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    inner.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parse = fn(&str) -> Result<Address>;

    #[track_caller]
    fn kept(parse: Parse, given: &str, expected: &str) {
        assert_eq!(String::from(parse(given).unwrap()), expected, "{given}");
    }

    #[track_caller]
    fn refused(parse: Parse, texts: &[&str]) {
        for text in texts {
            let error = parse(text).map(String::from).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{text}: {error}");
        }
    }

    // Conformance: Announcement: every field, and every form of address
    #[test]
    fn accepts_every_form_of_address() {
        kept(Address::net, "handler.example.com:1904", "handler.example.com:1904");
        kept(Address::net, "127.0.0.1:1904, [::1]:1904", "127.0.0.1:1904,[::1]:1904");
        kept(Address::api, "https://Handler.example.com:8084/", "https://handler.example.com:8084");
        kept(Address::api, "http://localhost", "http://localhost");
        kept(Address::mqtt, "127.0.0.1:1883", "127.0.0.1:1883");
        kept(Address::mqtt, "mqtts://my_broker", "mqtts://my_broker");
        kept(Address::amqp, "amqp://[2001:db8::1]:5672", "amqp://[2001:db8::1]:5672");
        for parse in [Address::net, Address::api, Address::mqtt, Address::amqp] as [Parse; 4] {
            kept(parse, "", "");
        }
    }

    #[test]
    fn a_grpc_address_needs_a_port_and_no_scheme() {
        refused(Address::net, &["localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:+1", ":1904"]);
        refused(Address::net, &["http://localhost:1", "a:1,", "a:1;b:2", "::1:1904", "[::1]1904", "[::g]:1"]);
        refused(Address::net, &["a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1"]);
    }

    #[test]
    fn refuses_whatever_is_not_just_a_host() {
        let hostile = ["javascript:alert(1)", "file:///etc/passwd", "http://a b", "http://a\r\nx: y", "http://u:p@a"];
        refused(Address::api, &hostile);
        refused(Address::api, &["localhost:8084", "http://a/b", "http://a?b", "http://a#b", "http://", "http://-a"]);
        refused(Address::mqtt, &["http://a", "mqtt://", "a/b", "mqtt:a", "tcp://a:1883", "a..b", "\u{e4}.com"]);
        refused(Address::amqp, &["mqtt://a", &"a".repeat(64)]);
    }
}
