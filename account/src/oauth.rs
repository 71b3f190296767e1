//! The OAuth 2.0 token endpoint: client authentication, grants, and their tokens.

mod authorize;
pub(crate) mod client;
mod code;
mod consent;
mod metadata;
mod pkce;
mod redirect;
mod refresh;
pub(crate) mod registered;
mod registration;

use std::{fmt, net::IpAddr};

use api::rest::account::{TokenAnswer, TokenRequest};
use serde::Deserialize;
use types::{Scope, Secret};

use self::client::{Client, GrantType};
use crate::{Account, Error, Result, audit, metrics, token::TOKEN_SECONDS};

pub use self::{
    authorize::{Authorization, AuthorizationRequest, Question},
    consent::AuthorizedClient,
    metadata::Metadata,
};
pub(crate) use self::{
    consent::Consent,
    registered::{check_own_uri, check_scope},
};

/// Error codes of RFC 6749.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A parameter is missing or malformed.
    Request,
    /// The client is unknown or failed to authenticate.
    Client,
    /// The password, code or refresh token is invalid.
    Grant,
    /// The client may not use this grant.
    UnauthorizedClient,
    /// The grant is not supported.
    UnsupportedGrant,
    /// A scope is malformed or not allowed.
    Scope,
    /// The authorization endpoint only returns codes.
    UnsupportedResponse,
    /// The user refused.
    Denied,
}

/// Client credentials from an `Authorization: Basic` header.
#[derive(Clone, Debug)]
pub(crate) struct Basic {
    pub(crate) id: String,
    pub(crate) secret: Secret,
}

/// A revocation request (RFC 7009).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RevokeRequest {
    token: Option<Secret>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
}

impl Refusal {
    /// The error code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "invalid_request",
            Self::Client => "invalid_client",
            Self::Grant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrant => "unsupported_grant_type",
            Self::Scope => "invalid_scope",
            Self::UnsupportedResponse => "unsupported_response_type",
            Self::Denied => "access_denied",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Account {
    /// Handles a token request.
    pub(crate) async fn token(&self, basic: Option<Basic>, request: TokenRequest, from: IpAddr) -> Result<TokenAnswer> {
        let client = self.authenticate_client(basic, request.client_id.as_deref(), &request.client_secret).await?;
        let missing = || Error::oauth(Refusal::Request, "grant_type is missing");
        let grant = request.grant_type.as_deref().ok_or_else(missing)?.parse()?;
        client.check_grant(grant)?;
        let answer = match grant {
            GrantType::Password => self.password_grant(&client, request, from).await,
            GrantType::AuthorizationCode => self.code_grant(&client, request).await,
            GrantType::RefreshToken => self.refresh_grant(&client, request).await,
        };
        answer.map_err(in_oauth_words)
    }

    /// Revokes the grant of a refresh token. The response does not tell whether there was one.
    pub(crate) async fn revoke(&self, basic: Option<Basic>, request: RevokeRequest) -> Result<()> {
        let client = self.authenticate_client(basic, request.client_id.as_deref(), &request.client_secret).await?;
        let missing = || Error::oauth(Refusal::Request, "token is missing");
        self.revoke_token(&client, &request.token.ok_or_else(missing)?).await
    }

    /// A password typed into a first-party program implies consent.
    async fn password_grant(&self, client: &Client, request: TokenRequest, from: IpAddr) -> Result<TokenAnswer> {
        if !(client.first_party && self.settings.password_grant) {
            let reason = "this client may not use the password grant";
            return Err(Error::oauth(Refusal::UnauthorizedClient, reason));
        }
        let scope = client.scope_for(request.scope.as_deref())?;
        let (Some(username), Some(password)) = (request.username, request.password) else {
            return Err(Error::oauth(Refusal::Request, "username and password must be there"));
        };
        let refused = || Error::oauth(Refusal::Grant, "Invalid username or password");
        let known = self.user_with_password(&username, password, from).await?.ok_or_else(refused)?.value;
        let user = self.give_consent(&known, &client.id, &scope).await?;
        if user.password != known.password || user.disabled {
            return Err(refused());
        }
        let access_token = self.user_token(&user, &client.id, &scope).await?;
        let refresh_token = self.begin_grant(&user, &client.id, &scope).await?;
        metrics::issued("password");
        audit::event("login", &user.id, &format_args!("{} from {from}", client.id));
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

/// Parses the scopes of a request.
fn parse_scope(texts: &[String]) -> Result<Vec<Scope>> {
    texts.iter().map(|text| Ok(text.parse()?)).collect()
}

/// OAuth has its own error code for scopes.
fn in_oauth_words(error: Error) -> Error {
    match error {
        Error::Scope(_) | Error::NoRights(_) | Error::Invalid { what: "scope", .. } => {
            Error::oauth(Refusal::Scope, error.to_string())
        }
        other => other,
    }
}
