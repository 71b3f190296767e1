//! Findings against a target.

use serde::Serialize;

/// A rule, by the name that stays the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The text cannot be parsed.
    SyntaxError,
    /// The text can be parsed, but not as strict code.
    StrictSyntax,
    /// It has `import` or `export` that the target refuses.
    ModuleSyntax,
    /// It has syntax that the target's engine does not know.
    NewerSyntax,
    /// It has a regular expression that the target's engine does not know.
    UnsupportedRegexp,
    /// It has more characters than the target accepts.
    TooLong,
    /// No function has the name that the target calls.
    MissingEntryPoint,
    /// The function that the target calls returns a promise.
    AsyncEntryPoint,
    /// Strict code assigns a variable that nothing declares.
    UndeclaredVariable,
    /// It assigns a name that the target imports, and that cannot be changed.
    ReadOnly,
    /// It uses a global that the target lacks.
    MissingGlobal,
    /// It uses a built-in that the target's engine lacks.
    MissingBuiltIn,
    /// It cannot be loaded by the target's rules.
    CannotLoad,
    /// An example fails by the target's rules.
    ExampleFails,
    /// An example returns something else by the target's rules.
    ExampleDiffers,
    /// The result is not what the target takes.
    WrongResult,
    /// It reads or writes a time of the clock on the wall, which differs between servers.
    LocalTime,
}

impl Rule {
    /// All of them, with what each says.
    pub const ALL: [(Self, &'static str); 17] = [
        (Self::SyntaxError, "The text cannot be parsed"),
        (Self::StrictSyntax, "The text is not valid as strict code"),
        (Self::ModuleSyntax, "The network refuses this import or export"),
        (Self::NewerSyntax, "The network's engine does not know this syntax"),
        (Self::UnsupportedRegexp, "The network's engine does not know this regular expression"),
        (Self::TooLong, "The network accepts no text of this length"),
        (Self::MissingEntryPoint, "No function has the name that the network calls"),
        (Self::AsyncEntryPoint, "The function that the network calls returns a promise"),
        (Self::UndeclaredVariable, "Strict code assigns a variable that nothing declares"),
        (Self::ReadOnly, "The network imports this name, and nothing can be assigned to it"),
        (Self::MissingGlobal, "The network has no such global"),
        (Self::MissingBuiltIn, "The network's engine lacks this built-in"),
        (Self::CannotLoad, "The text cannot be loaded by the network's rules"),
        (Self::ExampleFails, "An example fails by the network's rules"),
        (Self::ExampleDiffers, "An example returns something else by the network's rules"),
        (Self::WrongResult, "The result is not what the network takes"),
        (Self::LocalTime, "The result depends on the time zone or locale of the server"),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SyntaxError => "syntax-error",
            Self::StrictSyntax => "strict-syntax",
            Self::ModuleSyntax => "module-syntax",
            Self::NewerSyntax => "newer-syntax",
            Self::UnsupportedRegexp => "unsupported-regexp",
            Self::TooLong => "too-long",
            Self::MissingEntryPoint => "missing-entry-point",
            Self::AsyncEntryPoint => "async-entry-point",
            Self::UndeclaredVariable => "undeclared-variable",
            Self::ReadOnly => "read-only",
            Self::MissingGlobal => "missing-global",
            Self::MissingBuiltIn => "missing-built-in",
            Self::CannotLoad => "cannot-load",
            Self::ExampleFails => "example-fails",
            Self::ExampleDiffers => "example-differs",
            Self::WrongResult => "wrong-result",
            Self::LocalTime => "local-time",
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The codec does not run on the target, or not in every case.
    Error,
    /// It may not.
    Warning,
}

/// A reason, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Severity: an error keeps the codec from running on the target.
    pub level: Level,
    /// The line of the script, from 1, if there is one.
    pub line: Option<u32>,
    /// The name of the variable, global or built-in that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A sentence for the author.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(rule: Rule, message: String) -> Self {
        Self { rule, level: Level::Error, line: None, name: None, message }
    }

    pub(crate) fn at(rule: Rule, line: u32, message: String) -> Self {
        Self { line: Some(line), ..Self::new(rule, message) }
    }

    /// A finding about a variable, a global or a built-in.
    pub(crate) fn about(rule: Rule, line: u32, name: &str, message: String) -> Self {
        Self { name: Some(name.to_owned()), ..Self::at(rule, line, message) }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}
