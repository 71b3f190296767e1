//! Caches loaded function sets on disk, so that they need not be evaluated again.
//!
//! Each set is a file, named by its hash and sealed with the key of the directory. Failures are logged but never
//! returned, because they only cost time.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::contract::sources::SourcesHash;
use crate::error::{Error, ModuleError};
use crate::load::atomic_file::{self, remove_abandoned};
use crate::load::seal::{KEY_BYTES, SealKey};

const DIR: &str = "functions";
const KEY: &str = "key";
const SUFFIX: &str = "wasm";

/// The directory of cached modules, if there is one, and the key that all modules are sealed with.
pub(crate) struct ModuleCache {
    key: SealKey,
    dir: Option<Directory>,
}

struct Directory {
    path: PathBuf,
    bytes_max: u64,
    /// The total size of its files: counted before the first write, and again when it seems too large. Does not include
    /// what other processes write meanwhile.
    bytes: Mutex<Option<u64>>,
}

impl ModuleCache {
    /// Opens the cache below `dir`. Without a usable directory, or with `bytes_max` 0, nothing is cached.
    pub(crate) fn open(dir: Option<&Path>, bytes_max: u64) -> Result<Self, Error> {
        let fresh =
            SealKey::random().map_err(|_| Error::Memory(io::Error::other("the system gave no random bytes")))?;
        let Some(path) = dir.filter(|_| bytes_max > 0).map(|dir| dir.join(DIR)) else {
            return Ok(Self { key: SealKey::new(&fresh), dir: None });
        };
        match load_key(&path, &fresh) {
            Ok(key) => {
                remove_abandoned(&path);
                let dir = Directory { path, bytes_max, bytes: Mutex::default() };
                Ok(Self { key: SealKey::new(&key), dir: Some(dir) })
            }
            Err(source) => {
                tracing::warn!(path = %path.display(), error = %source, "cannot cache functions on disk: check the directory");
                Ok(Self { key: SealKey::new(&fresh), dir: None })
            }
        }
    }

    pub(crate) fn key(&self) -> &SealKey {
        &self.key
    }

    /// Reads the module of this hash and verifies it. Removes a file that fails or is longer than `bytes_max`.
    pub(crate) fn get<T>(
        &self,
        hash: SourcesHash,
        bytes_max: usize,
        verify: impl FnOnce(Box<[u8]>) -> Result<T, ModuleError>,
    ) -> Option<T> {
        let path = self.dir.as_ref()?.path_of(hash);
        let verified = match read(&path, bytes_max) {
            Ok(bytes) => bytes.and_then(verify),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read cached functions: loading them again");
                return None;
            }
        };
        verified
            .inspect_err(|error| {
                tracing::warn!(path = %path.display(), %error, "refused cached functions: loading them again");
                // If this fails, writing the file again replaces it.
                let _ = fs::remove_file(&path);
            })
            .ok()
    }

    pub(crate) fn insert(&self, hash: SourcesHash, module: &[u8]) {
        let Some(dir) = &self.dir else { return };
        if let Err(source) = dir.insert(hash, module) {
            let path = dir.path_of(hash);
            tracing::warn!(path = %path.display(), error = %source, "cannot save loaded functions: check the cache directory");
        }
    }
}

impl Directory {
    fn path_of(&self, hash: SourcesHash) -> PathBuf {
        let name: String = hash.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.path.join(name).with_extension(SUFFIX)
    }

    fn insert(&self, hash: SourcesHash, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.bytes_max {
            return Ok(());
        }
        let path = self.path_of(hash);
        atomic_file::write(&path, &[bytes])?.persist(&path)?;
        self.make_room(bytes.len() as u64)
    }

    /// Adds `bytes` to the total, and removes the oldest files if it is too large.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut counted = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = match *counted {
            Some(before) => before + bytes,
            None => files(&self.path)?.iter().map(|file| file.bytes).sum(),
        };
        if total > self.bytes_max {
            let mut files = files(&self.path)?;
            files.sort_unstable_by_key(|file| file.written);
            total = files.iter().map(|file| file.bytes).sum();
            // Frees some extra space, so that the next writes need not list the directory again.
            let goal = self.bytes_max - self.bytes_max / 10;
            for file in &files {
                if total <= goal.max(bytes) {
                    break;
                }
                match fs::remove_file(&file.path) {
                    // Another process may have removed it already.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => total -= file.bytes,
                }
            }
        }
        *counted = Some(total);
        Ok(())
    }
}

/// A cached module, or one that is being written.
struct CachedFile {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

fn files(dir: &Path) -> io::Result<Vec<CachedFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        // Another process may have removed it meanwhile.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if has_suffix(&path, SUFFIX) || has_suffix(&path, atomic_file::SUFFIX) {
            files.push(CachedFile { path, bytes: metadata.len(), written: metadata.modified()? });
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
    // If the file grows meanwhile, this reads a part of it, which fails verification.
    file.take(bytes as u64).read_to_end(&mut read)?;
    Ok(Ok(read.into()))
}

/// The key of the directory. Without a key that only this user can read, `fresh` becomes the key.
fn load_key(dir: &Path, fresh: &[u8; KEY_BYTES]) -> io::Result<[u8; KEY_BYTES]> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(KEY);
    if let Some(key) = read_key(&path)? {
        return Ok(key);
    }
    // If two processes start together, both use the key of the first. One may remove the other's temporary file before
    // it is locked; then the other tries once more.
    let write = || match atomic_file::write(&path, &[fresh])?.persist_noclobber(&path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    };
    write().or_else(|error| if error.kind() == io::ErrorKind::NotFound { write() } else { Err(error) })?;
    read_key(&path)?.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The key in the file. Removes the file and returns `None` if another user could have read or written it.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
    if !ours || metadata.len() != KEY_BYTES as u64 {
        tracing::warn!(path = %path.display(), "replaced the key of cached functions: another user could read or write the old one");
        fs::remove_file(path)?;
        return Ok(None);
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_key_of_the_first_of_two_processes() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = ([1; KEY_BYTES], [2; KEY_BYTES]);
        assert_eq!(load_key(dir.path(), &first).unwrap(), first);
        assert_eq!(load_key(dir.path(), &second).unwrap(), first);
        // As if the second had looked before the first wrote.
        let lost =
            atomic_file::write(&dir.path().join(KEY), &[&second]).unwrap().persist_noclobber(dir.path().join(KEY));
        assert_eq!(lost.unwrap_err().error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(load_key(dir.path(), &second).unwrap(), first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
