//! A client of the account service: users, applications, gateways, and tokens.

mod access_keys;
mod applications;
mod collaborators;
mod gateways;
mod pkce;
mod tokens;
mod users;

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use reqwest::{Method, RequestBuilder, Url, header::AUTHORIZATION};
use types::{ClientId, Credential, Secret};

pub use self::{collaborators::WithCollaborators, pkce::CodeVerifier, tokens::AuthorizationCode, users::UserPage};
use crate::{
    Error, Result, Trust,
    transport::http::{Http, Identity},
    without_credentials,
};

const ADDRESS_FORM: &str = "http(s)://host(:port)";

/// The credentials of an OAuth client.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    /// As it is registered at the account service.
    pub id: ClientId,
    /// Its secret; public clients have a well-known one.
    pub secret: Secret,
}

/// The identity under which access keys are exchanged.
#[derive(Clone, Debug)]
enum Exchanger {
    Nobody,
    Basic { id: String, secret: Secret },
    Component(Secret),
}

/// A client of an account service.
///
/// Reads are tried up to three times while the service is unavailable; writes are only retried if it sends
/// `Retry-After`, up to 5 s. Time limits are 2 s for a connection, 10 s for a response, and 30 s for a call with all
/// its attempts. A response may have 4 MiB.
#[derive(Clone, Debug)]
pub struct AccountClient {
    http: Http,
    exchanger: Exchanger,
}

impl AccountClient {
    /// Creates a client for an address such as `http://localhost:8000`.
    ///
    /// Over https it trusts the system's certificate authorities. Credentials in the address, as in
    /// `http://id:secret@localhost:8000`, are used to exchange access keys.
    pub fn new(base_url: &str) -> Result<Self> {
        let plaintext = base_url.trim_start().starts_with("http:");
        Self::with_trust(base_url, &if plaintext { Trust::Plaintext } else { Trust::System })
    }

    /// Creates a client that trusts other certificates.
    pub fn with_trust(base_url: &str, trust: &Trust) -> Result<Self> {
        let invalid = || Error::Address { address: without_credentials(base_url).to_owned(), expected: ADDRESS_FORM };
        let mut base: Url = base_url.trim().parse().map_err(|_| invalid())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(invalid());
        }
        let exchanger = take_credentials(&mut base).ok_or_else(invalid)?;
        Ok(Self { http: Http::new("account service", base, trust)?, exchanger })
    }

    /// Exchanges access keys with this component's token.
    #[must_use]
    pub fn exchanging_as_component(mut self, token: Secret) -> Self {
        self.exchanger = Exchanger::Component(token);
        self
    }

    /// Says with every call which component makes it, so that its calls do not wait for those of others at its address.
    #[must_use]
    pub fn identified_by(mut self, token: impl Fn() -> Option<Secret> + Send + Sync + 'static) -> Self {
        self.http.identity = Some(Identity(Arc::new(token)));
        self
    }

    /// Starts a request to a path below `/api/v2` with a credential.
    fn authorized(&self, method: Method, path: &[&str], credential: &Credential) -> RequestBuilder {
        authorize(self.http.request(method, &[&["api", "v2"], path].concat()), credential)
    }
}

impl Exchanger {
    /// Adds the credentials for an exchange.
    fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Nobody => request,
            Self::Basic { id, secret } => request.basic_auth(id, Some(secret.expose())),
            Self::Component(token) => request.bearer_auth(token.expose()),
        }
    }
}

fn authorize(request: RequestBuilder, credential: &Credential) -> RequestBuilder {
    match credential {
        Credential::Token(token) => request.bearer_auth(token.expose()),
        Credential::Key(_) => request.header(AUTHORIZATION, credential.to_header()),
    }
}

/// Removes `id:secret@` from an address, so that it cannot leak.
fn take_credentials(base: &mut Url) -> Option<Exchanger> {
    if base.username().is_empty() {
        return Some(Exchanger::Nobody);
    }
    let plain = |escaped: &str| percent_decode_str(escaped).decode_utf8().map(String::from).ok();
    let (id, secret) = (plain(base.username())?, Secret::new(plain(base.password().unwrap_or_default())?));
    base.set_username("").ok()?;
    base.set_password(None).ok()?;
    Some(Exchanger::Basic { id, secret })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_malformed_addresses() {
        for address in ["", "localhost:8000", "ftp://localhost", "http://", "/users", "http://a b"] {
            let error = AccountClient::new(address).unwrap_err();
            assert!(error.to_string().contains("http(s)://host(:port)"), "{error}");
        }
    }

    #[test]
    fn credentials_in_the_address_do_not_print() {
        let client = AccountClient::new("http://handler:hush%21@localhost:8000").unwrap();
        let Exchanger::Basic { id, secret } = &client.exchanger else { panic!("{client:?}") };
        assert_eq!((id.as_str(), secret.expose()), ("handler", "hush!"));
        let error = AccountClient::new("htp://handler:hush@localhost").unwrap_err();
        assert!(!format!("{client:?} {error:?} {error}").contains("hush"));
    }
}
