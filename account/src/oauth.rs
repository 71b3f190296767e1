//! The token and revocation endpoints of OAuth 2.0.

mod authorize;
pub(crate) mod client;
mod code;
mod consent;
pub(crate) mod error_code;
mod metadata;
mod pkce;
mod redirect;
mod refresh;

use std::net::IpAddr;

use schemars::JsonSchema;

use api::rest::account::{TokenRequest, TokenResponse};
use serde::Deserialize;
use types::{Scope, Secret};

use self::{
    client::{Client, GrantType},
    refresh::RequestedScope,
};
use crate::{Account, Error, Result, metrics, token::lifetime::TOKEN_SECONDS};

pub use self::error_code::OAuthErrorCode;
pub(crate) use self::{
    authorize::{Authorization, AuthorizationRequest, ConsentRequest},
    consent::AuthorizedClient,
    metadata::Metadata,
};

/// Credentials from an `Authorization: Basic` header.
#[derive(Clone, Debug)]
pub(crate) struct Basic {
    pub(crate) id: String,
    pub(crate) secret: Secret,
}

/// A revocation request (RFC 7009).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["token"]))]
pub(crate) struct RevokeRequest {
    token: Option<Secret>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
}

impl Account {
    pub(crate) async fn token(
        &self,
        basic: Option<Basic>,
        request: TokenRequest,
        from: IpAddr,
    ) -> Result<TokenResponse> {
        let body = (request.client_id.as_deref(), &request.client_secret);
        let client = self.authenticate_client(basic, body, from).await?;
        let missing = || Error::oauth(OAuthErrorCode::InvalidRequest, "grant_type is missing");
        let grant = request.grant_type.as_deref().ok_or_else(missing)?.parse()?;
        client.check_grant(grant)?;
        let response = match grant {
            GrantType::Password => self.password_grant(&client, request, from).await,
            GrantType::AuthorizationCode => self.code_grant(&client, request).await,
            GrantType::RefreshToken => self.refresh_grant(&client, request).await,
        };
        response.map_err(to_oauth_error)
    }

    /// Revokes the grant of a refresh token. The response does not tell whether there was one.
    pub(crate) async fn revoke(&self, basic: Option<Basic>, request: RevokeRequest, from: IpAddr) -> Result<()> {
        let body = (request.client_id.as_deref(), &request.client_secret);
        let client = self.authenticate_client(basic, body, from).await?;
        let missing = || Error::oauth(OAuthErrorCode::InvalidRequest, "token is missing");
        self.revoke_token(&client, &request.token.ok_or_else(missing)?).await
    }

    /// The password grant of first-party clients, which implies the user's consent.
    async fn password_grant(&self, client: &Client, request: TokenRequest, from: IpAddr) -> Result<TokenResponse> {
        if !(client.first_party && self.settings.password_grant) {
            let reason = "this client may not use the password grant";
            return Err(Error::oauth(OAuthErrorCode::UnauthorizedClient, reason));
        }
        let scope = client.scope_for(request.scope.as_deref())?;
        let (Some(username), Some(password)) = (request.username, request.password) else {
            return Err(Error::oauth(OAuthErrorCode::InvalidRequest, "username and password are required"));
        };
        let refused = || Error::oauth(OAuthErrorCode::InvalidGrant, "Invalid username or password");
        let known = self.user_with_password(&username, password, from).await?.ok_or_else(refused)?.value;
        let user = self.give_consent(&known, client.revision(), &scope).await?;
        if user.password != known.password || user.disabled {
            return Err(refused());
        }
        let asked = if asks(request.scope.as_deref()) { RequestedScope::Scope } else { RequestedScope::Everything };
        let access_token = self.token_of_grant(&user, &client.id, (&scope, asked)).await?;
        let refresh_token = self.begin_grant(&user, &client.id, (&scope, asked)).await?;
        metrics::issued("password");
        self.audit.note("login", &user.id, &format_args!("{} from {from}", client.id));
        Ok(response(access_token, refresh_token))
    }
}

/// Returns true if a request names scopes.
fn asks(scope: Option<&[String]>) -> bool {
    scope.is_some_and(|scope| !scope.is_empty())
}

fn response(access_token: Secret, refresh_token: Secret) -> TokenResponse {
    TokenResponse {
        token_type: Some("bearer".to_owned()),
        access_token,
        expires_in: TOKEN_SECONDS,
        refresh_token: Some(refresh_token),
    }
}

fn parse_scope(texts: &[String]) -> Result<Vec<Scope>> {
    texts.iter().map(|text| Ok(text.parse()?)).collect()
}

/// OAuth has an error code of its own for invalid scopes.
fn to_oauth_error(error: Error) -> Error {
    match error {
        Error::Scope(_) | Error::NoRights(_) | Error::Invalid { what: "scope", .. } => {
            Error::oauth(OAuthErrorCode::InvalidScope, error.to_string())
        }
        other => other,
    }
}
