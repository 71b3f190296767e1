//! Regular expressions that a target's engine does not know, as literals and as calls of `RegExp`.

use oxc::ast::{
    AstKind,
    ast::{Argument, Expression},
};

use super::text::Text;
use crate::lint::{
    finding::{Finding, Level, Rule},
    source::key_name,
    target::engine::{Engine, Syntax},
};

/// Maximum number of findings: one of each kind says enough.
const FOUND_MAX: usize = 5;

/// Parts of a pattern that not every engine knows.
#[derive(Default)]
struct Parts {
    /// `(?<name>x)`.
    named: bool,
    /// `(?=x)`, `(?!x)`, `(?<=x)` and `(?<!x)`.
    look_around: bool,
    /// `\1`.
    reference: bool,
}

/// Regular expressions that the engine refuses, or of which it ignores something.
pub(super) fn unknown(text: &Text<'_, '_>) -> Vec<Finding> {
    let reads_groups = reads_groups(text);
    let mut found: Vec<Finding> = Vec::new();
    for node in text.source.semantic.nodes().iter() {
        let (pattern, flags, at) = match node.kind() {
            // A text with one is refused as a whole, so it counts also where it does not run.
            AstKind::RegExpLiteral(own) => {
                (own.regex.pattern.text.as_str(), own.regex.flags.to_string(), own.span.start)
            }
            AstKind::NewExpression(new) if text.runs(node.id()) && !text.source.is_tried(node.id()) => {
                let Some((pattern, flags)) = made(text, &new.callee, &new.arguments) else { continue };
                (pattern, flags.to_owned(), new.span.start)
            }
            AstKind::CallExpression(call) if text.runs(node.id()) && !text.source.is_tried(node.id()) => {
                let Some((pattern, flags)) = made(text, &call.callee, &call.arguments) else { continue };
                (pattern, flags.to_owned(), call.span.start)
            }
            _ => continue,
        };
        let Some((rule, level, message)) = fault(text.target.engine(), reads_groups, pattern, &flags) else { continue };
        if found.len() < FOUND_MAX && !found.iter().any(|told| told.message == message) {
            let level = level.max(text.level());
            found.push(Finding { level, ..Finding::at(rule, text.source.line(at), message) });
        }
    }
    found
}

/// The pattern and the flags that `RegExp` is called with.
fn made<'a>(text: &Text<'_, 'a>, callee: &Expression<'a>, arguments: &[Argument<'a>]) -> Option<(&'a str, &'a str)> {
    let Expression::Identifier(name) = callee else { return None };
    let is_regexp = name.name.as_str() == "RegExp" && text.source.semantic.is_reference_to_global_variable(name);
    match (arguments.first().filter(|_| is_regexp)?, arguments.get(1)) {
        (Argument::StringLiteral(pattern), None) => Some((pattern.value.as_str(), "")),
        (Argument::StringLiteral(pattern), Some(Argument::StringLiteral(flags))) => {
            Some((pattern.value.as_str(), flags.value.as_str()))
        }
        (_, Some(Argument::StringLiteral(flags))) => Some(("", flags.value.as_str())),
        _ => None,
    }
}

/// Returns the fault that an engine finds with a regular expression, if any.
fn fault(engine: Engine, reads_groups: bool, pattern: &str, flags: &str) -> Option<(Rule, Level, String)> {
    let (parts, name) = (Parts::of(pattern), engine.name());
    let unsupported = |part: &str| {
        let message = format!("{name} has no {part} in regular expressions");
        Some((Rule::UnsupportedRegexp, Level::Error, message))
    };
    match engine {
        _ if engine.has(Syntax::NamedGroup) || !parts.named => {}
        // It reads them, and its matches do not have them.
        Engine::Goja if !reads_groups => {}
        Engine::Goja => {
            let message = format!("{name} has neither `groups` of a match nor `$<name>`");
            return Some((Rule::NewerSyntax, Level::Error, message));
        }
        _ => return Some((Rule::NewerSyntax, Level::Error, format!("{name} has no named groups"))),
    }
    let has_look_around = engine.has(Syntax::LookAround);
    if parts.look_around && !has_look_around {
        return unsupported("`(?=`, `(?!` and `(?<`");
    }
    if parts.reference && !has_look_around {
        return unsupported("`\\1`");
    }
    let flag = flags.chars().find(|flag| !engine.regexp_flags().contains(*flag))?;
    let (level, does) = match engine {
        // It reads any flags.
        Engine::Otto => (Level::Warning, "ignores"),
        _ => (Level::Error, "does not know"),
    };
    Some((Rule::NewerSyntax, level, format!("{name} {does} the flag `{flag}` of regular expressions")))
}

/// Returns true if a text uses the names of groups of a match.
fn reads_groups(text: &Text<'_, '_>) -> bool {
    text.source.semantic.nodes().iter().any(|node| match node.kind() {
        AstKind::StaticMemberExpression(member) => member.property.name.as_str() == "groups",
        AstKind::BindingProperty(property) => key_name(&property.key) == Some("groups"),
        AstKind::StringLiteral(text) => text.value.as_str() == "groups" || text.value.as_str().contains("$<"),
        _ => false,
    })
}

impl Parts {
    fn of(pattern: &str) -> Self {
        let (mut parts, mut is_class, mut rest) = (Self::default(), false, pattern.as_bytes());
        while let [first, behind @ ..] = rest {
            rest = behind;
            match (first, behind) {
                (b'\\', [next, behind @ ..]) => {
                    parts.reference |= !is_class && matches!(next, b'1'..=b'9');
                    rest = behind;
                }
                (b'[', _) => is_class = true,
                (b']', _) => is_class = false,
                (b'(', [b'?', b'=' | b'!', ..] | [b'?', b'<', b'=' | b'!', ..]) => parts.look_around |= !is_class,
                (b'(', [b'?', b'<', ..]) => parts.named |= !is_class,
                _ => {}
            }
        }
        parts
    }
}
