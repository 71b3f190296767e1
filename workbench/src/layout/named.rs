//! Codecs in the files and directories that are named on the command line.

mod repeated;
mod single;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use runtime::Engine;

use self::repeated::Seen;
use super::{BadInput, Found, bad_input::MEMORY_BYTES_MAX, dir::Tree, read_tree, script::bundle};
use crate::file::{
    directory_of,
    disk::{Disk, read_script},
    is_stdin,
};

/// Reads a function given on the command line, with the files beside it that it requires; `-` is standard input.
pub fn read_function(path: &Path) -> io::Result<String> {
    let text = read_script(path)?;
    match path.file_name().filter(|_| !is_stdin(path)) {
        Some(name) => bundle::bundle(&Disk, directory_of(path), Path::new(name), text).map_err(io::Error::other),
        None => Ok(text),
    }
}

/// Finds the codecs in `paths` and their examples, in any layout; with `filter`, those whose id contains it.
///
/// A path is a file, a directory with all below it, or `-` for JSON lines from standard input. `engine` evaluates
/// examples that are written in JavaScript.
pub fn find(paths: &[PathBuf], filter: Option<&str>, engine: &Arc<Engine>) -> Found {
    let mut found = Found::new(filter, MEMORY_BYTES_MAX);
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        found.problems.push(BadInput::InputTwice);
        return found;
    }
    let mut seen = Seen::default();
    for path in paths {
        let before = (found.codecs.len(), found.problems.len());
        match path.is_dir() {
            true => read_tree(Tree { files: &Disk, root: path, engine }, &mut found),
            false => {
                single::read(path, engine, &mut found);
                let problems = found.problems.split_off(before.1);
                found.problems.extend(problems.into_iter().map(BadInput::of_named));
                found.homes.resize(found.problems.len(), path.clone());
            }
        }
        seen.leave_out(&mut found, before);
    }
    found.count_more();
    if found.codecs.is_empty() && found.problems.is_empty() {
        let nothing = match filter {
            Some(filter) if found.others > 0 => format!("no codec id contains `{filter}`"),
            _ => "these files contain no codecs: `airlock functions new` writes one, and `airlock functions test --help` \
                  lists the layouts"
                .to_owned(),
        };
        found.problems.push(BadInput::Nothing(nothing));
    }
    found
}
