//! Backups of the embedded store, for the commands `backup` and `restore`.

mod file;
mod key_files;
mod restore;

use std::{
    io::{BufWriter, ErrorKind, Write},
    path::Path,
};

use anyhow::{Context, bail, ensure};
use store::Snapshot;
use tempfile::NamedTempFile;
use types::Timestamp;

use self::file::{BackupWriter, Header, HistoryPart};
pub(crate) use self::restore::PreparedRestore;
use super::{data_dir::DataDir, history::history_dir, operator::open_shared_store};
use crate::settings::Settings;

/// Contents of a finished backup.
pub(crate) struct BackedUp {
    pub(crate) entries: u64,
    /// Number of history files; `None` if the backup has no history.
    pub(crate) history_files: Option<u64>,
    pub(crate) bytes: u64,
    /// The key files of the data directory that it does not have.
    pub(crate) without: Vec<String>,
}

/// Inclusion of the key files, which open the secrets in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFiles {
    Include,
    LeaveOut,
}

/// Contents of a backup besides the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) key_files: KeyFiles,
    pub(crate) history: bool,
}

/// Writes everything that is in the store now to a new file, which only its owner can read. History, if it is to be there,
/// is read after the store.
pub(crate) async fn back_up(
    settings: &Settings,
    file: &Path,
    Extent { key_files, history }: Extent,
    now: Timestamp,
) -> anyhow::Result<BackedUp> {
    check_embedded(settings)?;
    ensure!(!file.exists(), "{} exists: choose another name", file.display());
    let data_dir = DataDir::at(&settings.data_dir);
    // Opening a store creates a missing one, whose backup would be worth nothing.
    ensure!(data_dir.store().exists(), "there is no store in {}: set --data", settings.data_dir.display());
    let (store, mark) = open_shared_store(settings, &data_dir).await?;
    let found = key_files::find(&data_dir)?;
    let snapshot = store.snapshot().await?;
    let header =
        Header::new(now, snapshot.last_version(), found.iter().map(key_files::hash).collect::<Result<_, _>>()?);
    let header = if history { header.with_history() } else { header };
    let (included, without) = match key_files {
        KeyFiles::Include => (found, Vec::new()),
        KeyFiles::LeaveOut => (Vec::new(), found.into_iter().map(|found| found.name).collect()),
    };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = async {
        let mut unfinished = BufWriter::new(NamedTempFile::new_in(directory)?);
        let mut backup = BackupWriter::begin(&mut unfinished, header)?;
        included.into_iter().try_for_each(|key_file| backup.key_file(key_file))?;
        write_entries(&mut backup, snapshot).await?;
        let history_files = history.then(|| write_history(&mut backup, &history_dir(settings))).transpose()?;
        let entries = backup.finish()?;
        let unfinished = unfinished.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        unfinished.as_file().sync_all()?;
        let bytes = unfinished.as_file().metadata()?.len();
        match unfinished.persist_noclobber(file) {
            Ok(_) => Ok(BackedUp { entries, history_files, bytes, without }),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => bail!("it exists: choose another name"),
            Err(error) => Err(error.error.into()),
        }
    };
    let backed_up = write.await.with_context(|| format!("cannot write {}", file.display()))?;
    if let Some(mark) = mark {
        // So the store counts as newer than the backup, even if nothing else is changed.
        mark.advance().await?;
    }
    Ok(backed_up)
}

async fn write_entries(backup: &mut BackupWriter<impl Write>, mut snapshot: Snapshot) -> anyhow::Result<()> {
    while let Some(entries) = snapshot.next().await? {
        entries.into_iter().try_for_each(|entry| backup.entry(entry))?;
    }
    Ok(())
}

/// Writes all files of history; returns how many there are.
fn write_history(backup: &mut BackupWriter<impl Write>, dir: &Path) -> anyhow::Result<u64> {
    history::read_files(dir, |name, part| anyhow::Ok(backup.history(HistoryPart::new(name, part))?))
}

fn check_embedded(settings: &Settings) -> anyhow::Result<()> {
    ensure!(settings.store.redis.is_none(), "the store is Redis (store.redis): back up and restore its own files");
    Ok(())
}
