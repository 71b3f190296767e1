//! Reads the source of a function from a file given on the command line.

use std::path::Path;

use workbench::{BadInput, is_stdin, read_script};

/// Reads a script given on the command line; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<String, BadInput> {
    read_script(path).map_err(|source| {
        let file = if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
        BadInput::File { file, source }
    })
}
