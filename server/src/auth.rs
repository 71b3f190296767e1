//! Who is calling: credentials out of headers, tokens checked, access keys exchanged.
//!
//! What a caller may do is decided where it is done, from the [`types::Claims`] that come out of here.

mod answers;
mod authenticator;
mod credential;
mod issuer;
mod verifier;

use std::sync::Arc;

use types::{AppId, CredentialError, Kind, Kinded};

pub use authenticator::Authenticator;
pub use credential::credential_of;
pub use verifier::{TokenError, Verifier};

/// Why a call has no valid credential, or why that cannot be known now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthError {
    /// The call brings no credential.
    #[error(
        "no credential: send `Authorization: Bearer <token>` or `Authorization: Key <access key>`, or over gRPC the \
         metadata `token` or `key`"
    )]
    Missing,
    /// A header that may come once came twice, so that two readers could see two callers.
    #[error("header `{header}` was sent more than once: send one credential")]
    Repeated {
        /// The header.
        header: &'static str,
    },
    /// A header is no text.
    #[error("header `{header}` not valid: must be ASCII text")]
    Text {
        /// The header.
        header: &'static str,
    },
    /// A header holds neither a token nor an access key.
    #[error(transparent)]
    Malformed(#[from] CredentialError),
    /// The token is not valid.
    #[error("token not valid: {0}")]
    Token(#[from] TokenError),
    /// The account service refuses the access key.
    #[error("access key not valid for application `{app_id}`: it may be mistyped, deleted, or of another application")]
    Key {
        /// For which application it was shown.
        app_id: AppId,
    },
    /// The token is over before its time.
    #[error("token not valid: its user, its client or its access key was shut out: log in again")]
    Ended,
    /// An access key came where no application is named.
    #[error("an access key opens only calls that name its application: use a token here")]
    KeyWithoutApplication,
    /// The access key comes from an account service that this component does not know.
    #[error("access key not valid: its issuer is not trusted here")]
    KeyIssuer,
    /// The account service cannot be asked.
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
