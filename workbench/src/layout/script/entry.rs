//! Recognizes scripts that a network could call.

use runtime::{Dialect, Slot};

use super::code::code;
use crate::layout::{BadInput, dir::Dir};

/// Tests of other tools, and what they are set up with.
const TEST_ENDS: [&str; 3] = [".test", ".spec", ".config"];
const MINIFIED_END: &str = ".min";

/// Returns true if a file is a script that a network could call.
pub(in super::super) fn is_codec(dir: &Dir<'_>, name: &str) -> bool {
    may_be_codec(dir, name) && dir.script(name).is_ok_and(|text| is_codec_text(dir, name, &text))
}

/// The script may be in several files; `text` has all of them.
fn is_codec_text(dir: &Dir<'_>, name: &str, text: &str) -> bool {
    match dir.raw_text(name).map(|own| code(&own, &names())) {
        Ok(own) if has_entry(&own) => defines_entry(name, &own),
        _ => has_entry(&code(text, &names())),
    }
}

/// Returns true if a text seems to be a script that a network could call.
pub(in super::super) fn is_script(text: &str) -> bool {
    let own = code(text, &names());
    has_entry(&own) && defines_entry("", &own)
}

/// Returns the error of a file that seems to be such a script and cannot be read.
pub(in super::super) fn unreadable(dir: &Dir<'_>, name: &str) -> Option<BadInput> {
    let problem = may_be_codec(dir, name).then(|| dir.script(name).err()).flatten()?;
    let is_codec = match dir.raw_text(name).map(|own| code(&own, &names())) {
        Ok(text) => has_entry(&text) && defines_entry(name, &text),
        Err(_) => !is_text(name),
    };
    is_codec.then_some(problem)
}

/// The name of a script without its end.
pub(in super::super) fn stem(name: &str) -> &str {
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

/// Returns true if a file may just as well be prose.
fn is_text(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".txt")
}

/// The names of the functions that networks call.
fn names() -> Vec<&'static str> {
    entries().map(|(_, name)| name).collect()
}

/// Returns true if a text seems to define a function that networks call, rather than to call or mention one. It is not
/// parsed: it may be nested without bound, and may be meant to be JavaScript without being it.
fn defines_entry(file: &str, text: &str) -> bool {
    entries().any(|(_, name)| text.match_indices(name).any(|(at, _)| is_definition(file, (text, at), name)))
}

fn is_definition(file: &str, (text, at): (&str, usize), name: &str) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    let (before, after) = (text[..at].trim_end(), text[at + name.len()..].trim_start());
    let has_body =
        after.starts_with('(') && after.split_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('{'));
    let is_assigned = is_assignment(after);
    let is_named = [":", ",", "}", ";"].iter().any(|next| after.starts_with(next)) && !before.ends_with('.');
    let is_function = before.ends_with("function");
    has_body || is_assigned || is_member(line, after) || !is_text(file) && (is_function || is_named)
}

fn is_assignment(after: &str) -> bool {
    after.starts_with('=') && !after.starts_with("==")
}

/// Returns true if a name in quotes is that of a member that gets a value: `exports["name"] = …`, `{ "name": … }` or
/// `Object.defineProperty(exports, "name", …)`.
fn is_member(line: &str, after: &str) -> bool {
    let Some(behind) = after.strip_prefix(['\'', '"']).map(str::trim_start) else { return false };
    let is_assigned = behind.strip_prefix(']').is_some_and(|behind| is_assignment(behind.trim_start()));
    is_assigned || behind.starts_with(':') || behind.starts_with(',') && line.contains("defineProperty(")
}

/// The functions that networks call, each with its dialect.
fn entries() -> impl Iterator<Item = (Dialect, &'static str)> {
    let named = Dialect::ALL.into_iter().flat_map(|dialect| {
        let functions = [Slot::Decoder, Slot::Encoder].into_iter().filter_map(move |slot| dialect.function_name(slot));
        functions.map(move |name| (dialect, name))
    });
    named.chain([(Dialect::Ts013, "decodeDownlink")])
}

/// Returns true if a text has the name of a function that networks call, as a word. A name that is not of TS013 is a
/// common word, and so must be defined.
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
