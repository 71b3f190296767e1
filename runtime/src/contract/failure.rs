//! The failure of a payload function: which one, the kind, and the position.

use std::fmt;

use crate::contract::wire::{Dialect, FailureKind, Function, Slot};

/// A failure, in place of a function's result. Its display is one sentence for the author of the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The function that failed.
    pub slot: Slot,
    /// The function that was asked for, if it was one of several in that slot.
    pub function: Option<Function>,
    /// The kind of failure.
    pub kind: FailureKind,
    /// The line in the function's source, from 1, if known.
    pub line: Option<u32>,
    /// The column in that line, from 1, in UTF-16 units as editors and other engines count, if known.
    pub column: Option<u32>,
    /// The thrown value, or the reason why it cannot be loaded; for all other kinds a predicate such as "used up its
    /// fuel".
    pub message: String,
}

impl Failure {
    pub(crate) fn new(slot: Slot, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { slot, function: None, kind, line: None, column: None, message: message.into() }
    }

    pub(crate) fn broken(slot: Slot, reason: impl fmt::Display) -> Self {
        Self::new(slot, FailureKind::Broken, format!("broke its sandbox: {reason}"))
    }

    /// The failure of a call for which no sandbox could be created; logs the cause.
    pub(crate) fn no_sandbox(slot: Slot, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(%error, cause = error.source().map(display), "cannot create a sandbox");
        Self::broken(slot, "there was no room for a sandbox: try again later")
    }

    /// The failure of a call that returned something else than such a call can return.
    pub fn malformed_reply(slot: Slot) -> Self {
        Self::broken(slot, "its reply was malformed")
    }

    /// Returns true if the same call may succeed later: the machine may have been slow, or short of room for a sandbox.
    /// All other failures depend on the call alone, so they can be remembered.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, FailureKind::Time | FailureKind::Broken)
    }

    /// The position in parentheses, with a leading space; empty if unknown.
    fn position(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
            (Some(line), None) => format!(" (line {line})"),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function {
            // What a source lacks or cannot be read for is no fault of one function.
            Some(Function::DecodeDownlink) if self.kind != FailureKind::Syntax => f.write_str("`decodeDownlink` ")?,
            Some(Function::NormalizeUplink) if self.kind != FailureKind::Syntax => f.write_str("`normalizeUplink` ")?,
            _ => write!(f, "the {} ", self.slot.name())?,
        }
        match self.kind {
            FailureKind::Syntax => write!(f, "cannot be loaded{}: {}", self.position(), self.message),
            FailureKind::Thrown => write!(f, "failed{}: {}", self.position(), self.message),
            // For the others the message is a predicate.
            _ => write!(f, "{}{}", self.message, self.position()),
        }
    }
}

impl std::error::Error for Failure {}

impl Slot {
    /// All four, in the order in which a message passes them.
    pub const ALL: [Self; 4] = [Self::Decoder, Self::Converter, Self::Validator, Self::Encoder];

    /// Its name in settings, logs and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Converter => "converter",
            Self::Validator => "validator",
            Self::Encoder => "encoder",
        }
    }
}

impl Dialect {
    /// All dialects, in order of precedence where a source follows several.
    pub const ALL: [Self; 3] = [Self::Ts013, Self::V2, Self::ChirpStack3];

    /// The dialect of this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Its name in settings, logs and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::Ts013 => "ts013",
            Self::ChirpStack3 => "chirpstack3",
        }
    }

    /// The name of the JavaScript function for `slot`; `None` if the dialect has no such function.
    pub const fn function_name(self, slot: Slot) -> Option<&'static str> {
        match (self, slot) {
            (Self::V2, Slot::Decoder) => Some("Decoder"),
            (Self::V2, Slot::Converter) => Some("Converter"),
            (Self::V2, Slot::Validator) => Some("Validator"),
            (Self::V2, Slot::Encoder) => Some("Encoder"),
            (Self::Ts013, Slot::Decoder) => Some("decodeUplink"),
            (Self::Ts013, Slot::Encoder) => Some("encodeDownlink"),
            (Self::ChirpStack3, Slot::Decoder) => Some("Decode"),
            (Self::ChirpStack3, Slot::Encoder) => Some("Encode"),
            (Self::Ts013 | Self::ChirpStack3, Slot::Converter | Slot::Validator) => None,
        }
    }
}

impl FailureKind {
    /// Its name in events, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Thrown => "thrown",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Time => "time",
            Self::Output => "output",
            Self::Broken => "broken",
        }
    }
}
