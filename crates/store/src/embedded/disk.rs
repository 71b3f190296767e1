//! The file of the database, whose blocks are allocated before they are needed: another program that fills the disk does
//! not take them away.

use std::{
    fs::File,
    io,
    ops::Bound,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use redb::{BackendError, StorageBackend, backends::FileBackend};

/// Minimum and maximum space allocated ahead, in bytes; in between it is a part of the file.
const AHEAD_BYTES: (u64, u64) = (1 << 20, 64 << 20);
const AHEAD_PART: u64 = 8;

/// Measures the file system of an embedded store.
#[derive(Clone, Debug)]
pub struct StoreDisk {
    path: PathBuf,
}

/// Space that is there, that is left, and that the store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// The size of the disk in bytes.
    pub total_bytes: u64,
    /// Space that is free for this process, in bytes.
    pub free_bytes: u64,
    /// Space that the file of the store takes, in bytes, including its unused parts.
    pub file_bytes: u64,
}

impl StoreDisk {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns the space at the moment. Fails if the system does not tell.
    #[cfg(unix)]
    pub fn space(&self) -> io::Result<DiskSpace> {
        let disk = rustix::fs::statvfs(&self.path)?;
        let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&self.path)?);
        Ok(DiskSpace {
            total_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            // Whatever the block size of the disk is.
            file_bytes: blocks.saturating_mul(512),
        })
    }

    /// Returns the space at the moment. Always fails here: it is known on Unix only.
    #[cfg(not(unix))]
    pub fn space(&self) -> io::Result<DiskSpace> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file whose blocks are allocated ahead.
#[derive(Debug)]
pub(super) struct AllocatedFile {
    file: File,
    inner: FileBackend,
    /// Up to where blocks are allocated.
    allocated: AtomicU64,
}

impl AllocatedFile {
    /// Wraps `inner`; `file` must be the same file.
    pub(super) fn new(file: File, inner: FileBackend) -> Self {
        let this = Self { allocated: AtomicU64::new(written(&file)), file, inner };
        this.allocate(0);
        this
    }

    /// Allocates blocks up to `end` and some more. Where that is not possible, writing tells whether there is room.
    fn allocate(&self, end: u64) {
        let allocated = self.allocated.load(Ordering::Relaxed);
        let ahead = (allocated / AHEAD_PART).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1);
        if end != 0 && end.saturating_add(ahead / 2) <= allocated {
            return;
        }
        let wanted = end.max(allocated).saturating_add(ahead);
        if allocate(&self.file, allocated, wanted - allocated).is_ok() {
            self.allocated.store(wanted, Ordering::Relaxed);
        }
    }
}

impl StorageBackend for AllocatedFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let before = self.inner.len()?;
        self.inner.set_len(len)?;
        if len < before {
            // Truncating frees what is behind the end.
            self.allocated.fetch_min(len, Ordering::Relaxed);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.allocate(offset.saturating_add(data.len() as u64));
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}

/// Returns the length up to which a file has been written without a gap: redb lengthens its file before it writes.
#[cfg(unix)]
fn written(file: &File) -> u64 {
    rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0)).unwrap_or(0)
}

/// Allocates blocks without changing the length of the file.
#[cfg(unix)]
fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, offset, bytes)?)
}

#[cfg(not(unix))]
fn written(_file: &File) -> u64 {
    0
}

#[cfg(not(unix))]
fn allocate(_file: &File, _offset: u64, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
