//! Judges a text by all rules, without running it.

mod around;
mod buffer;
pub(crate) mod entry;
mod guard;
mod local_time;
mod names;
mod regexp;
mod syntax;
mod text;

use std::collections::BTreeSet;

use oxc::{
    allocator::Allocator,
    ast::{
        AstKind,
        ast::{Argument, CallExpression, MemberExpression},
    },
};

use self::text::Text;
use super::{
    finding::{Finding, Rule},
    source::{Source, key_name},
    target::{ENTRIES, Target},
};

/// A text that can be judged for several targets.
pub(crate) struct Parsed<'a> {
    text: &'a str,
    script: Source<'a>,
    module: Source<'a>,
    members: BTreeSet<&'a str>,
}

impl<'a> Parsed<'a> {
    pub(crate) fn new(allocator: &'a Allocator, text: &'a str) -> Self {
        let script = Source::read(allocator, text, false);
        let module = Source::read(allocator, text, true);
        let members = members(if script.errors.is_empty() { &script } else { &module });
        Self { text, script, module, members }
    }

    /// The text as it is for a target: as a module if it is one there, or can only be one.
    pub(crate) fn source(&self, target: Target) -> &Source<'a> {
        let is_module = target.is_module() || !self.script.errors.is_empty() && self.module.errors.is_empty();
        if is_module { &self.module } else { &self.script }
    }

    /// The globals of The Things Network 2 that the text reads, and that the target lacks.
    pub(crate) fn v2_globals(&self, target: Target) -> Vec<&'static str> {
        let is_read = |name: &&str| {
            let mut names = self.source(target).semantic.scoping().root_unresolved_references().keys();
            target.has_global(name) == Some(false) && names.any(|own| own.as_str() == *name)
        };
        ["payload", "port"].into_iter().filter(is_read).collect()
    }

    /// Returns the findings for a target. `has_loaded` is true if our own sandbox has loaded the text by its rules.
    pub(crate) fn judge(&self, target: Target, has_loaded: bool) -> Vec<Finding> {
        let source = self.source(target);
        let entries = entry::names(source, target);
        let all: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        let live = source.live(if entries.is_empty() { &all } else { &entries });
        let text = Text {
            target,
            source,
            script: &self.script,
            module: &self.module,
            has_loaded,
            members: &self.members,
            live,
        };
        let mut found = entry::size(self.text, target);
        found.extend(entry::unstorable(self.text, target));
        found.extend(entry::missing(&text));
        found.extend(syntax::parse(&text));
        found.extend(around::declared_twice(&text).or_else(|| around::declared_behind(&text)));
        found.extend(around::reserved(&text));
        if found.iter().any(|finding| finding.rule == Rule::SyntaxError) {
            return found;
        }
        found.extend(syntax::newer(&text));
        found.extend(regexp::unknown(&text));
        found.extend(names::undeclared(&text));
        found.extend(around::read_only(&text));
        found.extend(buffer::without_setter(&text));
        found.extend(around::block_functions(&text));
        found.extend(names::globals(&text));
        found.extend(names::built_ins(&text));
        found.extend(names::digits(&text));
        found.extend(local_time::uses(&text));
        found
    }
}

/// The names of members that a text defines or assigns.
fn members<'a>(source: &Source<'a>) -> BTreeSet<&'a str> {
    let nodes = source.semantic.nodes().iter();
    nodes
        .filter_map(|node| match node.kind() {
            AstKind::ObjectProperty(property) => key_name(&property.key),
            AstKind::MethodDefinition(method) => key_name(&method.key),
            AstKind::CallExpression(call) => defined_property(call),
            AstKind::AssignmentExpression(assignment) => {
                assignment.left.as_member_expression().and_then(MemberExpression::static_property_name)
            }
            _ => None,
        })
        .collect()
}

/// The name that `Object.defineProperty(object, name, …)` defines.
fn defined_property<'a>(call: &CallExpression<'a>) -> Option<&'a str> {
    let is_defining = call.callee.get_member_expr()?.static_property_name() == Some("defineProperty");
    match call.arguments.get(1) {
        Some(Argument::StringLiteral(name)) if is_defining => Some(name.value.as_str()),
        _ => None,
    }
}
