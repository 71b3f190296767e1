//! `airlock functions new`: the files of a new codec.

use anyhow::Context;
use workbench::{NewFile, write_new};

use super::args::New;
use crate::terminal::say;

pub(super) fn run(command: &New) -> anyhow::Result<()> {
    let New { dialect, name, dir } = command;
    let files = write_new(dir, (*dialect).into(), name).context("cannot write the codec")?;
    for file in files {
        match file {
            NewFile::Written(file) => say(format_args!("wrote {}", file.display()))?,
            NewFile::Kept(file) => say(format_args!("kept {}, which was there already", file.display()))?,
        }
    }
    say(format_args!("Now run: airlock functions test {}", dir.display()))
}
