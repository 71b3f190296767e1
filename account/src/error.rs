//! Errors of the account service.

use std::convert::Infallible;

use server::{audit::AuditError, secret_file::SecretFileError};
use types::{AppEui, ClientId, IdError, Kind, Kinded, RateLimitExceeded, Scope, ScopeError, Username};

use crate::{oauth::error_code::OAuthErrorCode, provider::error::ProviderError, seal};

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of the account service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value breaks a rule.
    #[error("{what} not valid: {must}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// The broken rule, such as `must have 8 to 128 characters`.
        must: &'static str,
    },
    /// An id is malformed.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A scope is malformed.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The body cannot be read.
    #[error("body not valid: {0}")]
    Body(String),
    /// The content type is not supported.
    #[error("content type not supported: send {0}")]
    ContentType(&'static str),
    /// The body is too large.
    #[error("body not valid: must have at most {bytes_max} bytes")]
    BodySize {
        /// The limit.
        bytes_max: usize,
    },
    /// The credential is missing or invalid.
    #[error(transparent)]
    Credential(#[from] server::auth::AuthError),
    /// The key is not valid here; an unknown entity and a wrong key give the same error.
    #[error("access key not valid for this {0}: it may be mistyped, deleted, or of another {0}")]
    InvalidKey(&'static str),
    /// The token does not cover this.
    #[error("token lacks the scope `{0}`: exchange it at /users/restrict-token, or log in with that scope")]
    MissingScope(Scope),
    /// The caller lacks a right.
    #[error("missing right `{right}` on {what} `{id}`: ask one of its collaborators")]
    MissingRight {
        /// The kind of entity.
        what: &'static str,
        /// Its id.
        id: String,
        /// The missing right.
        right: &'static str,
    },
    /// The caller tries to grant a right that they lack.
    #[error("right `{0}` cannot be granted by somebody who lacks it")]
    Escalation(&'static str),
    /// Only users may do this.
    #[error("a {0} cannot do this: log in and send a user's token")]
    NotUser(&'static str),
    /// Only components may do this.
    #[error("only a component's token can do this: send client credentials as Basic, or nothing")]
    NotComponent,
    /// Only components of the operator may do this.
    #[error("only the operator's components can do this: `airlock account components token` issues tokens for them")]
    NotOperatorComponent,
    /// Only operators may do this.
    #[error("only operators can do this: their ids are in `account.operators`")]
    NotOperator,
    /// The link to the first account is not, or no longer, valid.
    #[error(
        "the link to the first account works once, until the server is started again: log in, or open the link that the \
         server printed last"
    )]
    FirstAccountLink,
    /// Operators must not do this with the programs of others.
    #[error("only our own programs can do this: use the console, or log in with `airlock user login`")]
    ForeignProgram,
    /// The token cannot be exchanged.
    #[error("token cannot be exchanged: use the one from the login")]
    NotInterchangeable,
    /// The user did not grant the client this scope.
    #[error("the user did not allow this client the scope `{0}`: log in again and ask for it")]
    NoConsent(Scope),
    /// The user has no rights to the entity, or it does not exist.
    #[error("no rights to `{0}`, or it does not exist")]
    NoRights(Scope),
    /// Nobody would be left who can add collaborators.
    #[error("the last collaborator with the right `{0}` must keep it: give it to somebody else first")]
    LastCollaborator(&'static str),
    /// Only the owner may do this.
    #[error("only its owner can transfer {what} `{id}`")]
    NotOwner {
        /// The kind of entity.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// Whoever takes over an application must be able to do everything with it.
    #[error("`{0}` cannot take over the application: add them as a collaborator with all rights first")]
    NotHeir(Username),
    /// The owner cannot be removed.
    #[error("the owner of {what} `{id}` cannot be removed: transfer it first")]
    OwnerStays {
        /// The kind of entity.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// It does not exist, or the caller may not see it.
    #[error("{what} `{id}` not found")]
    NotFound {
        /// Kind of the item.
        what: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The id or name is taken.
    #[error("{what} `{id}` is taken: choose another")]
    Taken {
        /// Kind of the item.
        what: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The path has other methods.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// Nothing is at this path.
    #[error("path not found")]
    PathNotFound,
    /// Another application has this EUI.
    #[error("EUI {0} belongs to another application")]
    EuiTaken(AppEui),
    /// A limit on the number of items was reached.
    #[error("{what} not added: the limit is {count_max}; delete one first")]
    Full {
        /// Kind of the item.
        what: &'static str,
        /// The limit.
        count_max: usize,
    },
    /// All randomly chosen EUIs were taken.
    #[error("EUI not added: the block of this network is full, ask its operator for a larger one")]
    EuiBlockFull,
    /// The signing key that is to come next has not begun to sign.
    #[error("the next signing key is not in use yet: wait until it is, or rotate at once")]
    RotationPending,
    /// A limit on the number of signing keys was reached.
    #[error("signing key not added: tokens of {count_max} others may still be valid; wait, or rotate at once")]
    TooManySigningKeys {
        /// The limit.
        count_max: usize,
    },
    /// Concurrent changes kept interfering.
    #[error("{what} is being changed by others: try again later")]
    Contended {
        /// Kind of the item.
        what: &'static str,
    },
    /// Too many passwords are being verified.
    #[error("too many logins at once: try again in a second")]
    Busy,
    /// A rate limit was exceeded.
    #[error("too many attempts: try again in {} s", .0.wait_s)]
    RateLimited(RateLimitExceeded),
    /// The session or token was revoked.
    #[error("session or token revoked: the user logged out, changed the password, or revoked the access of the client")]
    LoginEnded,
    /// The component was deleted, or its tokens were ended.
    #[error(
        "token of component `{0}` revoked: the component was deleted, a collaborator was removed, or the operator revoked \
         its tokens; get a new token"
    )]
    ComponentTokenEnded(String),
    /// The current password is wrong.
    #[error("current password not valid")]
    WrongPassword,
    /// The name or password of a login is wrong. The error does not tell which.
    #[error("invalid username or password")]
    InvalidLogin,
    /// A login at an OpenID Connect provider failed.
    #[error("login with {title} failed: {reason}")]
    Provider {
        /// The provider's name for users.
        title: String,
        /// The check that failed.
        reason: ProviderError,
    },
    /// Another user has linked this login.
    #[error("this login is linked with another account: unlink it there first")]
    LinkedElsewhere,
    /// The user has linked another login at this provider.
    #[error("your account is linked with another login there: unlink that one first")]
    LinkedAlready,
    /// The user would have no way to log in.
    #[error("this is your only way to log in: set a password first")]
    LastLogin,
    /// A user without a password must log in again before this.
    #[error("your login is older than ten minutes: log out, log in again, and then repeat this")]
    LoginTooOld,
    /// A file with a secret cannot be used.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// Another site caused the browser to send the request.
    #[error("cross-site request refused: open {0} and try again there")]
    OtherSite(String),
    /// The client that the user allows is no longer what the user was shown.
    #[error("`{0}` has changed since you were asked: go back to it, log in again, and check what it may do now")]
    ClientChanged(ClientId),
    /// An authorization or token request was refused.
    #[error("{reason}")]
    OAuth {
        /// The error code, for programs.
        code: OAuthErrorCode,
        /// The description, for people.
        reason: String,
    },
    /// A setting is invalid.
    #[error("setting `{name}` not valid: {must}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// The broken rule, such as `must have 8 to 128 characters`.
        must: &'static str,
    },
    /// Sealing or opening a secret failed.
    #[error(transparent)]
    Seal(#[from] seal::SealError),
    /// A document in the store cannot be parsed.
    #[error("cannot read `{key}` in the store: it was written by another version, or damaged")]
    Record {
        /// Its key.
        key: String,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// The built-in frequency plans are invalid.
    #[error("cannot read the built-in frequency plans")]
    FrequencyPlans(#[source] serde_json::Error),
    /// Unexpected failure in the crypto library, or of the operating system.
    #[error("cannot {0}")]
    Crypto(&'static str),
    /// The change cannot be recorded in the audit log.
    #[error(transparent)]
    Audit(AuditError),
    /// The store failed or is unavailable.
    #[error("{}", .0.summary())]
    Store(#[from] store::Error),
}

impl Error {
    /// Shorthand for [`Error::OAuth`].
    pub(crate) fn oauth(code: OAuthErrorCode, reason: impl Into<String>) -> Self {
        Self::OAuth { code, reason: reason.into() }
    }
}

impl From<AuditError> for Error {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::TooManyChanges(exceeded) => Self::RateLimited(exceeded),
            error @ AuditError::Unwritable { .. } => Self::Audit(error),
        }
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } | Self::Id(_) | Self::Scope(_) => Kind::Invalid,
            Self::Body(_) | Self::ContentType(_) | Self::Setting { .. } | Self::SecretFile(_) => Kind::Invalid,
            Self::BodySize { .. } => Kind::TooLarge,
            Self::MethodNotAllowed => Kind::Unsupported,
            Self::Credential(error) => error.kind(),
            Self::Provider { reason, .. } => reason.kind(),
            Self::LinkedElsewhere | Self::LinkedAlready => Kind::AlreadyExists,
            Self::LastLogin | Self::LoginTooOld => Kind::Denied,
            Self::InvalidKey(_) | Self::LoginEnded | Self::InvalidLogin => Kind::Unauthenticated,
            Self::ComponentTokenEnded(_) => Kind::Unauthenticated,
            Self::MissingScope(_) | Self::MissingRight { .. } | Self::Escalation(_) => Kind::Denied,
            Self::NotUser(_) | Self::NotComponent | Self::NotOperatorComponent | Self::NotInterchangeable => {
                Kind::Denied
            }
            Self::NotOperator | Self::FirstAccountLink | Self::ForeignProgram => Kind::Denied,
            Self::NoConsent(_) | Self::NoRights(_) | Self::WrongPassword | Self::OtherSite(_) => Kind::Denied,
            Self::NotOwner { .. }
            | Self::NotHeir(_)
            | Self::OwnerStays { .. }
            | Self::LastCollaborator(_)
            | Self::Full { .. }
            | Self::EuiBlockFull
            | Self::TooManySigningKeys { .. } => Kind::Denied,
            Self::NotFound { .. } | Self::PathNotFound => Kind::NotFound,
            Self::Taken { .. } | Self::EuiTaken(_) => Kind::AlreadyExists,
            Self::Contended { .. } | Self::ClientChanged(_) | Self::RotationPending => Kind::Conflict,
            Self::Busy | Self::RateLimited(_) => Kind::Exhausted,
            Self::OAuth { code: OAuthErrorCode::InvalidClient, .. } => Kind::Unauthenticated,
            Self::OAuth { .. } => Kind::Invalid,
            Self::Seal(error) => error.kind(),
            Self::Audit(error) => error.kind(),
            Self::Record { .. } | Self::Crypto(_) | Self::FrequencyPlans(_) => Kind::Internal,
            Self::Store(error) => match error.kind() {
                store::ErrorKind::Unavailable => Kind::Unavailable,
                store::ErrorKind::Full => Kind::Full,
                _ => Kind::Internal,
            },
        }
    }

    fn exceeded(&self) -> Option<&RateLimitExceeded> {
        if let Self::RateLimited(exceeded) = self { Some(exceeded) } else { None }
    }

    fn is_cause_logged(&self) -> bool {
        matches!(self, Self::Provider { .. })
    }
}
