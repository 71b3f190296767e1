//! Authorization server metadata (RFC 8414).

use schemars::JsonSchema;
use serde::Serialize;
use types::Scope;

use crate::Account;

/// The metadata document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    revocation_endpoint: String,
    jwks_uri: String,
    scopes_supported: Vec<Scope>,
    response_types_supported: [&'static str; 1],
    grant_types_supported: Vec<&'static str>,
    code_challenge_methods_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 3],
    authorization_response_iss_parameter_supported: bool,
}

impl Account {
    pub(crate) fn metadata(&self) -> Metadata {
        let url = |path: &str| format!("{}{path}", self.public_url);
        let mut grants = vec!["authorization_code", "refresh_token"];
        if self.settings.password_grant {
            grants.push("password");
        }
        Metadata {
            issuer: self.public_url.to_string(),
            authorization_endpoint: url("/users/authorize"),
            token_endpoint: url("/users/token"),
            revocation_endpoint: url("/users/revoke"),
            jwks_uri: url("/.well-known/jwks.json"),
            scopes_supported: vec![Scope::Profile, Scope::Apps, Scope::Gateways, Scope::Components, Scope::Clients],
            response_types_supported: ["code"],
            grant_types_supported: grants,
            code_challenge_methods_supported: ["S256"],
            token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
            authorization_response_iss_parameter_supported: true,
        }
    }
}
