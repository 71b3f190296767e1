//! Names: variables that nothing declares, and globals and built-ins that a target lacks.

use std::collections::BTreeMap;

use oxc::{
    ast::{
        AstKind,
        ast::{Expression, StaticMemberExpression},
    },
    semantic::{NodeId, ReferenceId},
};

use super::{
    built_ins::{ES_NAMES, FOREIGN_NAMES},
    finding::{Finding, Level, Rule},
    guard::Question,
    text::Text,
};

/// Maximum number of names that one rule tells.
const NAMES_MAX: usize = 200;

/// Variables that are assigned where strict code requires them to be declared.
pub(super) fn undeclared(text: &Text<'_, '_>) -> Vec<Finding> {
    let scoping = text.source.semantic.scoping();
    let is_bad = |id: &ReferenceId| {
        let reference = scoping.get_reference(*id);
        let is_strict = text.target.is_module() || scoping.scope_flags(reference.scope_id()).is_strict_mode();
        let node = reference.node_id();
        reference.is_write() && is_strict && text.runs(node) && !text.source.is_tried(node)
    };
    let mut found = Vec::new();
    for (name, references) in unresolved(text) {
        if !text.target.enforces_strict() || text.target.has_global(name) == Some(true) {
            continue;
        }
        if let Some(line) = references.iter().filter(|id| is_bad(id)).map(|id| line(text, *id)).min() {
            let message = format!("assigns `{name}`, which nothing declares, and strict code must");
            found.push(Finding::about(Rule::UndeclaredVariable, line, name, message));
        }
    }
    in_order(found)
}

/// Globals that are read and that the target lacks.
pub(super) fn globals(text: &Text<'_, '_>) -> Vec<Finding> {
    let scoping = text.source.semantic.scoping();
    let mut found = Vec::new();
    for (name, references) in unresolved(text) {
        let nodes: Vec<NodeId> = references.iter().map(|id| scoping.get_reference(*id).node_id()).collect();
        let is_made = references.iter().any(|id| scoping.get_reference(*id).is_write());
        // A text that asks whether it exists does without it.
        let is_asked = nodes.iter().any(|node| is_typeof(text, *node));
        if let Some((_, since)) = text.target.newer_globals().iter().find(|(own, _)| *own == name)
            && !is_made
            && !is_asked
            && let Some(line) = nodes.iter().filter(|node| text.runs(**node)).map(|node| node_line(text, *node)).min()
        {
            let message = format!("uses `{name}`, which only {since} and later have");
            let finding = Finding::about(Rule::MissingGlobal, line, name, message);
            found.push(Finding { level: Level::Warning, ..finding });
        }
        if is_asked || text.target.has_global(name) != Some(false) {
            continue;
        }
        if is_made {
            found.extend(read_too_early(text, name, &references));
            continue;
        }
        let is_used = |node: &NodeId| text.runs(*node) && !text.source.is_tried(*node);
        let Some(line) = nodes.iter().filter(|node| is_used(node)).map(|node| node_line(text, *node)).min() else {
            continue;
        };
        let title = text.target.title();
        let mut finding =
            Finding::about(Rule::MissingGlobal, line, name, format!("uses `{name}`, which {title} lacks"));
        if nodes.iter().filter(|node| is_used(node)).all(|node| text.is_ruled_out(*node, Question::IsMadeBy)) {
            finding.level = Level::Warning;
        }
        if !FOREIGN_NAMES.contains(&name) && !ES_NAMES.contains(&name) {
            finding.message = format!("uses `{name}`, which nothing defines");
            finding.level = Level::Warning;
        }
        found.push(finding);
    }
    in_order(found)
}

/// A variable that nothing declares, and that a function reads before it assigns it.
fn read_too_early(text: &Text<'_, '_>, name: &str, references: &[ReferenceId]) -> Option<Finding> {
    let scoping = text.source.semantic.scoping();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for reference in references.iter().map(|id| scoping.get_reference(*id)) {
        let node = reference.node_id();
        if reference.is_write() {
            writes.push((text.source.function(node), text.source.assigned_at(node)));
        }
        if reference.is_read() {
            reads.push(node);
        }
    }
    let is_first = |node: &NodeId| {
        let (function, at) = (text.source.function(*node), text.start(*node));
        let is_later = |(other, assigned): &(Option<NodeId>, u32)| *other == function && at < *assigned;
        text.runs(*node) && text.source.is_sure(*node) && writes.iter().all(is_later)
    };
    let line = reads.iter().filter(|node| is_first(node)).map(|node| node_line(text, *node)).min()?;
    let message = format!("reads `{name}` before it assigns it, and {} has none", text.target.title());
    Some(Finding::about(Rule::MissingGlobal, line, name, message))
}

/// Members of built-ins that the target's engine lacks.
pub(super) fn built_ins(text: &Text<'_, '_>) -> Vec<Finding> {
    let engine = text.target.engine();
    let mut found: BTreeMap<&str, Finding> = BTreeMap::new();
    for node in text.source.semantic.nodes().iter() {
        let AstKind::StaticMemberExpression(member) = node.kind() else { continue };
        let name = member.property.name.as_str();
        if text.members.contains(name) || !text.runs(node.id()) || text.source.is_tried(node.id()) {
            continue;
        }
        if let Some(path) = lacking(text, member, is_called(text, node.id(), member))
            && found.get(path).is_none_or(|told| !told.is_error())
        {
            let line = text.source.line(member.property.span.start);
            let message = format!("uses `{path}`, which {} lacks", engine.name());
            let is_ruled_out = text.is_ruled_out(node.id(), Question::IsMadeBy);
            let level = if is_ruled_out { Level::Warning } else { text.level() };
            let finding = Finding { level, ..Finding::about(Rule::MissingBuiltIn, line, path, message) };
            // The first use is told, unless only a later one is sure to fail.
            if finding.is_error() || !found.contains_key(path) {
                found.insert(path, finding);
            }
        }
    }
    in_order(found.into_values().collect())
}

/// The path of a built-in that the engine lacks, if `member` is likely to be one.
fn lacking(text: &Text<'_, '_>, member: &StaticMemberExpression<'_>, is_called: bool) -> Option<&'static str> {
    let name = member.property.name.as_str();
    let lacks = text.target.engine().lacks();
    match &member.object {
        Expression::Identifier(object) if text.source.semantic.is_reference_to_global_variable(object) => {
            let path = format!("{}.{name}", object.name);
            lacks.iter().copied().find(|lacking| *lacking == path)
        }
        // Many objects have methods of these names, and those of arrays are hardly used.
        _ if !is_called || ["at", "entries", "keys", "values"].contains(&name) => None,
        _ => lacks
            .iter()
            .copied()
            .find(|lacking| lacking.strip_suffix(name).is_some_and(|start| start.ends_with(".prototype."))),
    }
}

/// Whether a member of an object is called.
pub(super) fn is_called(text: &Text<'_, '_>, node: NodeId, member: &StaticMemberExpression<'_>) -> bool {
    match text.source.semantic.nodes().parent_kind(node) {
        AstKind::CallExpression(call) => call.callee.get_member_expr().is_some_and(|callee| {
            matches!(callee, oxc::ast::ast::MemberExpression::StaticMemberExpression(own) if own.span == member.span)
        }),
        _ => false,
    }
}

/// Names that no scope of the text declares, in order.
fn unresolved<'a>(text: &'a Text<'_, '_>) -> Vec<(&'a str, Vec<ReferenceId>)> {
    let references = text.source.semantic.scoping().root_unresolved_references();
    let mut names: Vec<_> =
        references.iter().map(|(name, ids)| (name.as_str(), ids.iter().copied().collect())).collect();
    names.sort();
    names
}

fn is_typeof(text: &Text<'_, '_>, node: NodeId) -> bool {
    match text.source.semantic.nodes().parent_kind(node) {
        AstKind::UnaryExpression(unary) => unary.operator.as_str() == "typeof",
        _ => false,
    }
}

fn line(text: &Text<'_, '_>, id: ReferenceId) -> u32 {
    node_line(text, text.source.semantic.scoping().get_reference(id).node_id())
}

fn node_line(text: &Text<'_, '_>, node: NodeId) -> u32 {
    text.source.line(text.start(node))
}

fn in_order(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| finding.line);
    found.truncate(NAMES_MAX);
    found
}
