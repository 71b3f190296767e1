//! Which files are scripts that a network could call.

use runtime::{Dialect, Slot};

use super::dir::Dir;

/// Tests of other tools, and what they are set up with.
const TEST_ENDS: [&str; 4] = [".test.js", ".spec.js", ".min.js", ".config.js"];

/// Whether a file is a script that a network could call.
pub(super) fn is_codec(dir: &Dir<'_>, name: &str) -> bool {
    let is_test = TEST_ENDS.iter().any(|end| name.ends_with(end));
    stem(name) != name && !is_test && dir.script(name).is_ok_and(|text| has_entry(&text))
}

/// The name of a script without its end.
pub(super) fn stem(name: &str) -> &str {
    [".js", ".mjs", ".cjs", ".txt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
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
    let names = Dialect::ALL.into_iter().flat_map(|dialect| {
        let functions = [Slot::Decoder, Slot::Encoder].into_iter().filter_map(move |slot| dialect.function_name(slot));
        functions.map(move |name| (dialect, name))
    });
    let has = |(dialect, name): (Dialect, &str)| {
        let mut found = text.match_indices(name).filter(|(at, _)| is_word(*at, name));
        found.any(|(at, _)| dialect == Dialect::Ts013 || is_defined(at, name))
    };
    names.into_iter().any(has) || has((Dialect::Ts013, "decodeDownlink"))
}
