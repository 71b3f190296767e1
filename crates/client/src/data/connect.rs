//! Where a connection goes, as whom, and why none is made.

use std::hash::{BuildHasher, Hasher, RandomState};

use link::mqtt::{BrokerUrl, Endpoint, Lost};
use types::{AppId, Credential, Kind, Secret};

use crate::{Error, Result, Trust};

pub(super) const SERVICE: &str = "MQTT broker";

/// The endpoint of an application at an address in the form that components announce, `(mqtt(s)://)host(:port)`.
pub(super) fn endpoint(address: &str, trust: &Trust, app_id: &AppId, credential: &Credential) -> Result<Endpoint> {
    let password = match credential {
        Credential::Token(token) => token.clone(),
        Credential::Key(key) => Secret::new(key.expose()),
    };
    Ok(Endpoint::with_trust(url(address, trust)?, trust, client_id(), (app_id.as_str(), password))?)
}

/// A client identifier that no other client has, and that is short enough for every broker.
fn client_id() -> String {
    // Its keys are random, and differ each time.
    format!("airlock{:016x}", RandomState::new().build_hasher().finish())
}

/// Parses an address; its scheme, if any, must agree with `trust`.
fn url(address: &str, trust: &Trust) -> Result<BrokerUrl> {
    let is_tls = *trust != Trust::Plaintext;
    let url = match address.split_once("://") {
        Some(_) => BrokerUrl::parse(address),
        None if is_tls => BrokerUrl::parse(&format!("mqtts://{address}")),
        None => BrokerUrl::parse(&format!("mqtt://{address}")),
    };
    match url {
        // Never send in plain text what should be encrypted; the other way round the broker would not answer.
        Ok(url) if url.is_tls == is_tls => Ok(url),
        _ => Err(Error::Address { address: address.to_owned(), expected: "(mqtt(s)://)host(:port)" }),
    }
}

/// Returns the error that a caller gets when there is no connection.
pub(super) fn connection_error(address: &str, lost: Lost) -> Error {
    let Some(code) = &lost.refusal else {
        return Error::Unreachable { service: SERVICE, address: address.to_owned(), source: lost.into() };
    };
    Error::Refused {
        kind: if is_permanent(&lost) { Kind::Unauthenticated } else { Kind::Unavailable },
        message: match code.as_str() {
            "BadUserNamePassword" => "the MQTT broker does not accept this application and access key".to_owned(),
            "NotAuthorized" => "the MQTT broker needs an access key with the right `messages:up:r`".to_owned(),
            code => format!("the MQTT broker refused the connection: {code}"),
        },
        retry_after: None,
    }
}

/// Returns true if the broker refused the client, so that a reconnection would fail in the same way, and false if the
/// broker itself is out of service.
pub(super) fn is_permanent(lost: &Lost) -> bool {
    lost.refusal.as_ref().is_some_and(|code| code != "ServiceUnavailable")
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
            let BrokerUrl { host, port, .. } = url(address, &trust).unwrap();
            assert_eq!((host.as_str(), port), expected, "{address}");
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
            assert!(matches!(url(address, &trust), Err(Error::Address { .. })), "{address}");
        }
    }
}
