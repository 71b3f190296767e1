//! How a function fails: a value that names the function, the kind and the place.

use std::fmt;

use crate::contract::wire::{Dialect, FailureKind, Function, Slot};

/// Why a function gave no result. Its text is one sentence for the function's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The function that failed.
    pub slot: Slot,
    /// What went wrong with it.
    pub kind: FailureKind,
    /// The line of the function's own text, from 1, when known.
    pub line: Option<u32>,
    /// The column in that line, from 1, when known.
    pub column: Option<u32>,
    /// What it threw or why it cannot be loaded; for all other kinds what it did, as in "used up its fuel".
    pub message: String,
}

impl Failure {
    pub(crate) fn new(slot: Slot, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { slot, kind, line: None, column: None, message: message.into() }
    }

    pub(crate) fn broken(slot: Slot, reason: impl fmt::Display) -> Self {
        Self::new(slot, FailureKind::Broken, format!("broke its sandbox: {reason}"))
    }

    /// Where it failed, in parentheses and after a space; nothing if that is unknown.
    fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
            (Some(line), None) => format!(" (line {line})"),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} ", self.slot.name())?;
        match self.kind {
            FailureKind::Syntax => write!(f, "cannot be loaded{}: {}", self.place(), self.message),
            FailureKind::Thrown => write!(f, "failed{}: {}", self.place(), self.message),
            // The message of the others says what the function did.
            _ => write!(f, "{}{}", self.message, self.place()),
        }
    }
}

impl std::error::Error for Failure {}

impl Slot {
    /// All four, in the order in which a message meets them.
    pub const ALL: [Self; 4] = [Self::Decoder, Self::Converter, Self::Validator, Self::Encoder];

    /// The word for it in settings, logs and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Converter => "converter",
            Self::Validator => "validator",
            Self::Encoder => "encoder",
        }
    }
}

impl Function {
    /// The slot whose text has to define it, or which is blamed when none does.
    pub const fn slot(self) -> Slot {
        match self {
            Self::Decoder | Self::NormalizeUplink => Slot::Decoder,
            Self::Converter => Slot::Converter,
            Self::Validator => Slot::Validator,
            Self::Encoder | Self::DecodeDownlink => Slot::Encoder,
        }
    }
}

impl Dialect {
    /// All of them, in the order in which they count where a text follows several.
    pub const ALL: [Self; 3] = [Self::Ts013, Self::V2, Self::ChirpStack3];

    /// The dialect of this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The word for it in settings, logs and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::Ts013 => "ts013",
            Self::ChirpStack3 => "chirpstack3",
        }
    }

    /// The JavaScript function that it looks for in `slot`; none where it has no such step.
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
    /// The word for it in events, metrics and logs.
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
