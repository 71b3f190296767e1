//! Scripts of a directory that nobody has written examples for: they are loaded and linted all the same.

use std::path::Path;

use super::{
    about::is_about,
    entry::{is_codec, stem, unreadable},
};
use crate::{
    file::{directory_of, normal},
    layout::{Found, dir::Dir},
};

/// Maximum number of problems of a directory that are compared with its scripts; with more, each script may have one.
const PROBLEMS_MAX: usize = 20;

/// Reads the scripts of a directory that no codec has yet.
pub(in super::super) fn read(dir: &Dir<'_>, found: &mut Found) {
    let free = dir.names.iter().filter(|name| !found.claimed.contains(&normal(&dir.path(name))));
    let free: Vec<_> = free.filter(|name| !has_problem(dir, name, found)).collect();
    for name in free {
        match unreadable(dir, name) {
            Some(problem) => found.problem(problem),
            None if is_codec(dir, name) => found.script(dir, &dir.id(stem(name)), name, Vec::new()),
            None => {}
        }
    }
}

/// Returns true if a file that could not be read may have examples of a script, which must not pass as one without.
fn has_problem(dir: &Dir<'_>, name: &str, found: &Found) -> bool {
    let own = dir.path("");
    let problems = found.problems.iter().filter(|problem| !problem.is_orphan());
    let files = problems.filter_map(|problem| problem.place().map(|(file, _)| Path::new(file)));
    let here: Vec<_> = files.filter(|file| normal(directory_of(file)) == normal(&own)).collect();
    here.len() > PROBLEMS_MAX || here.iter().any(|file| **file == dir.path(name) || is_about(dir, file, name, &[]))
}
