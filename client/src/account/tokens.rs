//! Tokens: how they are got, exchanged and verified.

use api::rest::account::{RestrictAnswer, RestrictRequest, TokenAnswer, TokenRequest};
use jsonwebtoken::jwk::JwkSet;
use reqwest::{Method, Url};
use serde_json::json;
use types::{AppId, ClientId, Scope, Secret, Username};

use super::{AccountClient, ClientCredentials, Verifier};
use crate::Result;

/// A code that an authorization gave, with what proves that it was this program who asked.
#[derive(Clone, Debug)]
pub struct AuthorizationCode {
    /// The code.
    pub code: Secret,
    /// Where the authorization redirected to, letter for letter.
    pub redirect_uri: String,
    /// What the address of the authorization was made with.
    pub verifier: Verifier,
}

impl AccountClient {
    /// The address where a user lets a client act; from there a browser is sent to `redirect_uri` with a code.
    ///
    /// The code is worth something only together with the verifier.
    pub fn authorize_url(&self, client: &ClientId, redirect_uri: &str, verifier: &Verifier) -> Url {
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

    /// Logs a user in with the code that the authorization gave.
    pub async fn code_token(&self, client: &ClientCredentials, code: AuthorizationCode) -> Result<TokenAnswer> {
        let body = TokenRequest {
            grant_type: Some("authorization_code".to_owned()),
            code: Some(code.code),
            redirect_uri: Some(code.redirect_uri),
            code_verifier: Some(code.verifier.secret().clone()),
            ..TokenRequest::default()
        };
        self.token(client, &body).await
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

    /// Ends a login: its refresh token is worth nothing any more.
    pub async fn revoke_token(&self, client: &ClientCredentials, refresh_token: &Secret) -> Result<()> {
        let request = self.http.request(Method::POST, &["users", "revoke"]);
        let request = request.basic_auth(&client.id, Some(client.secret.expose()));
        self.http.done(request.json(&json!({ "token": refresh_token.expose() }))).await
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

    async fn token(&self, client: &ClientCredentials, body: &TokenRequest) -> Result<TokenAnswer> {
        let request = self.http.request(Method::POST, &["users", "token"]);
        self.http.json(request.basic_auth(&client.id, Some(client.secret.expose())).json(body)).await
    }
}
