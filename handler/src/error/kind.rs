//! The kind of each error of the handler, which decides on the status that callers get.

use types::{Kind, Kinded, RateLimitExceeded};

use super::Error;

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Shared(error) => error.kind(),
            Self::NotAdmitted(refusal) => refusal.kind(),
            Self::LineTooLong { .. } | Self::NoUplinks { .. } => Kind::TooLarge,
            Self::Stopping | Self::BodyCut => Kind::Unavailable,
            Self::Paused { .. } => Kind::Timeout,
            Self::Function(error) if error.failure.kind == runtime::FailureKind::Broken => Kind::Internal,
            Self::Invalid { .. } | Self::Id(_) | Self::Function(_) | Self::UplinkMic => Kind::Invalid,
            Self::NotFound { .. }
            | Self::VersionNotFound { .. }
            | Self::NoCandidate(_)
            | Self::Moved
            | Self::NoAppKey(_)
            | Self::NoSession(_)
            | Self::WrongMic => Kind::NotFound,
            Self::AlreadyExists { .. } | Self::CandidateExists { .. } => Kind::AlreadyExists,
            Self::Conflict(_)
            | Self::Moving(_)
            | Self::HandingOver(_)
            | Self::Running { .. }
            | Self::RunningElsewhere { .. } => Kind::Conflict,
            Self::Busy(_)
            | Self::WebhookUnknown
            | Self::Unidentified { .. }
            | Self::NetworkBrokerGone
            | Self::NetworkBrokersBusy
            | Self::RecordUnreadable { .. }
            | Self::CorrectionNotKept(_)
            | Self::ClaimLost { .. }
            | Self::NoRoom(_)
            | Self::Unpublished(_) => Kind::Unavailable,
            Self::RateLimited { .. } => Kind::Exhausted,
            Self::Auth(error) => error.kind(),
            Self::Output(error) => error.kind(),
            Self::Audit(error) => error.kind(),
            Self::History(error) => error.kind(),
            Self::NetworkBroker { reason, .. } | Self::DeviceToken(reason) => reason.kind(),
            Self::NetworkBrokerAway(_) => Kind::NotFound,
            Self::NetworkServerRefused { kind, .. } => *kind,
            Self::HandlerToken | Self::Discovery(_) => Kind::Unavailable,
            Self::Denied { .. }
            | Self::ComponentDenied(_)
            | Self::NetworkBrokerDenied
            | Self::NetworkBrokerKey(_)
            | Self::WebhookCaller => Kind::Denied,
            Self::Store(error) if error.kind() == store::ErrorKind::Unavailable => Kind::Unavailable,
            Self::Store(error) if error.kind() == store::ErrorKind::Full => Kind::Full,
            Self::Store(error) if error.kind() == store::ErrorKind::TooLarge => Kind::TooLarge,
            Self::Unpublishable(_) => Kind::TooLarge,
            Self::Seal(_)
            | Self::Store(_)
            | Self::FunctionsMissing(_)
            | Self::Record(_)
            | Self::DeviceRecord(_)
            | Self::Crypto(_) => Kind::Internal,
        }
    }

    fn exceeded(&self) -> Option<&RateLimitExceeded> {
        match self {
            Self::RateLimited { exceeded, .. } => Some(exceeded),
            Self::Shared(error) => error.exceeded(),
            Self::Audit(error) => error.exceeded(),
            _ => None,
        }
    }

    fn is_cause_logged(&self) -> bool {
        match self {
            Self::Auth(error) => error.is_cause_logged(),
            Self::Shared(error) => error.is_cause_logged(),
            // History logs each file that cannot be read once.
            Self::RecordUnreadable { .. } => true,
            Self::NotAdmitted(_) | Self::Stopping | Self::BodyCut | Self::Paused { .. } => true,
            _ => false,
        }
    }
}
