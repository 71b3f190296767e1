//! Obtaining, exchanging and verifying tokens.

use api::rest::account::{ComponentToken, RestrictRequest, RestrictResponse, TokenRequest, TokenResponse};
use jsonwebtoken::jwk::JwkSet;
use reqwest::{Method, Url};
use serde_json::json;
use types::{AccessKey, AppId, ClientId, ComponentId, Credential, Scope, Secret, ServiceName, Username};

use super::{AccountClient, ClientCredentials, CodeVerifier, Exchanger};
use crate::Result;

/// An authorization code, and the data needed to redeem it.
#[derive(Clone, Debug)]
pub struct AuthorizationCode {
    /// As the redirect brought it.
    pub code: Secret,
    /// The exact redirect URI of the authorization.
    pub redirect_uri: String,
    /// The verifier used to build the authorization URL; `None` if that had none.
    pub verifier: Option<CodeVerifier>,
}

impl AccountClient {
    /// Builds the URL where a user authorizes a client, and which redirects to `redirect_uri` with a code.
    ///
    /// Redeeming the code requires the verifier.
    pub fn authorize_url(&self, client: &ClientId, redirect_uri: &str, verifier: &CodeVerifier) -> Url {
        let mut url = self.http.url(&["users", "authorize"]);
        url.query_pairs_mut().extend_pairs([
            ("client_id", client.as_str()),
            ("redirect_uri", redirect_uri),
            ("response_type", "code"),
            ("code_challenge", &verifier.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        url
    }

    /// Redeems an authorization code.
    pub async fn code_token(&self, client: &ClientCredentials, code: AuthorizationCode) -> Result<TokenResponse> {
        let body = TokenRequest {
            grant_type: Some("authorization_code".to_owned()),
            code: Some(code.code),
            redirect_uri: Some(code.redirect_uri),
            code_verifier: code.verifier.map(|verifier| verifier.secret().clone()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
    }

    /// Logs a user in with a password; without a scope, the token has every general scope.
    pub async fn password_token(
        &self,
        client: &ClientCredentials,
        username: &Username,
        password: &Secret,
        scope: &[Scope],
    ) -> Result<TokenResponse> {
        let body = TokenRequest {
            grant_type: Some("password".to_owned()),
            username: Some(username.to_string()),
            password: Some(password.clone()),
            scope: (!scope.is_empty()).then(|| scope.iter().map(ToString::to_string).collect()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
    }

    /// Continues a login; the refresh token can be used only once.
    pub async fn refresh_token(&self, client: &ClientCredentials, refresh_token: &Secret) -> Result<TokenResponse> {
        let body = TokenRequest {
            grant_type: Some("refresh_token".to_owned()),
            refresh_token: Some(refresh_token.clone()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
    }

    /// Revokes a refresh token.
    pub async fn revoke_token(&self, client: &ClientCredentials, refresh_token: &Secret) -> Result<()> {
        let request = self.http.request(Method::POST, &["users", "revoke"]);
        let request = request.basic_auth(&client.id, Some(client.secret.expose()));
        self.http.done(request.json(&json!({ "token": refresh_token.expose() }))).await
    }

    /// Exchanges a token for one with these scopes and the rights that they imply.
    pub async fn restrict_token(&self, token: &Secret, scope: &[Scope]) -> Result<Secret> {
        let request = self.http.request(Method::POST, &["users", "restrict-token"]).bearer_auth(token.expose());
        let response: RestrictResponse =
            self.http.json(request.json(&RestrictRequest { scope: scope.to_vec() })).await?;
        Ok(response.access_token)
    }

    /// Exchanges an application's access key for a token with the same rights.
    pub async fn exchange_key(&self, app_id: &AppId, key: &AccessKey) -> Result<TokenResponse> {
        self.exchange(app_id, key, &self.exchanger).await
    }

    /// Exchanges an access key with the token of a component; [`Error::NotAccepted`](crate::Error::NotAccepted) when
    /// the service refuses that token rather than the key.
    pub async fn exchange_key_as(&self, component: &Secret, app_id: &AppId, key: &AccessKey) -> Result<TokenResponse> {
        self.exchange(app_id, key, &Exchanger::Component(component.clone())).await
    }

    async fn exchange(&self, app_id: &AppId, key: &AccessKey, exchanger: &Exchanger) -> Result<TokenResponse> {
        let body = TokenRequest {
            grant_type: Some("password".to_owned()),
            username: Some(app_id.to_string()),
            password: Some(Secret::new(key.expose())),
            ..TokenRequest::default()
        };
        let request = self.http.request(Method::POST, &["api", "v2", "applications", "token"]).json(&body);
        self.http.json(exchanger.sign(request)).await
    }

    /// Returns a new token for a component, which authenticates with its current one.
    pub async fn component_token(
        &self,
        service: ServiceName,
        id: &ComponentId,
        current: &Secret,
    ) -> Result<ComponentToken> {
        let services = format!("{service}s");
        let path = ["components", &services, id.as_str(), "token"];
        self.http.json(self.authorized(Method::GET, &path, &Credential::Token(current.clone()))).await
    }

    /// Fetches the public keys that verify this service's tokens.
    pub async fn keys(&self) -> Result<JwkSet> {
        self.http.json(self.http.request(Method::GET, &[".well-known", "jwks.json"])).await
    }

    async fn token(&self, client: &ClientCredentials, body: &TokenRequest) -> Result<TokenResponse> {
        let request = self.http.request(Method::POST, &["users", "token"]);
        self.http.json(request.basic_auth(&client.id, Some(client.secret.expose())).json(body)).await
    }
}
