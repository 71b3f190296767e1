//! The account service: users, applications, access keys and tokens.

use api::rest::account::{
    AccessKey, Application, NewAccessKey, NewApplication, NewUser, Registered, RestrictAnswer, RestrictRequest,
    TokenAnswer, TokenRequest, User,
};
use jsonwebtoken::jwk::JwkSet;
use percent_encoding::percent_decode_str;
use reqwest::{Method, RequestBuilder, Url, header::AUTHORIZATION};
use types::{AppId, ClientId, Credential, Scope, Secret, Username};

use crate::{Error, Result, Trust, http::Http};

/// What the address of an account service must look like.
const ADDRESS_FORM: &str = "http(s)://host(:port)";

/// An OAuth client's proof of who it is.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    /// Its id.
    pub id: ClientId,
    /// Its secret; public clients have one that everybody knows.
    pub secret: Secret,
}

/// Who exchanges access keys for tokens.
#[derive(Clone, Debug)]
enum Exchanger {
    Nobody,
    Basic { id: String, secret: Secret },
    Component(Secret),
}

/// A client of an account service.
///
/// Calls that change nothing are tried three times while the service is away; those that change something are tried
/// again only when it says `Retry-After`, up to 5 s. A connection may take 2 s, an answer 10 s and 4 MiB.
#[derive(Clone, Debug)]
pub struct AccountClient {
    http: Http,
    exchanger: Exchanger,
}

impl AccountClient {
    /// Prepares calls to an account service, such as `http://localhost:8000`.
    ///
    /// With https, it trusts whom this machine trusts. An id and secret in the address, as in
    /// `http://id:secret@localhost:8000`, are what access keys are exchanged with.
    pub fn new(base_url: &str) -> Result<Self> {
        let plaintext = base_url.trim_start().starts_with("http:");
        Self::with_trust(base_url, &if plaintext { Trust::Plaintext } else { Trust::System })
    }

    /// Prepares calls to an account service that proves itself otherwise.
    pub fn with_trust(base_url: &str, trust: &Trust) -> Result<Self> {
        // What stands before the @ is not for showing.
        let shown = base_url.rsplit('@').next().unwrap_or_default();
        let invalid = || Error::Address { address: shown.to_owned(), expected: ADDRESS_FORM };
        let mut base: Url = base_url.trim().parse().map_err(|_| invalid())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(invalid());
        }
        let exchanger = take_credentials(&mut base).ok_or_else(invalid)?;
        Ok(Self { http: Http::new("account service", base, trust)?, exchanger })
    }

    /// Exchanges access keys as this OAuth client from now on.
    #[must_use]
    pub fn exchanging_as_client(mut self, client: &ClientCredentials) -> Self {
        self.exchanger = Exchanger::Basic { id: client.id.to_string(), secret: client.secret.clone() };
        self
    }

    /// Exchanges access keys with this component's own token from now on.
    #[must_use]
    pub fn exchanging_as_component(mut self, token: Secret) -> Self {
        self.exchanger = Exchanger::Component(token);
        self
    }

    /// Registers a user.
    pub async fn register_user(&self, user: &NewUser) -> Result<Registered> {
        self.http.json(self.http.request(Method::POST, &["api", "v2", "users"]).json(user)).await
    }

    /// Logs a user in with a password; without a scope the token has every general one.
    pub async fn password_token(
        &self,
        client: &ClientCredentials,
        username: &Username,
        password: &Secret,
        scope: &[Scope],
    ) -> Result<TokenAnswer> {
        let body = TokenRequest {
            grant_type: Some("password".to_owned()),
            username: Some(username.to_string()),
            password: Some(password.clone()),
            scope: (!scope.is_empty()).then(|| scope.iter().map(ToString::to_string).collect()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
    }

    /// Continues a login; the refresh token is used up by this.
    pub async fn refresh_token(&self, client: &ClientCredentials, refresh_token: &Secret) -> Result<TokenAnswer> {
        let body = TokenRequest {
            grant_type: Some("refresh_token".to_owned()),
            refresh_token: Some(refresh_token.clone()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
    }

    /// Exchanges a token for one with these scopes and the rights that come with them.
    pub async fn restrict_token(&self, token: &Secret, scope: &[Scope]) -> Result<Secret> {
        let request = self.http.request(Method::POST, &["users", "restrict-token"]).bearer_auth(token.expose());
        let answer: RestrictAnswer = self.http.json(request.json(&RestrictRequest { scope: scope.to_vec() })).await?;
        Ok(answer.access_token)
    }

    /// Exchanges an application's access key for a token with the same rights.
    pub async fn exchange_key(&self, app_id: &AppId, key: &types::AccessKey) -> Result<TokenAnswer> {
        let body = TokenRequest {
            grant_type: Some("password".to_owned()),
            username: Some(app_id.to_string()),
            password: Some(Secret::new(key.expose())),
            ..TokenRequest::default()
        };
        let request = self.http.request(Method::POST, &["api", "v2", "applications", "token"]).json(&body);
        self.http.json(self.exchanger.sign(request)).await
    }

    /// The public keys that verify this service's tokens.
    pub async fn keys(&self) -> Result<JwkSet> {
        self.http.json(self.http.request(Method::GET, &[".well-known", "jwks.json"])).await
    }

    /// Who the bearer is.
    pub async fn me(&self, credential: &Credential) -> Result<User> {
        self.http.json(self.authorized(Method::GET, &["users", "me"], credential)).await
    }

    /// The applications of the bearer.
    pub async fn applications(&self, credential: &Credential) -> Result<Vec<Application>> {
        self.http.json(self.authorized(Method::GET, &["applications"], credential)).await
    }

    /// One application.
    pub async fn application(&self, credential: &Credential, app_id: &AppId) -> Result<Application> {
        self.http.json(self.authorized(Method::GET, &["applications", app_id.as_str()], credential)).await
    }

    /// Creates an application; its answer has an EUI and an access key.
    pub async fn create_application(
        &self,
        credential: &Credential,
        application: &NewApplication,
    ) -> Result<Application> {
        self.http.json(self.authorized(Method::POST, &["applications"], credential).json(application)).await
    }

    /// The access keys of an application; those with more rights than the bearer come without the key itself.
    pub async fn access_keys(&self, credential: &Credential, app_id: &AppId) -> Result<Vec<AccessKey>> {
        self.http.json(self.authorized(Method::GET, &access_keys(app_id), credential)).await
    }

    /// Creates an access key.
    pub async fn add_access_key(
        &self,
        credential: &Credential,
        app_id: &AppId,
        key: &NewAccessKey,
    ) -> Result<AccessKey> {
        self.http.json(self.authorized(Method::POST, &access_keys(app_id), credential).json(key)).await
    }

    /// Deletes the access key of this name.
    pub async fn delete_access_key(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<()> {
        let path = [&access_keys(app_id)[..], &[name]].concat();
        self.http.send(self.authorized(Method::DELETE, &path, credential)).await.map(drop)
    }

    async fn token(&self, client: &ClientCredentials, body: &TokenRequest) -> Result<TokenAnswer> {
        let request = self.http.request(Method::POST, &["users", "token"]);
        self.http.json(request.basic_auth(&client.id, Some(client.secret.expose())).json(body)).await
    }

    /// Begins a call below `/api/v2` with a credential.
    fn authorized(&self, method: Method, path: &[&str], credential: &Credential) -> RequestBuilder {
        let request = self.http.request(method, &[&["api", "v2"], path].concat());
        match credential {
            Credential::Token(token) => request.bearer_auth(token.expose()),
            Credential::Key(_) => request.header(AUTHORIZATION, credential.to_header()),
        }
    }
}

impl Exchanger {
    /// Adds the proof of who exchanges.
    fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Nobody => request,
            Self::Basic { id, secret } => request.basic_auth(id, Some(secret.expose())),
            Self::Component(token) => request.bearer_auth(token.expose()),
        }
    }
}

fn access_keys(app_id: &AppId) -> [&str; 3] {
    ["applications", app_id.as_str(), "access-keys"]
}

/// Takes `id:secret@` out of an address, so that it shows up nowhere.
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
    fn refuses_what_is_no_address() {
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
