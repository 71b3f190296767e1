//! The functions that a network calls, and the size of the text.

use oxc::{
    ast::{
        AstKind,
        ast::{AssignmentTarget, Expression, Function},
    },
    span::GetSpan as _,
};

use super::text::Text;
use crate::lint::{
    finding::{Finding, Level, Rule},
    source::Source,
    target::{ENTRIES, Entry, Target},
};

/// The names of the functions that the target calls and that the text defines.
pub(super) fn names(source: &Source<'_>, target: Target) -> Vec<&'static str> {
    let defined = target.entries().iter().filter(|entry| is_defined(source, entry.name));
    defined.map(|entry| entry.name).collect()
}

/// Finds a text that is longer than the target accepts.
pub(super) fn size(text: &str, target: Target) -> Vec<Finding> {
    let chars = text.chars().count();
    let too_long = |max: usize| {
        let message = format!("has {chars} characters, and {} accepts {max}", target.title());
        Finding::new(Rule::TooLong, message)
    };
    target.chars_max().filter(|max| chars > *max).map(too_long).into_iter().collect()
}

/// A character that the target's database does not take.
pub(super) fn unstorable(text: &str, target: Target) -> Option<Finding> {
    let is_chirpstack = matches!(target, Target::ChirpStackScript | Target::ChirpStackModule);
    let at = text.find('\0').filter(|_| is_chirpstack)?;
    let line = u32::try_from(text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX);
    let message = format!("has a zero byte, which {} cannot store: write \\0 in its place", target.title());
    Some(Finding::at(Rule::CannotLoad, line, message))
}

/// Functions that the target calls and that the text does not define, or defines as `async`.
pub(super) fn missing(text: &Text<'_, '_>) -> Vec<Finding> {
    let (target, source) = (text.target, text.source);
    let mut found: Vec<Finding> = target.entries().iter().filter_map(|entry| asynchronous(source, entry)).collect();
    let [decoders, encoders] = [runtime::Function::Decoder, runtime::Function::Encoder].map(|function| {
        let of = |entry: &&Entry| entry.function == function;
        let names: Vec<&str> = target.entries().iter().filter(of).map(|entry| entry.name).collect();
        let has = |entries: &[Entry]| entries.iter().filter(of).any(|entry| is_defined(source, entry.name));
        (names, has(target.entries()), has(&ENTRIES))
    });
    let missing = |names: &[&str]| {
        let message = format!("defines no function `{}`, which {} calls", names.join("` or `"), target.title());
        Finding::new(Rule::MissingEntryPoint, message)
    };
    let is_no_use = !decoders.1 && !encoders.1;
    if !decoders.1 && (decoders.2 || is_no_use) {
        found.push(missing(&decoders.0));
    }
    if !encoders.1 && encoders.2 && !encoders.0.is_empty() {
        // It decodes all the same.
        let level = if decoders.1 || decoders.2 { Level::Warning } else { Level::Error };
        found.push(Finding { level, ..missing(&encoders.0) });
    }
    found
}

fn asynchronous(source: &Source<'_>, entry: &Entry) -> Option<Finding> {
    let is_async = |function: &Function<'_>| {
        function.r#async && function.id.as_ref().is_some_and(|id| id.name.as_str() == entry.name)
    };
    let at = source.semantic.nodes().iter().find_map(|node| match node.kind() {
        AstKind::Function(function) if is_async(function) => Some(function.span.start),
        _ => None,
    })?;
    let message = format!("`{}` is `async`, and no network waits for it", entry.name);
    Some(Finding::at(Rule::AsyncEntryPoint, source.line(at), message))
}

/// Returns true if a function with this name is declared, or assigned to a variable that nothing declares.
pub(crate) fn is_defined(source: &Source<'_>, name: &str) -> bool {
    source.has_binding(name) || source.makes_global(name) || is_assigned(source, name)
}

fn is_assigned(source: &Source<'_>, name: &str) -> bool {
    let is_export = |object: &Expression<'_>| {
        let text = source.semantic.source_text().get(object.span().start as usize..object.span().end as usize);
        matches!(text, Some("exports" | "module.exports" | "this" | "globalThis" | "driver"))
    };
    source.semantic.nodes().iter().any(|node| match node.kind() {
        AstKind::AssignmentExpression(assignment) => match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(id) => id.name.as_str() == name,
            AssignmentTarget::StaticMemberExpression(member) => {
                member.property.name.as_str() == name && is_export(&member.object)
            }
            _ => false,
        },
        AstKind::ExportSpecifier(export) => export.exported.name().as_str() == name,
        _ => false,
    })
}
