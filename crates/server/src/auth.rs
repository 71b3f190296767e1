//! Authentication: reads credentials from headers, verifies tokens, exchanges access keys.
//!
//! Each operation checks the [`types::Claims`] itself. `rule` decides what is allowed while the account service cannot
//! be asked.

mod authenticator;
mod component_token;
mod credential;
mod entity;
mod issuer;
mod local_account;
mod memory;
mod metrics;
mod public_keys;
mod rule;
mod settings;
mod verifier;

use std::sync::Arc;

use types::{AppId, CredentialError, Kind, Kinded};

pub use authenticator::{Authenticator, TrustedAccount};
pub use component_token::{ComponentToken, RenewError, TokenSource, expiry_of};
pub(crate) use credential::credential_header;
pub use credential::{Caller, Presented, credential_of};
pub use local_account::LocalAccount;
pub use rule::{Purpose, Unconfirmed};
pub use settings::AuthSettings;
pub use verifier::{SelfSigned, TokenError, Verifier};

/// Reasons why a call is not authenticated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthError {
    /// The call has no credential.
    #[error(
        "no credential: send `Authorization: Bearer <token>` or `Authorization: Key <access key>`, or over gRPC the \
         metadata `token` or `key`"
    )]
    Missing,
    /// A header came twice, so that two readers could see two callers.
    #[error("header `{header}` was sent more than once: send one credential")]
    Repeated {
        /// Its name.
        header: &'static str,
    },
    /// A header is not ASCII text.
    #[error("header `{header}` not valid: must be ASCII text")]
    Text {
        /// Its name.
        header: &'static str,
    },
    /// A header has neither a token nor an access key.
    #[error(transparent)]
    Malformed(#[from] CredentialError),
    /// The token is not valid.
    #[error("token not valid: {0}")]
    Token(#[from] TokenError),
    /// The account service refused the access key.
    #[error("access key not valid for application `{app_id}`: it may be mistyped, deleted, or of another application")]
    Key {
        /// The application that the call is about.
        app_id: AppId,
    },
    /// The token was revoked before it expired.
    #[error("token not valid: it was revoked: log in again")]
    Revoked,
    /// An access key came with a call that names no application.
    #[error("access keys are accepted only for calls that name their application: use a token here")]
    KeyWithoutApplication,
    /// The access key's issuer is not trusted here, or it names none, and it could be one of several.
    #[error("access key not valid: it must begin with an issuer that is trusted here, and a dot")]
    KeyIssuer,
    /// The account service does not answer.
    #[error("account service `{issuer}` cannot be reached: try again later")]
    Unavailable {
        /// The account service.
        issuer: String,
        /// The error of the client.
        #[source]
        source: Arc<client::Error>,
    },
    /// The account service refused this component's own token, so it cannot be asked about others.
    #[error(
        "this component is not accepted by account service `{issuer}`, which says nothing about your credential: try \
         again later, or tell the operator to renew the component's token"
    )]
    NotAccepted {
        /// The account service.
        issuer: String,
    },
    /// The account service exchanged an access key for a token that is not valid here.
    #[error("account service `{issuer}` issued a token that cannot be used here: {reason}: try again later")]
    Issued {
        /// The account service.
        issuer: String,
        /// Reason why the token is not valid.
        reason: TokenError,
    },
    /// There is no response about the credential, and earlier ones do not suffice.
    #[error("{why}: {}", cause_text(.cause.as_deref()))]
    Unconfirmed {
        /// Reason why earlier responses do not suffice.
        why: Unconfirmed,
        /// The error that kept the response away; `None` if the question was not repeated.
        cause: Option<Arc<AuthError>>,
    },
}

impl AuthError {
    /// Returns true if the account service could not be asked, so that the error is not its response.
    fn is_silence(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NotAccepted { .. } | Self::Issued { .. })
    }
}

fn cause_text(cause: Option<&AuthError>) -> String {
    cause.map_or_else(|| "the account service does not answer: try again later".to_owned(), ToString::to_string)
}

impl Kinded for AuthError {
    fn kind(&self) -> Kind {
        match self {
            Self::Repeated { .. } | Self::Text { .. } => Kind::Invalid,
            Self::Unavailable { .. } | Self::NotAccepted { .. } | Self::Issued { .. } | Self::Unconfirmed { .. } => {
                Kind::Unavailable
            }
            _ => Kind::Unauthenticated,
        }
    }

    /// The beginning of an outage is logged. During it, anybody can cause any number of these.
    fn is_cause_logged(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NotAccepted { .. } | Self::Unconfirmed { .. })
    }
}
