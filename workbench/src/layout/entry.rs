//! Which files are scripts that a network could call.

use oxc::{
    allocator::Allocator,
    ast::{
        AstKind,
        ast::{AssignmentTarget, PropertyKey},
    },
};
use runtime::{Dialect, Slot};

use super::{BadInput, dir::Dir};
use crate::source::Source;

/// Tests of other tools, and what they are set up with.
const TEST_ENDS: [&str; 3] = [".test", ".spec", ".config"];
const MINIFIED_END: &str = ".min";

/// Whether a file is a script that a network could call.
pub(super) fn is_codec(dir: &Dir<'_>, name: &str) -> bool {
    may_be_codec(dir, name) && dir.script(name).is_ok_and(|text| is_codec_text(dir, name, &text))
}

/// The script may be in several files; `text` has all of them.
fn is_codec_text(dir: &Dir<'_>, name: &str, text: &str) -> bool {
    match dir.raw_text(name) {
        Ok(own) if has_entry(&own) => defines_entry(name, &own),
        _ => has_entry(text),
    }
}

/// Why a file that seems to be such a script cannot be read.
pub(super) fn unreadable(dir: &Dir<'_>, name: &str) -> Option<BadInput> {
    let problem = may_be_codec(dir, name).then(|| dir.script(name).err()).flatten()?;
    let is_codec = match dir.raw_text(name) {
        Ok(text) => has_entry(&text) && defines_entry(name, &text),
        Err(_) => !is_text(name),
    };
    is_codec.then_some(problem)
}

/// The name of a script without its end.
pub(super) fn stem(name: &str) -> &str {
    let before = |end: &&str| {
        let (stem, own) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
        own.eq_ignore_ascii_case(end).then_some(stem)
    };
    [".js", ".mjs", ".cjs", ".txt"].iter().find_map(before).unwrap_or(name)
}

fn may_be_codec(dir: &Dir<'_>, name: &str) -> bool {
    let stem = stem(name);
    let is_test = TEST_ENDS.iter().any(|end| stem.ends_with(end));
    // What it was made of is better to read.
    let original = stem.strip_suffix(MINIFIED_END).map(|stem| format!("{stem}.js"));
    stem != name && !is_test && !original.is_some_and(|original| dir.has(&original))
}

/// Whether a file may just as well be prose.
fn is_text(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".txt")
}

/// Whether a text defines a function that networks call. What is no JavaScript may be meant to be, unless it is prose.
fn defines_entry(file: &str, text: &str) -> bool {
    let allocator = Allocator::default();
    let sources = [false, true].map(|is_module| Source::read(&allocator, text, is_module));
    match sources.iter().find(|source| source.errors.is_empty()) {
        Some(source) => source.semantic.nodes().iter().any(|node| defined(node.kind()).is_some_and(is_entry)),
        None => !is_text(file),
    }
}

/// The name that a node gives to something.
fn defined(node: AstKind<'_>) -> Option<&str> {
    match node {
        AstKind::BindingIdentifier(name) => Some(name.name.as_str()),
        AstKind::ObjectProperty(property) => key(&property.key),
        AstKind::MethodDefinition(method) => key(&method.key),
        AstKind::AssignmentExpression(assignment) => match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => Some(name.name.as_str()),
            AssignmentTarget::StaticMemberExpression(member) => Some(member.property.name.as_str()),
            AssignmentTarget::ComputedMemberExpression(member) => {
                member.static_property_name().map(|name| name.as_str())
            }
            _ => None,
        },
        _ => None,
    }
}

fn key<'a>(key: &'a PropertyKey<'_>) -> Option<&'a str> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str()),
        PropertyKey::StringLiteral(name) => Some(name.value.as_str()),
        _ => None,
    }
}

fn is_entry(name: &str) -> bool {
    entries().any(|(_, entry)| entry == name)
}

/// The functions that networks call, each with its dialect.
fn entries() -> impl Iterator<Item = (Dialect, &'static str)> {
    let named = Dialect::ALL.into_iter().flat_map(|dialect| {
        let functions = [Slot::Decoder, Slot::Encoder].into_iter().filter_map(move |slot| dialect.function_name(slot));
        functions.map(move |name| (dialect, name))
    });
    named.chain([(Dialect::Ts013, "decodeDownlink")])
}

/// Whether a text has the name of a function that networks call, as a word; one that is not of TS013 is a common word,
/// and so must be defined.
fn has_entry(text: &str) -> bool {
    let is_word = |at: usize, name: &str| {
        let is_part = |character: char| character.is_alphanumeric() || "_$".contains(character);
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    };
    let is_defined = |at: usize, name: &str| {
        text[..at].trim_end().ends_with("function") || text[at + name.len()..].trim_start().starts_with('=')
    };
    let has = |(dialect, name): (Dialect, &str)| {
        let mut found = text.match_indices(name).filter(|(at, _)| is_word(*at, name));
        found.any(|(at, _)| dialect == Dialect::Ts013 || is_defined(at, name))
    };
    entries().any(has)
}
