//! Which files have examples of a script.

use std::path::Path;

use crate::{
    codec::Codec,
    layout::{dir::Dir, listed},
};

/// Returns true if `file` has, or should have, examples of the script with this name. If the script has no examples,
/// that is any file that is not named after another script.
pub(in super::super) fn is_about(dir: &Dir<'_>, file: &Path, script: &str, own: &[Codec]) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let places = own.iter().flat_map(|codec| &codec.examples).filter_map(|example| example.place.as_ref());
    let names_it = || dir.has(name) && dir.text(name).is_ok_and(|text| text.contains(script));
    let is_free = || own.is_empty() && !dir.names.iter().any(|other| is_named_after(name, other));
    // What is wrong with another script is no matter of this one.
    !name.ends_with(".js")
        && (is_named_after(name, script)
            || is_free()
            || places.map(|place| place.file.as_path()).any(|other| other == file)
            || names_it())
}

/// Returns true if a file's name says that it has examples of `script`.
fn is_named_after(name: &str, script: &str) -> bool {
    let stem = script.strip_suffix(".js");
    stem.is_some_and(|stem| name.starts_with(&format!("{stem}."))) || listed::tests(name, script)
}
