//! Places where examples are written, so that reports can point at one and its expectation can be replaced.

use std::{path::PathBuf, sync::Arc};

/// The place of an example in a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub file: Arc<PathBuf>,
    /// The line, from 1.
    pub line: usize,
    /// Place of its expectation; `None` if it cannot be replaced.
    pub(crate) expectation: Option<Expectation>,
}

/// The member that states what an example expects.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) notation: Notation,
    /// The way to the example, and the name of its member.
    pub(crate) path: Vec<Step>,
    /// True if `bytes` are written as hexadecimal text.
    pub(crate) hex: bool,
}

impl Expectation {
    /// Returns true if this is the normalized form of what `other` states, so that it follows when that changes.
    pub(crate) fn depends_on(&self, other: &Self) -> bool {
        let (Some((own_member, own_way)), Some((member, way))) = (self.path.split_last(), other.path.split_last())
        else {
            return false;
        };
        own_way == way && *own_member == Step::name("normalizedOutput") && *member == Step::name("output")
    }
}

/// Notation of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// JSON, or JavaScript that looks like it.
    Json,
    /// A JSON text in one line of several; the line is part of the place.
    JsonLine,
    Yaml,
}

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Index(usize),
    Name(String),
}

impl Step {
    pub(crate) fn name(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}
