//! Errors that keep a codec from being judged.

use axum::response::{IntoResponse, Response};
use server::error_response::ErrorResponse;
use tokio::task::JoinError;
use types::{Kind, Kinded};

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The request comes from a page of another site.
    #[error("only the playground itself may ask this: open the address that `airlock playground` printed")]
    OtherSite,
    /// There are more uplinks than are run.
    #[error("{count} uplinks are too many: send at most {max}")]
    Uplinks {
        /// The number of uplinks.
        count: usize,
        /// The number that is allowed.
        max: usize,
    },
    /// A payload is something else than hexadecimal.
    #[error("the payload of line {0} is not hexadecimal")]
    Payload(u32),
    /// There is no such dialect.
    #[error("there is no dialect `{0}`: use ts013, v2 or chirpstack3, or none to detect it")]
    Dialect(String),
    /// There is no such network.
    #[error("there is no network `{0}`: use one of /networks.json")]
    Target(String),
    /// As many codecs as allowed are being judged.
    #[error("other codecs are being judged: try again in a moment")]
    Busy,
    /// The sandbox does not start.
    #[error("the sandbox cannot start")]
    Sandbox(#[source] runtime::Error),
    /// The work ended early.
    #[error("judging the codec failed")]
    Ended(#[source] JoinError),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::OtherSite => Kind::Denied,
            Self::Uplinks { .. } | Self::Payload(_) | Self::Dialect(_) | Self::Target(_) => Kind::Invalid,
            Self::Busy => Kind::Unavailable,
            Self::Sandbox(_) | Self::Ended(_) => Kind::Internal,
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        ErrorResponse::account(&self).into_response()
    }
}
