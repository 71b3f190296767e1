//! Addresses of MQTT brokers, in the form that components announce: `(mqtt(s)://)host(:port)`.

use crate::{Error, Result, Trust};

/// The ports of addresses that name none.
const MQTT_PORT: u16 = 1883;
const MQTTS_PORT: u16 = 8883;

/// Parses an address; its scheme, if any, must agree with `trust`.
pub(super) fn read<'a>(address: &'a str, trust: &Trust) -> Result<(&'a str, u16)> {
    let invalid = || Error::Address { address: address.to_owned(), expected: "(mqtt(s)://)host(:port)" };
    let (encrypted, rest) = match address.split_once("://") {
        Some(("mqtt", rest)) => (Some(false), rest),
        Some(("mqtts", rest)) => (Some(true), rest),
        Some(_) => return Err(invalid()),
        None => (None, address),
    };
    // Never send in plain text what should be encrypted; the other way round the broker would not answer.
    if encrypted.is_some_and(|encrypted| encrypted == (*trust == Trust::Plaintext)) {
        return Err(invalid());
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| invalid())?),
        None => (rest, if *trust == Trust::Plaintext { MQTT_PORT } else { MQTTS_PORT }),
    };
    if host.is_empty() || host.contains(['/', '@', ':', ' ']) { Err(invalid()) } else { Ok((host, port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_form_of_the_specification() {
        for (address, trust, expected) in [
            ("broker.example", Trust::Plaintext, ("broker.example", 1883)),
            ("broker.example", Trust::System, ("broker.example", 8883)),
            ("localhost:1884", Trust::Plaintext, ("localhost", 1884)),
            ("mqtt://10.0.0.1", Trust::Plaintext, ("10.0.0.1", 1883)),
            ("mqtts://broker.example", Trust::System, ("broker.example", 8883)),
            ("mqtts://broker.example:443", Trust::System, ("broker.example", 443)),
        ] {
            assert_eq!(read(address, &trust).unwrap(), expected, "{address}");
        }
    }

    #[test]
    fn refuses_malformed_addresses_and_schemes_that_contradict_the_trust() {
        for (address, trust) in [
            ("", Trust::Plaintext),
            (":1883", Trust::Plaintext),
            ("localhost:", Trust::Plaintext),
            ("localhost:mqtt", Trust::Plaintext),
            ("http://localhost", Trust::Plaintext),
            ("mqtts://localhost", Trust::Plaintext),
            ("mqtt://localhost", Trust::System),
            ("me@localhost:1883", Trust::Plaintext),
            ("localhost/x", Trust::Plaintext),
        ] {
            assert!(matches!(read(address, &trust), Err(Error::Address { .. })), "{address}");
        }
    }
}
