//! A single file: a script, or examples in any layout.

use std::{fs, path::Path, sync::Arc};

use runtime::Engine;

use crate::{
    file::{
        self,
        disk::{self, Disk},
        is_stdin,
    },
    layout::{
        BadInput, Found,
        dir::{Dir, Tree},
        is_descriptor,
        lines::{self, stdin},
        read_dir,
        script::{about::is_about, entry},
    },
};

/// Reads one file: examples in a layout that its name tells, a script with the examples beside it, or JSON lines.
pub(super) fn read(path: &Path, engine: &Arc<Engine>, found: &mut Found) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_script = is_script(path, name);
    if is_stdin(path) {
        return stdin::read(path, std::io::stdin().lock(), found);
    }
    if !is_script && (!is_descriptor(name) || name.ends_with(".jsonl")) {
        return lines::named::read_file(path, found);
    }
    if let Err(source) = fs::metadata(path) {
        return found.problem(BadInput::File { file: path.display().to_string(), source });
    }
    let (mut dirs, problems) = around(path, engine);
    problems.into_iter().for_each(|problem| found.problem(problem));
    let Some(dir) = dirs.first_mut() else { return };
    match is_script {
        true => read_script(dir, name, found),
        false => read_descriptor(dir, name, found),
    }
}

/// Returns true if a file is a script. Some repositories keep scripts as `.txt`; JSON lines are told by their `{`.
fn is_script(path: &Path, name: &str) -> bool {
    let is_text = || name.ends_with(".txt") && fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let starts_with_object = || disk::read_script(path).is_ok_and(|text| text.trim_start().starts_with('{'));
    [".js", ".mjs", ".cjs"].iter().any(|end| name.ends_with(end)) || is_text() && !starts_with_object()
}

/// Reads what a file with examples says, and complains if that is nothing.
fn read_descriptor(dir: &mut Dir<'_>, name: &str, found: &mut Found) {
    dir.names.retain(|other| other == name || !is_descriptor(other));
    let count = |found: &Found| found.codecs.len() + found.others + found.problems.len();
    let before = count(found);
    read_dir(dir, found);
    if count(found) == before && found.left > 0 {
        let unreadable = if name.ends_with(".jsonl") { None } else { dir.text(name).err() };
        found.problem(unreadable.unwrap_or_else(|| dir.bad(name, 1, "there are no codecs in it")));
    }
}

/// Reads a script, with the examples beside it.
fn read_script(dir: &Dir<'_>, name: &str, found: &mut Found) {
    let mut beside = Found::new(None, found.left);
    read_dir(dir, &mut beside);
    let own_path = dir.path(name);
    let mut own = beside.codecs;
    own.retain(|codec| codec.script_file.as_ref() == Some(&own_path));
    let problems = beside.problems.into_iter().filter(|problem| {
        let file = problem.place().map(|(file, _)| Path::new(file));
        let is_script = own.is_empty() && file == Some(&own_path);
        !is_script && file.is_none_or(|file| is_about(dir, file, name, &own))
    });
    problems.for_each(|problem| found.problem(problem));
    match own.is_empty() {
        true => found.script(dir, &dir.id(entry::stem(name)), name, Vec::new()),
        false => own.into_iter().for_each(|codec| found.codec(codec)),
    }
}

/// The directory that `file` is in, alone with its other files.
fn around<'a>(file: &'a Path, engine: &'a Arc<Engine>) -> (Vec<Dir<'a>>, Vec<BadInput>) {
    let tree = Tree { files: &Disk, root: file::directory_of(file), engine };
    let (mut dirs, problems) = tree.one(Path::new(""));
    // A link that is named is meant.
    let name = file.file_name().and_then(|name| name.to_str()).filter(|_| file.is_file());
    if let (Some(name), Some(dir)) = (name, dirs.first_mut())
        && !dir.has(name)
    {
        dir.names.push(name.to_owned());
    }
    // Whatever else is there was not asked for.
    let problems = if dirs.is_empty() { problems } else { Vec::new() };
    (dirs, problems)
}
