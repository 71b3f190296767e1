//! Loaded function sets on disk, so that a restart, or a set that was put out of memory, need not be evaluated again.
//!
//! One file for each, named by its hash and sealed with the folder's own key. Nothing here is worth an error to anybody:
//! what cannot be read or written costs time, and is logged.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::contract::sources::SourcesHash;
use crate::error::{Error, ModuleError};
use crate::functions::Functions;
use crate::load::atomic_file::{self, Beside, remove_abandoned};
use crate::load::seal::{KEY_BYTES, SealKey};

const FOLDER: &str = "functions";
const KEY: &str = "key";
const SUFFIX: &str = "wasm";

/// The folder of loaded function sets, and the key that they are sealed with wherever they are kept.
pub(crate) struct Kept {
    key: SealKey,
    folder: Option<Folder>,
}

struct Folder {
    path: PathBuf,
    bytes_max: u64,
    /// What its files take; found out when the first one is written, and again when it seems to be too much. What
    /// other processes write meanwhile is not in it.
    bytes: Mutex<Option<u64>>,
}

impl Kept {
    /// Opens the folder below `dir`, or none, and its key. A folder that cannot be used, or has no room, is left out.
    pub(crate) fn open(dir: Option<&Path>, bytes_max: u64) -> Result<Self, Error> {
        let fresh =
            SealKey::random().map_err(|_| Error::Memory(io::Error::other("the system gave no random bytes")))?;
        let Some(path) = dir.filter(|_| bytes_max > 0).map(|dir| dir.join(FOLDER)) else {
            return Ok(Self { key: SealKey::new(&fresh), folder: None });
        };
        match key(&path, &fresh) {
            Ok(key) => {
                remove_abandoned(&path);
                let folder = Folder { path, bytes_max, bytes: Mutex::default() };
                Ok(Self { key: SealKey::new(&key), folder: Some(folder) })
            }
            Err(source) => {
                let error = Error::Cache { path, source };
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "loaded functions will not outlive this process"
                );
                Ok(Self { key: SealKey::new(&fresh), folder: None })
            }
        }
    }

    /// The key for modules.
    pub(crate) fn key(&self) -> &SealKey {
        &self.key
    }

    /// The function set of this hash, if it is there and `accept` takes it; what is refused, or longer than `bytes_max`,
    /// is removed.
    pub(crate) fn find(
        &self,
        hash: SourcesHash,
        bytes_max: usize,
        accept: impl FnOnce(Box<[u8]>) -> Result<Functions, ModuleError>,
    ) -> Option<Functions> {
        let path = self.folder.as_ref()?.place(hash);
        let accepted = match read(&path, bytes_max) {
            Ok(bytes) => bytes.and_then(accept),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "failed to read loaded functions, will load them again");
                return None;
            }
        };
        accepted
            .inspect_err(|error| {
                tracing::warn!(path = %path.display(), %error, "refused loaded functions, will load them again");
                // It is written anew in a moment; where it is still there, that replaces it.
                let _ = fs::remove_file(&path);
            })
            .ok()
    }

    /// Writes a function set to the folder.
    pub(crate) fn keep(&self, functions: &Functions) {
        let Some(folder) = &self.folder else { return };
        if let Err(source) = folder.keep(functions) {
            let error = Error::Cache { path: folder.place(functions.hash()), source };
            tracing::warn!(error = &error as &dyn std::error::Error, "the next start will load these functions again");
        }
    }
}

impl Folder {
    fn place(&self, hash: SourcesHash) -> PathBuf {
        let name: String = hash.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.path.join(name).with_extension(SUFFIX)
    }

    fn keep(&self, functions: &Functions) -> io::Result<()> {
        let bytes = functions.module_bytes();
        if bytes.len() as u64 > self.bytes_max {
            return Ok(());
        }
        let place = self.place(functions.hash());
        Beside::write(&place, &[bytes])?.replace(&place)?;
        self.make_room(bytes.len() as u64)
    }

    /// Counts `bytes` more, and removes the oldest files beyond the bound.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut known = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = match *known {
            Some(before) => before + bytes,
            None => files(&self.path)?.iter().map(|file| file.bytes).sum(),
        };
        if total > self.bytes_max {
            let mut files = files(&self.path)?;
            files.sort_unstable_by_key(|file| file.written);
            total = files.iter().map(|file| file.bytes).sum();
            // A little more than it takes, so that the next ones find room without looking through the folder again.
            let goal = self.bytes_max - self.bytes_max / 10;
            for file in &files {
                if total <= goal.max(bytes) {
                    break;
                }
                match fs::remove_file(&file.path) {
                    // A process next to us may have been first.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => total -= file.bytes,
                }
            }
        }
        *known = Some(total);
        Ok(())
    }
}

/// A kept function set, or one that is being written.
struct KeptFile {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

fn files(dir: &Path) -> io::Result<Vec<KeptFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        // One that is gone by now was removed by a process next to us.
        let Ok(about) = fs::metadata(&path) else { continue };
        if has_suffix(&path, SUFFIX) || has_suffix(&path, atomic_file::SUFFIX) {
            files.push(KeptFile { path, bytes: about.len(), written: about.modified()? });
        }
    }
    Ok(files)
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension() == Some(OsStr::new(suffix))
}

/// The bytes of a file, unless they are more than `bytes_max`.
fn read(path: &Path, bytes_max: usize) -> io::Result<Result<Box<[u8]>, ModuleError>> {
    let file = File::open(path)?;
    let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Ok(Err(ModuleError::TooLarge { bytes, bytes_max }));
    }
    let mut read = Vec::with_capacity(bytes);
    // Of a file that grows meanwhile, what it was: that is found to be damaged.
    file.take(bytes as u64).read_to_end(&mut read)?;
    Ok(Ok(read.into()))
}

/// The key of the folder; `fresh` becomes it where there is none that only we can know.
fn key(dir: &Path, fresh: &[u8; KEY_BYTES]) -> io::Result<[u8; KEY_BYTES]> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(KEY);
    if let Some(key) = read_key(&path)? {
        return Ok(key);
    }
    // Of two processes that start together, both take the first one's key. One may take the other's file for abandoned
    // before it is locked; then the other comes once more.
    let write = || Beside::write(&path, &[fresh])?.link(&path);
    write().or_else(|error| if error.kind() == io::ErrorKind::NotFound { write() } else { Err(error) })?;
    read_key(&path)?.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The key in the file; none, and no file any more, where others could have read or written it.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = file.metadata()?;
    let ours = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o077 == 0;
    if !ours || about.len() != KEY_BYTES as u64 {
        tracing::warn!(path = %path.display(), "made a new key for loaded functions: others may have known the old one");
        fs::remove_file(path)?;
        return Ok(None);
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(Some(key))
}
