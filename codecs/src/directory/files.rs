//! The files of a directory of codecs.

use std::{
    collections::BTreeMap,
    fs::{self, DirEntry, File, Metadata},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::SystemTime,
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use tempfile::NamedTempFile;

use crate::name::CodecName;

/// Opening does not follow links, and does not block on a pipe that has no writer.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Properties that tell versions of a file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Time of the last change to the content, the owner or the permissions, in seconds and nanoseconds.
    changed: (i64, i64),
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

/// A file that was found.
pub(super) struct CodecFile {
    pub(super) stamp: Stamp,
    /// Its text, or the reason why it cannot be read; `None` if it has not changed.
    pub(super) text: Option<io::Result<String>>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            inode: metadata.ino(),
        }
    }
}

/// Finds the files `NAME.js` of a directory, up to a number, and reads those whose stamp is not in `known`, up to a
/// size.
///
/// Other files, directories and names that no codec can have are passed over. Links are followed within the directory,
/// as mounted configuration has them; one that leads out of it is a codec that cannot be read.
pub(super) fn scan(
    path: &Path,
    known: &BTreeMap<CodecName, Stamp>,
    (files_max, bytes_max): (usize, usize),
) -> io::Result<BTreeMap<CodecName, CodecFile>> {
    let mut found = BTreeMap::new();
    let dir = path.canonicalize()?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Some(name) = name(&entry) else { continue };
        // A file may be gone by now.
        let Ok(path) = entry.path().canonicalize() else { continue };
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if !metadata.is_file() {
            continue;
        }
        if found.len() == files_max {
            return Err(io::Error::other(format!("there are more than {files_max} codecs: raise `codecs.codecs_max`")));
        }
        let stamp = Stamp::of(&metadata);
        let is_known = known.get(&name) == Some(&stamp) && path.starts_with(&dir);
        let text = (!is_known).then(|| read(&dir, &path, bytes_max));
        found.insert(name, CodecFile { stamp, text });
    }
    Ok(found)
}

/// Writes a file in one step, so that nobody reads half of it.
pub(super) fn write(path: &Path, text: &str) -> io::Result<Stamp> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    // Other programs may read it, as if somebody had put it there.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    let file = file.persist(path)?;
    // Without this, a crash may undo the renaming.
    File::open(dir)?.sync_all()?;
    // Renaming a file changes its stamp.
    Ok(Stamp::of(&file.metadata()?))
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all(),
    }
}

fn name(entry: &DirEntry) -> Option<CodecName> {
    entry.file_name().to_str()?.strip_suffix(".js")?.parse().ok()
}

/// Reads the file at `path`, which has no links in it, if it is in `dir` or below.
fn read(dir: &Path, path: &Path, bytes_max: usize) -> io::Result<String> {
    let below = path.strip_prefix(dir).map_err(|_| io::Error::other("it is a link out of the directory of codecs"))?;
    let mut bytes = Vec::new();
    open_below(dir, below)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Opens `dir`, then each component of `below` relative to the one before. No link is followed, so a component that was
/// replaced by one after the path was resolved fails.
fn open_below(dir: &Path, below: &Path) -> io::Result<File> {
    let mut file = openat(CWD, dir, FLAGS, Mode::empty())?;
    for component in below.components() {
        file = openat(&file, component.as_os_str(), FLAGS, Mode::empty())?;
    }
    Ok(file.into())
}
