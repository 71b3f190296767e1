//! Where a connection goes, as whom, and why none is made.

mod address;

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    sync::Arc,
};

use link::{Socket, connect_socket};
use rumqttc::{Connect, ConnectReturnCode, ConnectionError, Login};
use rustls::ClientConfig;
use types::{AppId, Credential, Kind};

use crate::{Error, Result, Trust};

pub(super) const SERVICE: &str = "MQTT broker";

/// The time between pings, in seconds.
pub(super) const KEEP_ALIVE_S: u16 = 30;

/// A client identifier that no other client has, and that is short enough for every broker.
pub(super) fn client_id() -> String {
    // Its keys are random, and differ each time.
    format!("airlock{:016x}", RandomState::new().build_hasher().finish())
}

/// A broker, and who connects to it.
pub(super) struct Endpoint {
    host: String,
    port: u16,
    /// None for plain text.
    tls: Option<Arc<ClientConfig>>,
    client_id: String,
    app_id: AppId,
    credential: Credential,
}

impl Endpoint {
    pub(super) fn new(
        address: &str,
        trust: &Trust,
        (app_id, credential): (&AppId, &Credential),
        client_id: &str,
    ) -> Result<Self> {
        let (host, port) = address::read(address, trust)?;
        let tls = match trust {
            Trust::Plaintext => None,
            trust => Some(Arc::new(trust.tls()?)),
        };
        let (host, client_id) = (host.to_owned(), client_id.to_owned());
        Ok(Self { host, port, tls, client_id, app_id: app_id.clone(), credential: credential.clone() })
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn Socket>> {
        connect_socket(&self.host, self.port, self.tls.as_ref()).await
    }

    /// The first packet, for a connection that has no session.
    pub(super) fn first_packet(&self) -> Connect {
        let password = match &self.credential {
            Credential::Token(token) => token.expose(),
            Credential::Key(key) => key.expose(),
        };
        let mut connect = Connect::new(self.client_id.as_str());
        connect.keep_alive = KEEP_ALIVE_S;
        connect.clean_session = true;
        connect.login = Some(Login::new(self.app_id.as_str(), password));
        connect
    }
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
