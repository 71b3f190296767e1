//! Files that this handler has put into the bucket. Those that its directory no longer has are deleted there, and no
//! others, so that an empty or older directory deletes nothing.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, directory::write_whole};

/// The paths of files in the handler's directory.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    pub(crate) files: BTreeSet<String>,
}

impl Ledger {
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("uploaded");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(Error::file("read", &path))?,
        };
        Ok(Self { path, files: text.lines().map(str::to_owned).collect() })
    }

    /// Puts it on disk if it has others than these, as a whole.
    pub(crate) fn set(&mut self, files: BTreeSet<String>) -> Result<(), Error> {
        if self.files != files {
            let text: String = files.iter().map(|file| format!("{file}\n")).collect();
            write_whole(&self.path, &text)?;
            self.files = files;
        }
        Ok(())
    }
}
