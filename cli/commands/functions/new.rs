//! `airlock functions new`: the files of a new codec.

use std::path::Path;

use workbench::{NewFile, write_new};

use super::args::New;
use crate::terminal::say;

pub(super) fn run(command: &New) -> anyhow::Result<()> {
    let New { dialect, name, dir } = command;
    let files = write_new(dir, Path::new("."), (*dialect).into(), name)?;
    for file in &files {
        match file {
            NewFile::Written(file) => say(format_args!("wrote {}", file.display()))?,
            NewFile::Kept(file) => say(format_args!("kept {}, which was there already", file.display()))?,
        }
    }
    say(format_args!("Now run: airlock functions test {}", dir.display()))?;
    match files.last() {
        Some(NewFile::Written(file)) => {
            say(format_args!("For CI, put your copy of Airlock in place of OWNER in {}", file.display()))
        }
        _ => Ok(()),
    }
}
