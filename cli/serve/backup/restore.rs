//! Puts a backup in the place of the store.

use std::path::{Path, PathBuf};

use anyhow::Context;
use store::{Restoring, StoredEntry};
use types::Timestamp;

use super::{
    check_embedded,
    file::{BackupReader, Item, KeyFile, KeyFileHash},
    key_files,
};
use crate::{
    serve::{context::mark_file, data_dir::DataDir},
    settings::Settings,
};

/// How many entries are written together.
const ENTRIES_AT_ONCE: usize = 1000;

/// A backup that has been read and checked, beside the store that it replaces.
pub(crate) struct PreparedRestore {
    pub(crate) entries: u64,
    pub(crate) created: Timestamp,
    /// Whether the data directory remembers a store, so that a server refuses this one until it is told to accept it.
    pub(crate) is_marked: bool,
    data_dir: DataDir,
    restoring: Restoring,
    last_version: store::Version,
    key_files: Vec<KeyFile>,
}

impl PreparedRestore {
    /// Reads a backup. Blocks, and changes nothing; an error if a server uses the store.
    pub(crate) fn read(settings: &Settings, file: &Path) -> anyhow::Result<Self> {
        check_embedded(settings)?;
        let cannot_read = || format!("cannot restore {}", file.display());
        let mut backup = BackupReader::open(file).with_context(cannot_read)?;
        let data_dir = DataDir::open(&settings.data_dir)?;
        let restoring = Restoring::start(&data_dir.store())?;
        let backed_up = copy(&mut backup, &restoring).with_context(cannot_read)?;
        let header = backup.header.clone();
        let hashes: &[KeyFileHash] = &header.key_files;
        Ok(Self {
            entries: backup.entries(),
            created: header.created,
            is_marked: mark_file(settings, &data_dir).exists(),
            key_files: key_files::missing(&data_dir, hashes, backed_up)?,
            last_version: header.last_version,
            data_dir,
            restoring,
        })
    }

    /// Whether there is a store that is replaced.
    pub(crate) fn replaces(&self) -> bool {
        self.restoring.replaces()
    }

    /// Replaces the store. Returns where the old one is, if there was one.
    pub(crate) fn finish(self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let keep_as = self.data_dir.replaced_store(now);
        let kept = self.replaces().then(|| keep_as.clone());
        key_files::write(&self.data_dir, &self.key_files)?;
        self.restoring.finish(self.last_version, &keep_as)?;
        Ok(kept)
    }
}

/// Writes the entries of a whole backup, and returns its key files.
fn copy(backup: &mut BackupReader<impl std::io::BufRead>, restoring: &Restoring) -> anyhow::Result<Vec<KeyFile>> {
    let (mut entries, mut key_files) = (Vec::<StoredEntry>::new(), Vec::new());
    while let Some(item) = backup.next()? {
        match item {
            Item::KeyFile(file) => key_files.push(file),
            Item::Entry(entry) => entries.push(entry),
        }
        if entries.len() >= ENTRIES_AT_ONCE {
            restoring.add(&std::mem::take(&mut entries))?;
        }
    }
    restoring.add(&entries)?;
    Ok(key_files)
}
