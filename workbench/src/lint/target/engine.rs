//! The JavaScript engines of the networks, and what each lacks of the language.

use super::built_ins::{GOJA_LACKS, OTTO_LACKS};

/// A JavaScript engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// QuickJS: ECMAScript 2023, as in our sandbox.
    QuickJs,
    /// goja of October 2023, which The Things Stack 3.3x uses.
    Goja,
    /// otto before 2022: ECMAScript 5.
    Otto,
    /// Not known.
    Unknown,
    /// Not known, but documented as ECMAScript 5.
    UnknownEs5,
}

/// Syntax that not every engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// ECMAScript 2015 to 2021, but for what follows.
    Es2015,
    /// `async` generators and `for await`.
    AsyncIteration,
    /// `10n`.
    BigInt,
    /// `1_000`.
    NumericSeparator,
    /// `a ||= b`.
    LogicalAssignment,
    /// `(?<name>x)`.
    NamedGroup,
    /// `(?=x)`, `(?<=x)` and `\1`.
    LookAround,
    /// Functions in blocks that are seen outside of them.
    BlockFunction,
    /// `<!--` and `-->`.
    HtmlComment,
    /// `import(…)`.
    DynamicImport,
}

impl Engine {
    pub(crate) const fn has(self, syntax: Syntax) -> bool {
        match self {
            Self::QuickJs | Self::Unknown => true,
            Self::Goja => matches!(syntax, Syntax::Es2015 | Syntax::LookAround),
            Self::Otto => matches!(syntax, Syntax::BlockFunction),
            // Regular expressions of ECMAScript 5 have look-ahead and back-references.
            Self::UnknownEs5 => matches!(syntax, Syntax::LookAround | Syntax::BlockFunction | Syntax::HtmlComment),
        }
    }

    pub(crate) const fn is_known(self) -> bool {
        matches!(self, Self::QuickJs | Self::Goja | Self::Otto)
    }

    /// The flags of regular expressions that it knows.
    pub(crate) const fn regexp_flags(self) -> &'static str {
        match self {
            Self::QuickJs | Self::Unknown => "dgimsuvy",
            Self::Goja => "gimuy",
            Self::Otto | Self::UnknownEs5 => "gim",
        }
    }

    /// Returns the maximum number of digits that `toFixed` writes, if that is fewer than in the language.
    pub(crate) const fn fixed_digits_max(self) -> Option<u32> {
        match self {
            Self::Otto => Some(20),
            _ => None,
        }
    }

    /// Built-ins that it lacks: globals, and members by their path.
    pub(crate) const fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::QuickJs | Self::Unknown => &[],
            Self::Goja => GOJA_LACKS,
            Self::Otto | Self::UnknownEs5 => OTTO_LACKS,
        }
    }

    /// Returns the name of the engine for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::QuickJs => "QuickJS",
            Self::Goja => "goja",
            Self::Otto => "otto (ES5)",
            Self::Unknown => "its engine",
            Self::UnknownEs5 => "the documented ES5",
        }
    }
}
