//! Authentication: reads credentials from headers, verifies tokens, and exchanges access keys.
//!
//! Authorisation is up to each operation, based on the [`types::Claims`] that this module returns.

mod answers;
mod authenticator;
mod credential;
mod issuer;
mod verifier;

use std::sync::Arc;

use types::{AppId, CredentialError, Kind, Kinded};

pub use authenticator::Authenticator;
pub use credential::{Presented, credential_of};
pub use verifier::{TokenError, Verifier};

/// Why a request has no valid credential, or why that cannot be determined now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthError {
    /// The request has no credential.
    #[error(
        "no credential: send `Authorization: Bearer <token>` or `Authorization: Key <access key>`, or over gRPC the \
         metadata `token` or `key`"
    )]
    Missing,
    /// A header occurs twice, so that two readers could see two different callers.
    #[error("header `{header}` was sent more than once: send one credential")]
    Repeated {
        /// The header.
        header: &'static str,
    },
    /// A header is not text.
    #[error("header `{header}` not valid: must be ASCII text")]
    Text {
        /// The header.
        header: &'static str,
    },
    /// A header contains neither a token nor an access key.
    #[error(transparent)]
    Malformed(#[from] CredentialError),
    /// The token is not valid.
    #[error("token not valid: {0}")]
    Token(#[from] TokenError),
    /// The account service rejected the access key.
    #[error("access key not valid for application `{app_id}`: it may be mistyped, deleted, or of another application")]
    Key {
        /// The application that the key was used for.
        app_id: AppId,
    },
    /// The token was revoked before it expired.
    #[error("token not valid: its user, client or access key was disabled: log in again")]
    Ended,
    /// An access key was sent in a request that names no application.
    #[error("access keys are only accepted in requests that name their application: use a token")]
    KeyWithoutApplication,
    /// An account service that this component does not trust issued the access key.
    #[error("access key not valid: its issuer is not trusted here")]
    KeyIssuer,
    /// The account service cannot be reached.
    #[error("account service `{issuer}` cannot be reached: retry later")]
    Away {
        /// The account service.
        issuer: String,
        /// What went wrong.
        #[source]
        source: Arc<client::Error>,
    },
}

impl Kinded for AuthError {
    fn kind(&self) -> Kind {
        match self {
            Self::Repeated { .. } | Self::Text { .. } => Kind::Invalid,
            Self::Away { .. } => Kind::Unavailable,
            _ => Kind::Unauthenticated,
        }
    }
}
