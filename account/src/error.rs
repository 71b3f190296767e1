//! Why the account service refuses a call or cannot answer it.

use std::convert::Infallible;

use types::{AppEui, GatewayId, IdError, Kind, Kinded, Scope, ScopeError};

use crate::{oauth::Refusal, seal};

/// What a call gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call is refused, or why it cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something in the request is not as it must be.
    #[error("{what} not valid: {must}")]
    Invalid {
        /// What was given.
        what: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// An id is none.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A scope is none.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The body cannot be read.
    #[error("body not valid: {0}")]
    Body(String),
    /// The body comes in a form that this endpoint does not take.
    #[error("content type not supported: send {0}")]
    ContentType(&'static str),
    /// The body is larger than any that makes sense.
    #[error("body not valid: must have at most {bytes_max} bytes")]
    BodySize {
        /// The limit.
        bytes_max: usize,
    },
    /// There is no valid credential.
    #[error(transparent)]
    Credential(#[from] server::auth::AuthError),
    /// The key opens nothing here; an unknown thing and a wrong key look alike.
    #[error("access key not valid for this {0}: it may be mistyped, deleted, or of another {0}")]
    Key(&'static str),
    /// The token does not cover this.
    #[error("token lacks the scope `{0}`: exchange it at /users/restrict-token, or log in with that scope")]
    MissingScope(Scope),
    /// The caller lacks a right.
    #[error("missing right `{right}` on {what} `{id}`: ask one of its collaborators")]
    MissingRight {
        /// What sort of thing it is.
        what: &'static str,
        /// Its id.
        id: String,
        /// What is missing.
        right: &'static str,
    },
    /// The caller wants to hand out what they do not have.
    #[error("right `{0}` cannot be granted by somebody who does not have it")]
    Escalation(&'static str),
    /// Only people may do this.
    #[error("a {0} cannot do this: log in and send a user's token")]
    NotUser(&'static str),
    /// Only components may do this.
    #[error("only a component's token can do this: send client credentials as Basic, or nothing")]
    NotComponent,
    /// The token was not made for exchanging.
    #[error("token cannot be exchanged: use the one that the login gave")]
    NotInterchangeable,
    /// The user lets the client do something, but not this.
    #[error("the user did not allow this client the scope `{0}`: log in again and ask for it")]
    NoConsent(Scope),
    /// The user has no rights there, or it does not exist.
    #[error("no rights to `{0}`, or it does not exist")]
    NoRights(Scope),
    /// It would leave nobody who can add collaborators.
    #[error("the last collaborator with the right `{0}` must keep it: give it to somebody else first")]
    LastCollaborator(&'static str),
    /// Only the owner may do this.
    #[error("only its owner can give gateway `{0}` to somebody else")]
    NotOwner(GatewayId),
    /// The owner is not removed.
    #[error("the owner of {what} `{id}` stays its collaborator: give it to somebody else first")]
    OwnerStays {
        /// What sort of thing it is.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// There is none, or none that the caller may see.
    #[error("{what} `{id}` not found")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The id or name is taken.
    #[error("{what} `{id}` is taken: choose another")]
    Taken {
        /// What was to be created.
        what: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The path has other methods.
    #[error("this path does not have that method")]
    Method,
    /// Nothing is at this path.
    #[error("there is no such path here")]
    NoPath,
    /// Another application has this EUI.
    #[error("EUI {0} belongs to another application")]
    EuiTaken(AppEui),
    /// There are as many as there may be.
    #[error("{what} not added: there are {count_max} already, which is the limit; delete one first")]
    Full {
        /// What was to be added.
        what: &'static str,
        /// The limit.
        count_max: usize,
    },
    /// Every EUI that was drawn is taken.
    #[error("EUI not added: the block of this network is full, ask its operator for a larger one")]
    BlockFull,
    /// The signing key that is to come next has not begun to sign.
    #[error("a signing key waits for its hour already: rotate again when it signs, or at once")]
    KeyWaits,
    /// There are as many signing keys as there may be.
    #[error("signing key not added: the tokens of {count_max} others may still be valid, wait or rotate at once")]
    KeysVerify {
        /// The limit.
        count_max: usize,
    },
    /// Others changed the same thing all the time.
    #[error("{what} is being changed by others: try again")]
    Contended {
        /// What was to be changed.
        what: &'static str,
    },
    /// Too many passwords are being checked at once.
    #[error("too many logins at once: try again in a second")]
    Busy,
    /// Too many tries, from one address or for one user.
    #[error("too many tries: wait {} s and try again", .0.wait_s)]
    Throttled(server::limit::Exceeded),
    /// What the user was logged in with is over.
    #[error("login is over: the user logged out, changed the password, or took back what the client may do")]
    Ended,
    /// The password that was to prove who asks is wrong.
    #[error("password not valid: it is not the one until now")]
    WrongPassword,
    /// The name or password of a login is wrong; which of the two is nobody's business.
    #[error("invalid username or password")]
    Login,
    /// A browser brings the session's cookie for another site.
    #[error("request refused: it does not come from this site, open {0} and try there")]
    OtherSite(String),
    /// A token or code request is refused, in the words of OAuth 2.0.
    #[error("{reason}")]
    OAuth {
        /// The word that programs read.
        refusal: Refusal,
        /// What people read.
        reason: String,
    },
    /// A setting is not as it must be.
    #[error("setting `{name}` not valid: {must}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// A secret in the store cannot be closed or opened.
    #[error(transparent)]
    Seal(#[from] seal::Error),
    /// What the store holds is not what this version writes.
    #[error("cannot read `{key}` in the store: it was written by another version, or damaged")]
    Record {
        /// Which entry.
        key: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The frequency plans that this program was built with are not as they must be.
    #[error("cannot read the frequency plans that this program was built with")]
    FrequencyPlans(#[source] serde_json::Error),
    /// The description of the API that this program was built with is not as it must be.
    #[error("cannot read the description of the API that this program was built with")]
    Description(#[source] serde_json::Error),
    /// Cryptography failed where it should not.
    #[error("cannot {0}")]
    Crypto(&'static str),
    /// The store does not answer.
    #[error("cannot use the store")]
    Store(#[from] store::Error),
}

impl Error {
    /// A refused token request.
    pub(crate) fn oauth(refusal: Refusal, reason: impl Into<String>) -> Self {
        Self::OAuth { refusal, reason: reason.into() }
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
            Self::Body(_) | Self::ContentType(_) | Self::Setting { .. } => Kind::Invalid,
            Self::BodySize { .. } => Kind::TooLarge,
            Self::Method => Kind::Unsupported,
            Self::Credential(error) => error.kind(),
            Self::Key(_) | Self::Ended | Self::Login => Kind::Unauthenticated,
            Self::MissingScope(_) | Self::MissingRight { .. } | Self::Escalation(_) => Kind::Denied,
            Self::NotUser(_) | Self::NotComponent | Self::NotInterchangeable => Kind::Denied,
            Self::NoConsent(_) | Self::NoRights(_) | Self::WrongPassword | Self::OtherSite(_) => Kind::Denied,
            Self::NotOwner(_)
            | Self::OwnerStays { .. }
            | Self::LastCollaborator(_)
            | Self::Full { .. }
            | Self::BlockFull
            | Self::KeysVerify { .. } => Kind::Denied,
            Self::NotFound { .. } | Self::NoPath => Kind::NotFound,
            Self::Taken { .. } | Self::EuiTaken(_) | Self::KeyWaits => Kind::AlreadyExists,
            Self::Contended { .. } => Kind::Conflict,
            Self::Busy | Self::Throttled(_) => Kind::Exhausted,
            Self::OAuth { refusal: Refusal::Client, .. } => Kind::Unauthenticated,
            Self::OAuth { .. } => Kind::Invalid,
            Self::Seal(error) => error.kind(),
            Self::Record { .. } | Self::Crypto(_) | Self::Description(_) | Self::FrequencyPlans(_) => Kind::Internal,
            Self::Store(error) => match error.kind() {
                store::Kind::Unavailable | store::Kind::Exhausted => Kind::Unavailable,
                _ => Kind::Internal,
            },
        }
    }
}
