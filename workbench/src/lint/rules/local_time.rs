//! Times of the clock on the wall: they depend on the time zone of the server, which is UTC in some networks, and what
//! its operator has set in others.

use std::collections::BTreeSet;

use oxc::{
    ast::{AstKind, ast::Expression},
    semantic::AstNode,
};

use super::{names::is_called, text::Text};
use crate::lint::finding::{Finding, Level, Rule};

/// Methods of `Date` that work in local time.
#[rustfmt::skip]
const METHODS: &[&str] = &[
    "getDate", "getDay", "getFullYear", "getHours", "getMinutes", "getMonth", "getTimezoneOffset", "getYear", "setDate",
    "setFullYear", "setHours", "setMinutes", "setMonth", "setYear", "toDateString", "toLocaleDateString",
    "toLocaleString", "toLocaleTimeString", "toTimeString",
];

/// Finds uses of local time, each name once. No network refuses them, so they are warnings.
pub(super) fn uses(text: &Text<'_, '_>) -> Vec<Finding> {
    let (mut found, mut told) = (Vec::new(), BTreeSet::new());
    for node in text.source.semantic.nodes().iter().filter(|node| text.runs(node.id())) {
        if let Some((name, at)) = local(text, node)
            && told.insert(name)
        {
            let on = if name.starts_with("toLocale") { "locale and time zone" } else { "time zone" };
            let message = format!("uses `{name}`, whose result depends on the {on} of the server");
            let line = text.source.line(at);
            found.push(Finding { level: Level::Warning, ..Finding::about(Rule::LocalTime, line, name, message) });
        }
    }
    found.sort_by_key(|finding| finding.line);
    found
}

/// Returns the name that a node uses and that works in local time, with its offset in bytes.
fn local<'a>(text: &Text<'_, 'a>, node: &AstNode<'a>) -> Option<(&'a str, u32)> {
    match node.kind() {
        AstKind::StaticMemberExpression(member) if is_called(text, node.id()) => {
            let name = member.property.name.as_str();
            let is_own = text.members.contains(name);
            (METHODS.contains(&name) && !is_own).then_some((name, member.property.span.start))
        }
        AstKind::NewExpression(new) if new.arguments.len() > 1 => match &new.callee {
            Expression::Identifier(callee) => {
                let is_date = callee.name.as_str() == "Date";
                let is_global = text.source.semantic.is_reference_to_global_variable(callee);
                (is_date && is_global).then_some(("new Date", new.span.start))
            }
            _ => None,
        },
        _ => None,
    }
}
