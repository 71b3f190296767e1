//! What can go wrong in the handler, as far as callers would treat it differently.

mod function;

use std::fmt;

use types::{Kind, Kinded};

pub use self::function::Fault;

/// Why the handler could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// The rule, and what is allowed.
        reason: String,
    },
    /// An id has a form that ids do not have.
    #[error(transparent)]
    Id(#[from] types::IdError),
    /// There is no such thing here.
    #[error("{what} {id} not found on this handler")]
    NotFound {
        /// The sort of thing.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The id is taken.
    #[error("{what} {id} already exists")]
    AlreadyExists {
        /// The sort of thing.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// Somebody else changed the same thing at the same time.
    #[error("{what} was changed by somebody else at the same time: read it again and retry")]
    Conflict {
        /// The thing.
        what: String,
    },
    /// A payload function cannot be used.
    #[error("payload function not valid: {0:#}")]
    Function(Box<Fault>),
    /// More payloads wait for a sandbox than may.
    #[error("too many payloads wait for a sandbox: retry later")]
    Busy(#[from] runtime::Busy),
    /// More downlinks of an application are worked on than may.
    #[error("too many downlinks at once: retry later")]
    DownlinksBusy,
    /// The credential is missing, invalid, or cannot be checked now.
    #[error(transparent)]
    Auth(#[from] server::auth::AuthError),
    /// The credential lacks the right.
    #[error("permission denied: no `{right}` right to application {app_id}")]
    Denied {
        /// What it takes; one of several is enough.
        right: String,
        /// To what.
        app_id: types::AppId,
    },
    /// The credential is not for this handler.
    #[error("permission denied: no scope `components:{id}`")]
    ComponentDenied {
        /// This handler.
        id: types::ComponentId,
    },
    /// The caller is no broker that this handler was told to trust.
    #[error("permission denied: only brokers that are named in the setting `handler.brokers` bring what devices send")]
    BrokerDenied,
    /// A device that joins has no key to join with.
    #[error("AppKey for device {dev_id} not found")]
    NoAppKey {
        /// The device.
        dev_id: types::DevId,
    },
    /// A join request was not sent by who knows the device's key.
    #[error("device that validates MIC not found")]
    WrongMic,
    /// The library for cryptography fails, which it does not.
    #[error("cannot {0}")]
    Crypto(&'static str),
    /// There were too many calls.
    #[error("Rate limit for {} \"{name}\" reached: try again in {} s", .exceeded.policy, .exceeded.wait_s)]
    Throttled {
        /// The limit, and when it has room again.
        exceeded: server::limit::Exceeded,
        /// Whose calls were counted.
        name: String,
    },
    /// A secret in the store cannot be closed or opened.
    #[error(transparent)]
    Seal(#[from] server::seal::Error),
    /// The store failed.
    #[error("store: {0}")]
    Store(#[from] store::Error),
    /// The store has an application without the texts of its functions.
    #[error("the payload functions of application {app_id} are missing in the store: save them again")]
    FunctionsMissing {
        /// The application.
        app_id: types::AppId,
    },
    /// A record in the store cannot be read, or a new one not be written.
    #[error("a record in the store cannot be read")]
    Record(#[from] serde_json::Error),
}

impl Error {
    /// A value that breaks a rule.
    pub fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    /// A thing that is not there.
    pub fn not_found(what: &'static str, id: impl fmt::Display) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// A thing that is there already.
    pub fn already_exists(what: &'static str, id: impl fmt::Display) -> Self {
        Self::AlreadyExists { what, id: id.to_string() }
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Function(fault) if fault.failure.kind == runtime::Kind::Broken => Kind::Internal,
            Self::Invalid { .. } | Self::Id(_) | Self::Function(_) => Kind::Invalid,
            Self::NotFound { .. } | Self::NoAppKey { .. } | Self::WrongMic => Kind::NotFound,
            Self::AlreadyExists { .. } => Kind::AlreadyExists,
            Self::Conflict { .. } => Kind::Conflict,
            Self::Busy(_) | Self::DownlinksBusy => Kind::Unavailable,
            Self::Throttled { .. } => Kind::Exhausted,
            Self::Auth(error) => error.kind(),
            Self::Denied { .. } | Self::ComponentDenied { .. } | Self::BrokerDenied => Kind::Denied,
            Self::Store(error) if error.kind() == store::Kind::Unavailable => Kind::Unavailable,
            Self::Store(error) if error.kind() == store::Kind::TooLarge => Kind::TooLarge,
            Self::Seal(_) | Self::Store(_) | Self::FunctionsMissing { .. } | Self::Record(_) | Self::Crypto(_) => {
                Kind::Internal
            }
        }
    }
}
