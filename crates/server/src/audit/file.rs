//! The file of the audit log: bounded by rotation, and never silently incomplete.
//!
//! Crates that rotate log files drop lines, or panic, when a file cannot be written; here every line waits until it is.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

/// The space that is reserved on the disk before a change: more than the lines of all requests at one time.
const RESERVED_BYTES_MAX: u64 = 256 * 1024;
/// The most lines that wait for a file that cannot be written; later ones are only in the log, and counted.
const WAITING_MAX: usize = 1000;

pub(super) struct AuditFile {
    path: PathBuf,
    bytes_max: u64,
    files_max: u32,
    file: Option<File>,
    /// Lines that are not in the file yet, in order.
    waiting: VecDeque<Vec<u8>>,
    /// Number of lines dropped because too many were waiting.
    lost: u64,
    failure: Option<String>,
}

impl AuditFile {
    /// Opens the file. A full disk is no error: the process starts, and refuses changes.
    pub(super) fn open(path: &Path, bytes_max: u64, files_max: u32) -> io::Result<Self> {
        let (path, files_max) = (path.to_owned(), files_max.max(1));
        let (waiting, lost, failure) = (VecDeque::new(), 0, None);
        let mut file = Self { path, bytes_max, files_max, file: None, waiting, lost, failure };
        let opened = file.current().map(drop);
        match opened {
            Err(error) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => Ok(file),
        }
    }

    /// Appends a line. If that fails, the line waits.
    pub(super) fn write(&mut self, line: &[u8]) {
        match self.waiting.len() < WAITING_MAX {
            true => self.waiting.push_back(line.to_owned()),
            false => self.lost += 1,
        }
        // Only a check ends a failure: a line may still fit where the next change does not.
        if let Err(error) = self.write_waiting() {
            self.failure = Some(error.to_string());
        }
    }

    /// Writes the lines that wait, and reserves space for more. Returns the error, if there is one.
    pub(super) fn check(&mut self) -> Option<String> {
        let checked = self.write_waiting().and_then(|()| self.reserve());
        self.failure = checked.err().map(|error| error.to_string());
        self.failure.clone()
    }

    /// The error since the last check, if there was one.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    /// Returns the number of lines dropped since the last call; 0 while the file cannot be written, when nobody could
    /// read the number there.
    pub(super) fn take_lost(&mut self) -> u64 {
        if self.failure.is_none() { std::mem::take(&mut self.lost) } else { 0 }
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        while let Some(mut line) = self.waiting.pop_front() {
            if let Err(error) = self.append(&mut line) {
                self.waiting.push_front(line);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes a line. After an error, it holds the rest that the file still lacks.
    fn append(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        let file = self.with_room(line.len() as u64)?;
        while !line.is_empty() {
            match file.write(line) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(line.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reserves space in the file and on the disk, so that the lines of a change that has begun can be written. If the
    /// file has no room for them, it is rotated now: they would go to the next file, where nothing is reserved.
    fn reserve(&mut self) -> io::Result<()> {
        let reserved = self.reserved_bytes();
        let file = self.with_room(reserved)?;
        let end = file.metadata()?.len();
        match fallocate(file, FallocateFlags::KEEP_SIZE, end, reserved) {
            // Some file systems and all devices cannot reserve; there, the last write tells whether the next may
            // succeed.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV | Errno::SPIPE | Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Less in a small file, most of which is for lines.
    fn reserved_bytes(&self) -> u64 {
        RESERVED_BYTES_MAX.min(self.bytes_max / 4)
    }

    /// The file, after rotation if it would become too large.
    fn with_room(&mut self, bytes: u64) -> io::Result<&mut File> {
        let size = self.current()?.metadata()?.len();
        if size > 0 && size.saturating_add(bytes) > self.bytes_max {
            self.rotate()?;
        }
        self.current()
    }

    /// The open file. Opens it again if somebody moved or deleted it, such as another process that rotated it.
    fn current(&mut self) -> io::Result<&mut File> {
        if self.is_moved()? {
            self.file = None;
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    fn is_moved(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        match fs::metadata(&self.path) {
            Ok(found) => Ok(identity(found) != identity(file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Renames `audit.log` to `audit.log.1`, that to `audit.log.2` and so on. The oldest is deleted.
    fn rotate(&mut self) -> io::Result<()> {
        // An operator's command may write to the same file. The lock ends when the file is closed.
        self.current()?.lock()?;
        let rotated = self.rename_all();
        self.file = None;
        rotated
    }

    fn rename_all(&self) -> io::Result<()> {
        if self.is_moved()? {
            return Ok(());
        }
        for number in (0..self.files_max - 1).rev() {
            rename_if_present(&self.numbered(number), &self.numbered(number + 1))?;
        }
        if self.files_max == 1 { fs::remove_file(&self.path) } else { Ok(()) }
    }

    /// The path of an older file; number 0 is the current one.
    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = OsString::from(&self.path);
        if number > 0 {
            path.push(format!(".{number}"));
        }
        path.into()
    }
}

fn rename_if_present(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file for appending, readable by its owner alone, and ends a line that a killed process wrote only in part.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}
