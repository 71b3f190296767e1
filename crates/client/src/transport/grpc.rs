//! Calls over gRPC: time limits, retries, credentials as metadata, and errors with the server's text.

use std::{error::Error as _, time::Duration};

use tokio::time::timeout;
use tonic::{
    Code, ConnectError, Request, Response, Status, TimeoutExpired,
    metadata::{AsciiMetadataValue, MetadataMap},
    transport::{Channel, ClientTlsConfig, Endpoint},
};
use types::{Credential, Kind, Secret};

use crate::{
    Error, Result, Trust,
    error::{Cause, unknown_call},
    transport::retry::{ATTEMPT_TIMEOUT, Call, retry},
};

/// Maximum time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time without traffic on a stream after which its connection is tested, and the maximum time to wait for the answer.
/// Servers of TTN v2 end connections that are tested more often than every 30 s.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(60);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
const ADDRESS_FORM: &str = "host:port";

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    channel: Channel,
    service: &'static str,
    address: String,
    /// Time after which a call beyond a rate limit is repeated if the server names none; never if unset.
    rate_limit_wait: Option<Duration>,
}

impl Peer {
    /// Prepares calls to the first of the addresses; the first call connects.
    pub(crate) fn new(service: &'static str, net_address: &str, trust: &Trust) -> Result<Self> {
        Self::with(service, net_address, trust, |endpoint| endpoint)
    }

    /// Like [`Self::new`], for streams, whose connection is tested while it is silent.
    pub(crate) fn for_streams(service: &'static str, net_address: &str, trust: &Trust) -> Result<Self> {
        Self::with(service, net_address, trust, |endpoint| {
            endpoint.http2_keep_alive_interval(KEEP_ALIVE_INTERVAL).keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        })
    }

    fn with(
        service: &'static str,
        net_address: &str,
        trust: &Trust,
        set: impl FnOnce(Endpoint) -> Endpoint,
    ) -> Result<Self> {
        let address = net_address.split(',').next().unwrap_or_default().trim().to_owned();
        let invalid = || Error::Address { address: address.clone(), expected: ADDRESS_FORM };
        let verifier = trust.verifier()?;
        let scheme = if verifier.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(|_| invalid())?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true);
        let uri = endpoint.uri();
        let whole = uri.authority().is_some_and(|authority| authority.as_str() == address) && !address.contains('@');
        if !whole || uri.port_u16().is_none() {
            return Err(invalid());
        }
        if let Some(verifier) = verifier {
            endpoint = endpoint.tls_config_with_verifier(ClientTlsConfig::new(), verifier).map_err(|_| invalid())?;
        }
        Ok(Self { channel: set(endpoint).connect_lazy(), service, address, rate_limit_wait: None })
    }

    /// Repeats calls beyond a rate limit after this time, unless the server names another.
    pub(crate) fn with_rate_limit_wait(self, wait: Duration) -> Self {
        Self { rate_limit_wait: Some(wait), ..self }
    }

    /// Makes a call, with retries where that is safe, and returns the message of the response, which may have 4 MiB:
    /// what tonic allows if nothing else is said.
    pub(crate) async fn call<M, T, F>(
        &self,
        call: Call,
        request: impl Fn() -> Result<Request<M>>,
        send: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<T>
    where
        F: Future<Output = std::result::Result<Response<T>, Status>>,
    {
        retry(call, || async {
            let mut request = request()?;
            // So that the server stops when we no longer wait.
            request.set_timeout(ATTEMPT_TIMEOUT);
            // tonic's timeout ends when the response begins; this one includes all of it.
            match timeout(ATTEMPT_TIMEOUT, send(self.channel.clone(), request)).await {
                Ok(response) => response.map(Response::into_inner).map_err(|status| self.failed(status)),
                Err(_) => Err(Error::Timeout { service: self.service, address: self.address.clone() }),
            }
        })
        .await
    }

    /// The connection, for calls without a time limit.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The error for a response that cannot be parsed.
    pub(crate) fn unreadable(&self, source: impl Into<Cause>) -> Error {
        Error::Unreadable { service: self.service, address: self.address.clone(), source: source.into() }
    }

    pub(crate) fn failed(&self, status: Status) -> Error {
        let (service, address) = (self.service, self.address.clone());
        // A status from the server has no source; one with a source comes from this side.
        if status.source().is_none() {
            let unsaid = || self.rate_limit_wait.filter(|_| status.code() == Code::ResourceExhausted);
            return Error::Refused {
                kind: kind(&status),
                retry_after: retry_after(status.metadata()).or_else(unsaid),
                message: match status.code() {
                    Code::Unimplemented => unknown_call(service, &address),
                    _ => status.message().to_owned(),
                },
            };
        }
        if has_cause::<TimeoutExpired>(&status) {
            Error::Timeout { service, address }
        } else if has_cause::<ConnectError>(&status) {
            Error::Unreachable { service, address, source: status.into() }
        } else {
            Error::Lost { service, address, source: status.into() }
        }
    }
}

pub(crate) fn authorized<T>(message: T, credential: &Credential) -> Result<Request<T>> {
    let (name, text) = match credential {
        Credential::Token(token) => ("token", token.expose()),
        Credential::Key(key) => ("key", key.expose()),
    };
    let mut value: AsciiMetadataValue = text.parse().map_err(|_| Error::Credential)?;
    value.set_sensitive(true);
    let mut request = Request::new(message);
    request.metadata_mut().insert(name, value);
    Ok(request)
}

/// A request with a bearer token, as ChirpStack wants it.
pub(crate) fn with_bearer<T>(message: T, token: &Secret) -> Result<Request<T>> {
    let mut value: AsciiMetadataValue = format!("Bearer {}", token.expose()).parse().map_err(|_| Error::Credential)?;
    value.set_sensitive(true);
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", value);
    Ok(request)
}

fn has_cause<E: std::error::Error + 'static>(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<E>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn kind(status: &Status) -> Kind {
    match status.code() {
        Code::InvalidArgument | Code::FailedPrecondition => Kind::Invalid,
        Code::Unauthenticated => Kind::Unauthenticated,
        Code::PermissionDenied => Kind::Denied,
        Code::NotFound => Kind::NotFound,
        Code::AlreadyExists => Kind::AlreadyExists,
        Code::Aborted => Kind::Conflict,
        Code::ResourceExhausted if status.metadata().contains_key("storage-full") => Kind::Full,
        Code::ResourceExhausted => Kind::Exhausted,
        Code::OutOfRange => Kind::TooLarge,
        Code::Unavailable => Kind::Unavailable,
        Code::DeadlineExceeded | Code::Cancelled => Kind::Timeout,
        Code::Unimplemented => Kind::Unsupported,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Kind::Internal,
    }
}

fn retry_after(metadata: &MetadataMap) -> Option<Duration> {
    metadata.get("retry-after")?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn uses_the_first_address() {
        let peer = Peer::new("handler", "localhost:1904, other:1904", &Trust::Plaintext).unwrap();
        assert_eq!(peer.address, "localhost:1904");
    }

    #[tokio::test]
    async fn refuses_invalid_addresses() {
        for address in ["", "localhost", "http://localhost:1904", "localhost:1904/x", "a b:1", "user@host:1"] {
            let refused = Peer::new("handler", address, &Trust::Plaintext).map(|peer| peer.address);
            assert!(matches!(refused, Err(Error::Address { .. })), "{address}: {refused:?}");
        }
    }

    #[test]
    fn sends_a_credential_as_metadata_and_does_not_print_it() {
        let request = authorized((), &Credential::Key("issuer.hush".parse().unwrap())).unwrap();
        assert_eq!(request.metadata().get("key").unwrap(), "issuer.hush");
        assert!(!format!("{request:?}").contains("hush"));
        let unprintable = Credential::Token(Secret::new("a\nb"));
        assert!(matches!(authorized((), &unprintable), Err(Error::Credential)));
    }
}
