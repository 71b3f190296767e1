//! Names: variables that nothing declares, and globals and built-ins that a target lacks.

use std::collections::BTreeMap;

use oxc::{
    ast::{AstKind, ast::Expression},
    semantic::{NodeId, ReferenceId},
    span::GetSpan as _,
};

use super::{guard::Question, text::Text};
use crate::lint::{
    finding::{Finding, Level, Rule},
    target::built_ins::{ES_NAMES, FOREIGN_NAMES},
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
        let is_written = references.iter().any(|id| scoping.get_reference(*id).is_write());
        let is_made = is_written || text.source.makes_global(name);
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
            let is_in_block = text.target.enforces_strict() && text.source.has_block_function(name);
            finding.message = match is_in_block {
                true => {
                    format!("uses `{name}` outside of the block that declares it, where strict code has no `{name}`")
                }
                false => format!("uses `{name}`, which nothing defines"),
            };
            finding.level = if is_in_block { finding.level } else { Level::Warning };
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
        text.runs(*node) && text.source.is_sure(*node) && !writes.is_empty() && writes.iter().all(is_later)
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
        let Some((object, name, at)) = member(node.kind()) else { continue };
        if text.members.contains(name) || !text.runs(node.id()) || text.source.is_tried(node.id()) {
            continue;
        }
        if let Some(path) = lacking(text, (object, name), is_called(text, node.id()))
            && found.get(path).is_none_or(|told| !told.is_error())
        {
            let line = text.source.line(at);
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

/// The object, the name and the place of a member whose name is written down.
fn member<'a>(kind: AstKind<'a>) -> Option<(&'a Expression<'a>, &'a str, u32)> {
    match kind {
        AstKind::StaticMemberExpression(member) => {
            Some((&member.object, member.property.name.as_str(), member.property.span.start))
        }
        AstKind::ComputedMemberExpression(member) => match &member.expression {
            Expression::StringLiteral(name) => Some((&member.object, name.value.as_str(), name.span.start)),
            _ => None,
        },
        _ => None,
    }
}

/// Calls of `toFixed` with more digits than the engine has.
pub(super) fn digits(text: &Text<'_, '_>) -> Vec<Finding> {
    let engine = text.target.engine();
    let Some(max) = engine.fixed_digits_max() else { return Vec::new() };
    let found = text.source.semantic.nodes().iter().filter_map(|node| {
        let AstKind::CallExpression(call) = node.kind() else { return None };
        let is_fixed = call.callee.get_member_expr()?.static_property_name() == Some("toFixed");
        let digits = call.arguments.first()?.as_expression().map(|digits| value(text, digits))?;
        let Expression::NumericLiteral(digits) = digits else { return None };
        let is_more = is_fixed && digits.value > f64::from(max);
        let fails = is_more && text.runs(node.id()) && !text.source.is_tried(node.id());
        let message = format!("calls `toFixed` for {} digits, and {} has {max} at most", digits.value, engine.name());
        let line = text.source.line(call.span.start);
        fails.then(|| Finding::about(Rule::MissingBuiltIn, line, "Number.prototype.toFixed", message))
    });
    in_order(found.take(1).collect())
}

/// A value, also where it has been put into a variable.
fn value<'t>(text: &'t Text<'_, '_>, value: &'t Expression<'t>) -> &'t Expression<'t> {
    match value.get_inner_expression() {
        Expression::Identifier(name) => text.source.initial(name).unwrap_or(value),
        inner => inner,
    }
}

/// The path of a built-in that the engine lacks, if a member is likely to be one.
fn lacking(text: &Text<'_, '_>, (object, name): (&Expression<'_>, &str), is_called: bool) -> Option<&'static str> {
    let lacks = text.target.engine().lacks();
    match object {
        Expression::Identifier(object) if text.source.semantic.is_reference_to_global_variable(object) => {
            let path = format!("{}.{name}", object.name);
            lacks.iter().copied().find(|lacking| *lacking == path)
        }
        _ if !is_called => None,
        _ => lacks
            .iter()
            .copied()
            .find(|lacking| lacking.strip_suffix(name).is_some_and(|start| start.ends_with(".prototype."))),
    }
}

/// Returns true if a member of an object is called.
pub(super) fn is_called(text: &Text<'_, '_>, node: NodeId) -> bool {
    let nodes = text.source.semantic.nodes();
    match nodes.parent_kind(node) {
        AstKind::CallExpression(call) => call.callee.span() == nodes.kind(node).span(),
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
