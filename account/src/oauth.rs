//! The token endpoint of OAuth 2.0: which client asks, for which grant, and what it gets.

mod client;
mod refresh;
mod registered;
mod registration;

use std::fmt;

use api::rest::account::{TokenAnswer, TokenRequest};
use types::{Scope, Secret};

use crate::{Account, Error, Result, audit, metrics, token::TOKEN_SECONDS};

use self::client::Client;

/// Why a token request is refused, in the words of RFC 6749.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Something is missing or malformed.
    Request,
    /// The client is unknown or did not prove itself.
    Client,
    /// The password, code or refresh token is not valid.
    Grant,
    /// The client may not use this grant.
    UnauthorizedClient,
    /// There is no such grant here.
    UnsupportedGrant,
    /// A scope is none, or more than may be had.
    Scope,
}

/// An id and secret from an `Authorization: Basic` header.
#[derive(Clone, Debug)]
pub(crate) struct Basic {
    pub(crate) id: String,
    pub(crate) secret: Secret,
}

impl Refusal {
    /// The word that programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "invalid_request",
            Self::Client => "invalid_client",
            Self::Grant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrant => "unsupported_grant_type",
            Self::Scope => "invalid_scope",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Account {
    /// Answers a token request.
    pub(crate) async fn token(&self, basic: Option<Basic>, request: TokenRequest) -> Result<TokenAnswer> {
        let client = self.authenticate_client(basic, request.client_id.as_deref(), &request.client_secret).await?;
        if let Some(Ok(grant)) = request.grant_type.as_deref().map(str::parse) {
            client.check_grant(grant)?;
        }
        let answer = match request.grant_type.as_deref() {
            Some("password") => self.password_grant(&client, request).await,
            Some("refresh_token") => self.refresh_grant(&client, request).await,
            Some(_) => Err(Error::oauth(Refusal::UnsupportedGrant, "grant_type must be password or refresh_token")),
            None => Err(Error::oauth(Refusal::Request, "grant_type is missing")),
        };
        answer.map_err(in_oauth_words)
    }

    async fn password_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenAnswer> {
        if !(client.first_party && self.settings.password_grant) {
            let reason = "this client may not log in with a user's password";
            return Err(Error::oauth(Refusal::UnauthorizedClient, reason));
        }
        let scope = client.scope_for(request.scope.as_deref())?;
        let (Some(username), Some(password)) = (request.username, request.password) else {
            return Err(Error::oauth(Refusal::Request, "username and password must be there"));
        };
        let Some(user) = self.user_with_password(&username, password).await? else {
            metrics::refused("password");
            audit::event("login refused", &client.id, &"password");
            return Err(Error::oauth(Refusal::Grant, "Invalid username or password"));
        };
        let access_token = self.user_token(&user, &client.id, &scope).await?;
        let refresh_token = self.begin_grant(&user.id, &client.id, &scope).await?;
        metrics::issued("password");
        audit::event("login", &user.id, &client.id);
        Ok(answer(access_token, refresh_token))
    }
}

fn answer(access_token: Secret, refresh_token: Secret) -> TokenAnswer {
    TokenAnswer {
        token_type: Some("bearer".to_owned()),
        access_token,
        expires_in: TOKEN_SECONDS,
        refresh_token: Some(refresh_token),
    }
}

/// Reads the scopes of a request.
fn parse_scope(texts: &[String]) -> Result<Vec<Scope>> {
    texts.iter().map(|text| Ok(text.parse()?)).collect()
}

/// What goes wrong with scopes has a word of its own here.
fn in_oauth_words(error: Error) -> Error {
    match error {
        Error::Scope(_) | Error::NoRights(_) | Error::Invalid { what: "scope", .. } => {
            Error::oauth(Refusal::Scope, error.to_string())
        }
        other => other,
    }
}
