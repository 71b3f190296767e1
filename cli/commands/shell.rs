//! `airlock completions` and `airlock man`: what a shell and a terminal know of the commands.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::{Shell, env::Shells};

/// The environment variable by which a shell asks for completions.
pub(crate) const COMPLETE: &str = "COMPLETE";

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory to write the pages to
    dir: PathBuf,
}

/// Prints the script that a shell reads at its start.
pub(crate) fn completions(command: &Completions) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let shell = shells.completer(&command.shell.to_string()).context("this shell is not supported")?;
    let mut script = Vec::new();
    shell.write_registration(COMPLETE, "airlock", "airlock", "airlock", &mut script)?;
    io::stdout().lock().write_all(&script).context("cannot write to standard output")
}

/// Writes a manual page for each command.
pub(crate) fn man(command: &Man, airlock: Command) -> anyhow::Result<()> {
    let wrote = fs::create_dir_all(&command.dir).and_then(|()| clap_mangen::generate_to(airlock, &command.dir));
    wrote.with_context(|| format!("cannot write to {}", command.dir.display()))
}
