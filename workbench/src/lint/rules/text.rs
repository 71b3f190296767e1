//! The input of the rules: a text as it is for one target.

use std::collections::BTreeSet;

use oxc::{semantic::NodeId, span::GetSpan as _};

use super::guard::{Guards, Question};
use crate::lint::{
    finding::Level,
    source::{Live, Source},
    target::{Target, engine::Engine},
};

/// A text and a target.
pub(super) struct Text<'t, 'a> {
    pub(super) target: Target,
    /// The text as it is for the target: as a module if it is one there, or can only be one.
    pub(super) source: &'t Source<'a>,
    pub(super) script: &'t Source<'a>,
    pub(super) module: &'t Source<'a>,
    /// True if our own sandbox has loaded it by the target's rules.
    pub(super) has_loaded: bool,
    /// Names of members that it defines itself, such as a method or a replacement for a missing built-in.
    pub(super) members: &'t BTreeSet<&'a str>,
    pub(super) live: Live,
}

impl Text<'_, '_> {
    /// Returns true if the value of a condition keeps the node from running.
    pub(super) fn is_ruled_out(&self, node: NodeId, question: Question) -> bool {
        Guards { source: self.source, target: self.target }.is_ruled_out(node, question)
    }

    /// Returns true if the node can run.
    pub(super) fn runs(&self, node: NodeId) -> bool {
        self.live.has(self.start(node)) && !self.is_ruled_out(node, Question::Exists)
    }

    pub(super) fn start(&self, node: NodeId) -> u32 {
        self.source.semantic.nodes().kind(node).span().start
    }

    /// Returns the severity of what the engine lacks: a warning if only its documentation says so.
    pub(super) fn level(&self) -> Level {
        match self.target.engine() {
            Engine::UnknownEs5 => Level::Warning,
            _ => Level::Error,
        }
    }
}
