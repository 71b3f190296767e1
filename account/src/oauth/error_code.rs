//! The error codes of OAuth 2.0 (RFC 6749 sections 4.1.2.1 and 5.2).

use std::fmt;

/// Reasons for refusing an authorization or token request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthErrorCode {
    /// A parameter is missing or malformed.
    InvalidRequest,
    /// The client is unknown, or its authentication failed.
    InvalidClient,
    /// The password, code or refresh token is not valid.
    InvalidGrant,
    /// The client may not use this grant type.
    UnauthorizedClient,
    /// This server does not support the grant type.
    UnsupportedGrantType,
    /// The scope is malformed, or exceeds what the client or the user may have.
    InvalidScope,
    /// The authorization endpoint issues codes only.
    UnsupportedResponseType,
    /// The user denied the request.
    AccessDenied,
}

impl OAuthErrorCode {
    /// The value of `error` in a response.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::AccessDenied => "access_denied",
        }
    }
}

impl fmt::Display for OAuthErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
