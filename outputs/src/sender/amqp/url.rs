//! URLs of AMQP brokers.

use percent_encoding::percent_decode_str;

const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;
const FORM: &str = "must be like amqp://host:5672, or amqps:// for TLS";
/// Maximum length of the name of a virtual host in the protocol, in bytes.
const VIRTUAL_HOST_BYTES_MAX: usize = 255;

/// Address of a broker, with its virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AmqpUrl {
    /// A name or an address, an IPv6 one without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    pub(super) virtual_host: String,
}

impl AmqpUrl {
    /// Parses `amqp://host:port/vhost`. The error does not repeat the URL, which may hold a password.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let is_tls = match scheme {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(FORM),
        };
        if rest.contains('@') {
            return Err("must not contain a user: set `username` and `password_file`");
        }
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = host_and_port(address, if is_tls { TLS_PORT } else { PORT }).ok_or(FORM)?;
        if path.contains(['/', '?', '#']) {
            return Err("must have nothing after the virtual host, whose `/` is written %2F");
        }
        let path = percent_decode_str(path).decode_utf8().map_err(|_| "must have a virtual host in UTF-8")?;
        if path.len() > VIRTUAL_HOST_BYTES_MAX {
            return Err("must have a virtual host of at most 255 bytes");
        }
        let virtual_host = if path.is_empty() { "/" } else { &*path };
        Ok(Self { host, port, is_tls, virtual_host: virtual_host.to_owned() })
    }
}

fn host_and_port(address: &str, default: u16) -> Option<(String, u16)> {
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, after)) => (host, Some(after.strip_prefix(':')?)),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port.map_or(Some(default), |port| port.parse().ok())?;
    let is_host = !host.is_empty() && !host.contains(['?', '#', ' ']);
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_urls_that_people_write() {
        for (text, (host, port, is_tls, virtual_host)) in [
            ("amqp://localhost", ("localhost", 5672, false, "/")),
            ("amqps://broker.example/", ("broker.example", 5671, true, "/")),
            ("amqp://127.0.0.1:5673/lora", ("127.0.0.1", 5673, false, "lora")),
            ("amqp://[::1]:5673/%2Flora", ("::1", 5673, false, "/lora")),
            ("amqps://[::1]", ("::1", 5671, true, "/")),
        ] {
            let (host, virtual_host) = (host.to_owned(), virtual_host.to_owned());
            assert_eq!(AmqpUrl::parse(text), Ok(AmqpUrl { host, port, is_tls, virtual_host }), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else_without_repeating_it() {
        for text in [
            "",
            "localhost:5672",
            "mqtt://localhost",
            "amqp://",
            "amqp://:5672",
            "amqp://localhost:port",
            "amqp://me:hush@localhost",
            "amqp://localhost/a/b",
            "amqp://localhost/a?hush=1",
            "amqp://localhost/%ff",
            "amqp://[::1",
        ] {
            let reason = AmqpUrl::parse(text).unwrap_err();
            assert!(!reason.contains("hush"), "{reason}");
        }
    }
}
