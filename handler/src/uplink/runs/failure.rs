//! Kinds of failure of an uplink. Not the texts: what functions throw may hold personal data.

use runtime::FailureKind;
use types::Timestamp;

use crate::payload::{DecodeError, Decoded, Validity};

/// The reason why an uplink has no fields, or was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// A payload function failed.
    Function(FailureKind),
    /// The payload is not valid Cayenne LPP.
    CayenneLpp,
    /// The validator returned false.
    Invalid,
}

/// The failure that an application had last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When it was counted.
    pub time: Timestamp,
    /// Its kind.
    pub failure: RunFailure,
}

impl RunFailure {
    /// None if the payload was decoded, or there was nothing to decode it with.
    pub(in crate::uplink) fn of(decoded: &Decoded) -> Option<Self> {
        match &decoded.error {
            Some(DecodeError::Function(failure)) => Some(Self::Function(failure.kind)),
            Some(DecodeError::CayenneLpp(_)) => Some(Self::CayenneLpp),
            None => (decoded.validity == Validity::Invalid).then_some(Self::Invalid),
        }
    }

    /// Its name: that of the function's failure, `cayenne_lpp` or `invalid`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function(kind) => kind.name(),
            Self::CayenneLpp => "cayenne_lpp",
            Self::Invalid => "invalid",
        }
    }
}
