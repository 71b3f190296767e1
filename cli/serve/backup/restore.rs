//! Puts a backup in the place of the store.

use std::path::{Path, PathBuf};

use anyhow::Context;
use history::NewDirectory;
use store::{Restoring, StoredEntry};
use types::Timestamp;

use super::{
    check_embedded,
    file::{BackupReader, Item, KeyFile, KeyFileHash},
    key_files,
};
use crate::{
    serve::{
        context::mark_file,
        data_dir::{DataDir, until},
        history::history_dir,
    },
    settings::Settings,
};

/// Maximum number of entries that are written together.
const ENTRIES_AT_ONCE: usize = 1000;

/// A backup that has been read and checked, beside the store that it replaces.
pub(crate) struct PreparedRestore {
    pub(crate) entries: u64,
    pub(crate) created: Timestamp,
    /// True if the data directory remembers a store. A server then refuses the restored one until told to accept it.
    pub(crate) is_marked: bool,
    data_dir: DataDir,
    restoring: Restoring,
    last_version: store::Version,
    key_files: Vec<KeyFile>,
    history: Option<NewHistory>,
}

/// History from a backup, beside that which it replaces.
struct NewHistory {
    dir: PathBuf,
    files: NewDirectory,
}

/// Paths to which the replaced store and history were moved.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    pub(crate) store: Option<PathBuf>,
    pub(crate) history: Option<PathBuf>,
}

impl PreparedRestore {
    /// Reads a backup. Blocks, and changes nothing; an error if a server uses the store.
    pub(crate) fn read(settings: &Settings, file: &Path) -> anyhow::Result<Self> {
        check_embedded(settings)?;
        let cannot_read = || format!("cannot restore {}", file.display());
        let mut backup = BackupReader::open(file).with_context(cannot_read)?;
        let data_dir = DataDir::open(&settings.data_dir)?;
        let restoring = Restoring::start(&data_dir.store())?;
        let dir = history_dir(settings);
        let mut history = match backup.header.has_history() {
            true => Some(NewHistory { files: NewDirectory::create(&dir)?, dir }),
            false => None,
        };
        let backed_up = copy(&mut backup, &restoring, history.as_mut()).with_context(cannot_read)?;
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
            history,
        })
    }

    /// Returns true if there is a store to replace.
    pub(crate) fn replaces(&self) -> bool {
        self.restoring.replaces()
    }

    /// Replaces the store, and then history if the backup has it. Returns where the old ones are, if there were some.
    pub(crate) fn finish(self, now: Timestamp) -> anyhow::Result<Replaced> {
        let keep_as = self.data_dir.replaced_store(now);
        let store = self.replaces().then(|| keep_as.clone());
        key_files::write(&self.data_dir, &self.key_files)?;
        self.restoring.finish(self.last_version, &keep_as)?;
        let history = self.history.map(|history| history.finish(now)).transpose()?;
        Ok(Replaced { store, history: history.flatten() })
    }
}

impl NewHistory {
    /// Puts it in place; returns where the old one is, if there was one.
    fn finish(self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let mut keep_as = self.dir.into_os_string();
        keep_as.push(format!("-{}", until(now)));
        let keep_as = PathBuf::from(keep_as);
        Ok(self.files.finish(&keep_as)?.then_some(keep_as))
    }
}

/// Writes the entries and the history of a whole backup, and returns its key files.
fn copy(
    backup: &mut BackupReader<impl std::io::BufRead>,
    restoring: &Restoring,
    mut history: Option<&mut NewHistory>,
) -> anyhow::Result<Vec<KeyFile>> {
    let (mut entries, mut key_files) = (Vec::<StoredEntry>::new(), Vec::new());
    while let Some(item) = backup.next()? {
        match item {
            Item::KeyFile(file) => key_files.push(file),
            Item::Entry(entry) => entries.push(entry),
            Item::History(part) => {
                let history = history.as_mut().context("it is damaged: it has history that it does not announce")?;
                history.files.add(&part.name, &part.contents()?)?;
            }
        }
        if entries.len() >= ENTRIES_AT_ONCE {
            restoring.add(&std::mem::take(&mut entries))?;
        }
    }
    restoring.add(&entries)?;
    Ok(key_files)
}
