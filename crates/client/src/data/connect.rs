//! Connection to the broker: options, delays between attempts, and errors.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use backon::ExponentialBuilder;
use rumqttc::{ConnectReturnCode, ConnectionError, MqttOptions};
use types::{AppId, Credential, Kind};

use super::address;
use crate::{Error, Result, Trust};

/// Maximum size of a packet that is sent or received, in bytes.
const MQTT_PACKET_BYTES_MAX: usize = 1024 * 1024;

pub(super) const SERVICE: &str = "MQTT broker";

const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The shortest and longest delays before jitter, which adds up to as much again.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
pub(super) const RETRY_DELAY_MAX: Duration = Duration::from_secs(15);

/// A client identifier that no other client has, and that is short enough for every broker.
pub(super) fn client_id() -> String {
    // Its keys are random, and differ each time.
    format!("airlock{:016x}", RandomState::new().build_hasher().finish())
}

/// The options of a connection that has no session.
pub(super) fn options(
    address: &str,
    trust: &Trust,
    (app_id, credential): (&AppId, &Credential),
    client_id: &str,
) -> Result<MqttOptions> {
    let (host, port) = address::read(address, trust)?;
    let password = match credential {
        Credential::Token(token) => token.expose(),
        Credential::Key(key) => key.expose(),
    };
    let mut options = MqttOptions::new(client_id, host, port);
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_credentials(app_id.as_str(), password)
        .set_max_packet_size(MQTT_PACKET_BYTES_MAX, MQTT_PACKET_BYTES_MAX)
        .set_transport(address::transport(trust)?);
    Ok(options)
}

/// The pauses between attempts to connect.
pub(super) fn retries() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(RETRY_DELAY_MIN)
        .with_max_delay(RETRY_DELAY_MAX)
        .without_max_times()
        .with_jitter()
}

/// Returns the error that a caller gets when there is no connection.
pub(super) fn connection_error(address: &str, error: ConnectionError) -> Error {
    match error {
        ConnectionError::ConnectionRefused(code) => Error::Refused {
            kind: if is_permanent_code(code) { Kind::Unauthenticated } else { Kind::Unavailable },
            message: match code {
                ConnectReturnCode::BadUserNamePassword => {
                    "the MQTT broker does not accept this application and access key".to_owned()
                }
                ConnectReturnCode::NotAuthorized => {
                    "the MQTT broker needs an access key with the right `messages:up:r`".to_owned()
                }
                code => format!("the MQTT broker refused the connection: {code:?}"),
            },
            retry_after: None,
        },
        error => Error::Unreachable { service: SERVICE, address: address.to_owned(), source: error.into() },
    }
}

/// Returns true if a reconnection would fail in the same way.
pub(super) fn is_permanent(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionRefused(code) if is_permanent_code(*code))
}

/// Returns true if the broker refused the client, and false if the broker itself is out of service.
fn is_permanent_code(code: ConnectReturnCode) -> bool {
    code != ConnectReturnCode::ServiceUnavailable
}
