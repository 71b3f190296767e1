//! Reads the source of a function from a file given on the command line.

use std::path::Path;

use anyhow::Context;
use workbench::{is_stdin, read_script};

/// Reads a script given on the command line; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    read_script(path).with_context(|| match is_stdin(path) {
        true => "cannot read standard input".to_owned(),
        false => format!("cannot read {}", path.display()),
    })
}
