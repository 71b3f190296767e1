//! Files of JSON lines that are named on the command line.

use std::{
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use super::read_lines;
use crate::{
    codec::Codec,
    file::{
        disk::{Disk, open_stream},
        is_stdin,
    },
    layout::{BadInput, Found, MEMORY_BYTES_MAX},
};

/// Reads the codecs in `files` of JSON lines, where `-` is standard input; with `id`, only those whose id contains it.
///
/// A `script_file` must be in the directory of the file that names it, or below; for standard input, in the current
/// directory.
pub fn read(files: &[PathBuf], id: Option<&str>) -> Result<Vec<Codec>, BadInput> {
    let mut found = Found::new(id, MEMORY_BYTES_MAX);
    files.iter().for_each(|file| match is_stdin(file) {
        true => read_lines(&Disk, file, io::stdin().lock(), &mut found),
        false => read_file(file, &mut found),
    });
    match found.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(found.codecs),
    }
}

/// Reads a file of JSON lines.
pub(in super::super) fn read_file(path: &Path, found: &mut Found) {
    match open_stream(path) {
        Ok(file) => read_lines(&Disk, path, BufReader::new(file), found),
        Err(source) => found.problem(BadInput::File { file: path.display().to_string(), source }),
    }
}
