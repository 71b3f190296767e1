//! Errors at the start of the codec service, and of requests to it.

use std::{fmt, io, path::PathBuf};

use runtime::{Failure, FailureKind};
use types::{Kind, Kinded};

use crate::{cost::Cost, name::CodecName};

/// Reasons why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings name no directory.
    #[error("no directory of codecs is set: set `codecs.dir`")]
    NoDirectory,
    /// The directory cannot be read.
    #[error("cannot read the directory of codecs {}: check that it exists and who may use it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The key file cannot be read.
    #[error("cannot read the key file {}: check that it exists and who may use it", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The key is too short to be secret, or has blanks.
    #[error("the key in {} must be one word of at least 16 characters: make one with `openssl rand -hex 32`", .0.display())]
    KeyTooShort(PathBuf),
}

/// Reasons why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A part of the request breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// The part.
        what: &'static str,
        /// The rule.
        reason: String,
    },
    /// There is no such codec.
    #[error("codec {0} not found: save it with PUT, or put {0}.js in the directory of codecs")]
    NotFound(String),
    /// The key is missing or wrong.
    #[error("key missing or wrong: send it as `Authorization: Bearer KEY`")]
    Unauthenticated,
    /// The key cannot be compared with the right one.
    #[error("the key cannot be checked now: the service cannot read its file, or there is no key in it")]
    Unverified,
    /// A request names a host that is not this service's.
    #[error("the service does not answer for this host: add it to `codecs.hosts`, or set `codecs.key_file`")]
    Host,
    /// Codecs cannot be changed over HTTP without a key.
    #[error("codecs can only be changed by whoever has the key: set `codecs.key_file`")]
    ReadOnly,
    /// There are as many codecs as allowed.
    #[error("there are {0} codecs already: delete one, or raise `codecs.codecs_max`")]
    Full(usize),
    /// The codec failed, or cannot be loaded.
    #[error("codec {name}: {failure}")]
    Codec {
        /// The codec.
        name: String,
        /// The failure and its position.
        failure: Failure,
        /// The cost of the run, up to the failure.
        cost: Box<Cost>,
    },
    /// The file of a codec cannot be read.
    #[error("codec {name}: {problem}")]
    Unreadable {
        /// The codec.
        name: String,
        /// Reason why its file cannot be read.
        problem: String,
    },
    /// The source of a codec is empty.
    #[error("codec {0} is empty: it must define a function such as `decodeUplink`")]
    Empty(String),
    /// The codec has no function for this message.
    #[error("codec {name} cannot {direction}: it defines no such function")]
    NoFunction {
        /// The codec.
        name: String,
        /// The requested direction: `decode` or `encode`.
        direction: &'static str,
    },
    /// Too many messages wait for a sandbox.
    #[error("too many messages of this codec wait for a sandbox: send fewer at a time, or try again later")]
    Busy,
    /// The codec cannot be saved or deleted.
    #[error("cannot change the directory of codecs: check its owner and free space")]
    Change(#[source] io::Error),
}

impl Error {
    pub(crate) fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    pub(crate) fn not_found(name: &CodecName) -> Self {
        Self::NotFound(name.to_string())
    }

    /// A codec that cannot be loaded.
    pub(crate) fn cannot_load(name: &CodecName, failure: Failure) -> Self {
        Self::Codec { name: name.to_string(), failure, cost: Box::default() }
    }
}

impl Error {
    /// Returns true if the same codec may work the next time.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::Codec { failure, .. } => failure.may_pass(),
            _ => false,
        }
    }
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Codec { failure, .. } if failure.kind == FailureKind::Broken => Kind::Internal,
            Self::Invalid { .. } | Self::Codec { .. } | Self::Empty(_) | Self::NoFunction { .. } => Kind::Invalid,
            Self::NotFound(_) => Kind::NotFound,
            Self::Unauthenticated => Kind::Unauthenticated,
            Self::ReadOnly | Self::Full(_) | Self::Host => Kind::Denied,
            Self::Busy | Self::Unreadable { .. } | Self::Unverified => Kind::Unavailable,
            Self::Change(_) => Kind::Internal,
        }
    }
}
