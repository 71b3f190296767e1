//! A client of an OpenID Connect provider: its description, its keys, and the tokens that it gives for codes.
//!
//! It carries what the provider says, and checks none of it but the addresses: whoever logs users in verifies the
//! tokens.

use jsonwebtoken::jwk::JwkSet;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Url};
use serde::{Deserialize, de::DeserializeOwned};
use types::Secret;

use crate::{
    Error, Result, Trust,
    account::{AuthorizationCode, CodeVerifier},
    transport::http::Http,
    without_credentials,
};

const SERVICE: &str = "login provider";
const ISSUER_FORM: &str = "https://host(:port)(/path), or http only on this machine";
/// The characters of client credentials to escape before they are encoded as Basic; others stay, because some
/// providers do not decode them.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A client of a provider.
///
/// Over https it trusts the system's certificate authorities. Plain http is only for providers on this machine. Reads
/// are tried up to three times; time limits are 2 s for a connection and 10 s for a response, which may have 4 MiB.
#[derive(Clone, Debug)]
pub struct OpenIdClient {
    http: Http,
    is_https: bool,
}

/// The provider's description of itself, from `/.well-known/openid-configuration`.
#[derive(Clone, Debug, Deserialize)]
pub struct ProviderDescription {
    /// The issuer of its tokens.
    pub issuer: String,
    /// Where browsers go.
    pub authorization_endpoint: String,
    /// Where codes are exchanged for tokens.
    pub token_endpoint: String,
    /// Where its keys are.
    pub jwks_uri: String,
    /// Where the profile of a user is, if it has such a place.
    #[serde(default)]
    pub userinfo_endpoint: Option<String>,
    /// The ways in which clients may authenticate; `client_secret_basic` if it does not say.
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Vec<String>,
}

/// The client as which we are registered there.
#[derive(Clone, Copy, Debug)]
pub struct ProviderClient<'a> {
    /// As the provider has registered it.
    pub id: &'a str,
    /// Its secret; a public client has none.
    pub secret: Option<&'a Secret>,
}

/// A request to authenticate a user.
#[derive(Clone, Copy, Debug)]
pub struct AuthenticationRequest<'a> {
    /// The id of our client.
    pub client_id: &'a str,
    /// Where the browser comes back to.
    pub redirect_uri: &'a str,
    /// The scopes, separated by spaces.
    pub scope: &'a str,
    /// Comes back with the browser.
    pub state: &'a str,
    /// Comes back in the ID token.
    pub nonce: &'a str,
    /// Redeems the code.
    pub verifier: &'a CodeVerifier,
}

/// The tokens for a code.
#[derive(Clone, Debug, Deserialize)]
pub struct ProviderTokens {
    /// Says who logged in. It is not verified.
    pub id_token: Secret,
    /// Opens the profile.
    #[serde(default)]
    pub access_token: Option<Secret>,
}

impl OpenIdClient {
    /// Creates a client for the provider with this issuer, which is also its address.
    pub fn new(issuer: &str) -> Result<Self> {
        let invalid = || Error::Address { address: without_credentials(issuer).to_owned(), expected: ISSUER_FORM };
        let base: Url = issuer.parse().map_err(|_| invalid())?;
        let is_plain = base.query().is_none() && base.fragment().is_none() && base.username().is_empty();
        let is_https = base.scheme() == "https";
        if !is_plain || base.password().is_some() || !(is_https || is_on_this_machine(&base)) {
            return Err(invalid());
        }
        let trust = if is_https { Trust::System } else { Trust::Plaintext };
        Ok(Self { http: Http::new(SERVICE, base, &trust)?, is_https })
    }

    /// The provider's description of itself.
    pub async fn description(&self) -> Result<ProviderDescription> {
        let request = self.http.request(Method::GET, &[".well-known", "openid-configuration"]);
        self.http.json(request).await
    }

    /// The URL at which a browser logs in there.
    pub fn authentication_url(
        &self,
        provider: &ProviderDescription,
        request: AuthenticationRequest<'_>,
    ) -> Result<String> {
        let mut url = self.endpoint("authorization_endpoint", &provider.authorization_endpoint)?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", request.client_id),
            ("redirect_uri", request.redirect_uri),
            ("scope", request.scope),
            ("state", request.state),
            ("nonce", request.nonce),
            ("code_challenge", &request.verifier.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    /// The public keys that verify the provider's tokens.
    pub async fn keys(&self, provider: &ProviderDescription) -> Result<JwkSet> {
        self.get(self.endpoint("jwks_uri", &provider.jwks_uri)?, |request| request).await
    }

    /// Redeems a code.
    pub async fn tokens(
        &self,
        provider: &ProviderDescription,
        client: ProviderClient<'_>,
        code: &AuthorizationCode,
    ) -> Result<ProviderTokens> {
        let url = self.endpoint("token_endpoint", &provider.token_endpoint)?;
        let http = self.http.at(url.clone());
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.code.expose()),
            ("redirect_uri", code.redirect_uri.as_str()),
        ];
        form.extend(code.verifier.as_ref().map(|verifier| ("code_verifier", verifier.secret().expose())));
        let request = http.request_to(Method::POST, url);
        let request = match client.secret {
            Some(secret) if provider.takes_basic() => {
                request.basic_auth(escaped(client.id), Some(escaped(secret.expose())))
            }
            secret => {
                form.push(("client_id", client.id));
                form.extend(secret.map(|secret| ("client_secret", secret.expose())));
                request
            }
        };
        http.json(request.form(&form)).await
    }

    /// The profile of the user whose token this is, with the members of `T`; `None` if the provider has no such place.
    pub async fn user_info<T: DeserializeOwned>(
        &self,
        provider: &ProviderDescription,
        access_token: &Secret,
    ) -> Result<Option<T>> {
        let Some(endpoint) = &provider.userinfo_endpoint else { return Ok(None) };
        let endpoint = self.endpoint("userinfo_endpoint", endpoint)?;
        self.get(endpoint, |request| request.bearer_auth(access_token.expose())).await.map(Some)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        url: Url,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<T> {
        let http = self.http.at(url.clone());
        http.json(with(http.request_to(Method::GET, url))).await
    }

    /// Parses an address of the description: over https if the issuer is, and otherwise on this machine.
    fn endpoint(&self, name: &'static str, text: &str) -> Result<Url> {
        let url: Option<Url> = text.parse().ok();
        let fits = |url: &Url| if self.is_https { url.scheme() == "https" } else { is_on_this_machine(url) };
        let must = if self.is_https { "have https" } else { "have http, on this machine, like the issuer" };
        let refused = || self.http.unreadable(format!("its `{name}` must {must}"));
        url.filter(fits).ok_or_else(refused)
    }
}

impl ProviderDescription {
    fn takes_basic(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods_supported;
        methods.is_empty() || methods.iter().any(|method| method == "client_secret_basic")
    }
}

fn is_on_this_machine(url: &Url) -> bool {
    url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_reached_over_https_or_on_this_machine() {
        for issuer in ["http://localhost:9400", "http://127.0.0.1/realms/a", "http://[::1]:1"] {
            assert!(OpenIdClient::new(issuer).is_ok(), "{issuer}");
        }
        for issuer in
            ["", "login.example.com", "http://login.example.com", "ftp://localhost", "https://a.b?x", "https://u@a.b"]
        {
            assert!(matches!(OpenIdClient::new(issuer), Err(Error::Address { .. })), "{issuer}");
        }
    }

    #[test]
    fn an_endpoint_is_as_safe_as_the_issuer() {
        let local = OpenIdClient::new("http://localhost:9400").unwrap();
        assert!(local.endpoint("jwks_uri", "http://127.0.0.1:9401/keys").is_ok());
        for other in ["https://login.example.com/keys", "http://login.example.com/keys", "file:///keys", "keys"] {
            assert!(matches!(local.endpoint("jwks_uri", other), Err(Error::Unreadable { .. })), "{other}");
        }
        let remote = OpenIdClient { is_https: true, ..local };
        assert!(remote.endpoint("jwks_uri", "https://keys.example.com").is_ok());
        for other in ["http://login.example.com/keys", "http://127.0.0.1/keys", "javascript:keys"] {
            assert!(matches!(remote.endpoint("jwks_uri", other), Err(Error::Unreadable { .. })), "{other}");
        }
    }
}
