//! `airlock backup` and `airlock restore`: copies of the embedded store.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use types::Clock;

use super::operator_audit;
use crate::{
    output::{Cell, Output, OutputOptions, Record},
    serve::{Extent, KeyFiles, PreparedRestore, back_up},
    settings::Settings,
    terminal::{Confirmation, confirm},
};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  airlock backup airlock.backup\n  airlock backup --with-keys /media/safe/airlock.backup\n  airlock backup --with-history airlock.backup"
)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// File to create, which only you can read
    #[arg(value_parser = file)]
    file: PathBuf,
    /// Include the key files, which open the secrets in the store: protect the backup like the server itself
    #[arg(long)]
    with_keys: bool,
    /// Include the history of messages, which is larger than all the rest
    #[arg(long)]
    with_history: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airlock restore airlock.backup --yes")]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// File that `airlock backup` has written
    file: PathBuf,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// A backup is put in place once it is complete, which standard output cannot be.
fn file(text: &str) -> Result<PathBuf, &'static str> {
    if text == "-" { Err("a backup needs a file of its own: name one instead of `-`") } else { Ok(text.into()) }
}

pub(crate) async fn backup(
    command: Backup,
    settings: &Settings,
    output: &Output,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<()> {
    let audit = operator_audit(settings)?;
    let (file, now) = (command.file.display(), clock.now());
    let key_files = if command.with_keys { KeyFiles::Include } else { KeyFiles::LeaveOut };
    let extent = Extent { key_files, history: command.with_history };
    let backed_up = back_up(settings, &command.file, extent, now).await?;
    audit.note("store backed up", &"operator", &file);
    output.record(Record::new([
        (("file", "File"), file.to_string().into()),
        (("created", "As of"), output.time(now)),
        (("entries", "Entries"), number(backed_up.entries)),
        (("history_files", "History files"), backed_up.history_files.map(number).into()),
        (("bytes", "Bytes"), number(backed_up.bytes)),
        (("without", "Without"), Cell::list(&backed_up.without, ", ")),
    ]))?;
    if backed_up.without.is_empty() {
        return output.message("It opens all secrets of this installation: protect it like the server itself");
    }
    output.message(format_args!(
        "Keep copies of these key files of {} in another place: without them, nobody can use the backup",
        settings.data_dir.display()
    ))
}

pub(crate) fn restore(
    command: &Restore,
    settings: &Settings,
    output: &Output,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    let audit = operator_audit(settings)?;
    let (file, directory) = (command.file.display(), settings.data_dir.display());
    let prepared = PreparedRestore::read(settings, &command.file)?;
    let (entries, created, is_marked) = (prepared.entries, prepared.created, prepared.is_marked);
    if prepared.replaces() {
        let created = output.time(created);
        confirm(
            format_args!("The backup of {} is complete. Replace the store in {directory} by it?", created.text()),
            command.confirmation,
        )?;
    }
    let change = audit.change("store restored", &"operator", &file)?;
    let replaced = prepared.finish(clock.now())?;
    let path = |path: Option<PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    change.done();
    output.record(Record::new([
        (("data", "Data directory"), directory.to_string().into()),
        (("created", "As of"), output.time(created)),
        (("entries", "Entries"), number(entries)),
        (("replaced", "Old store"), path(replaced.store).into()),
        (("replaced_history", "Old history"), path(replaced.history).into()),
    ]))?;
    output.message(
        "Keys, users and collaborators that were deleted since then are valid again: delete them before the start",
    )?;
    let accept = if is_marked { " --accept-older-store" } else { "" };
    output.message(format_args!(
        "Then start with `airlock serve{accept}`, and run `airlock account keys rotate --at-once`"
    ))
}

fn number(number: u64) -> Cell {
    Cell::new(number.to_string(), number)
}
