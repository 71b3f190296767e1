//! The address space of one linear memory: mapped from an image, restored after each message, revoked by the watchdog.
#![allow(unsafe_code, reason = "maps, protects and copies back the memory of instances")]

mod protect;
mod restore;

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::memory::image::{FILE_BYTES, Image};
pub(crate) use restore::Baseline;

/// Compiled code accesses memory without bounds checks; everything that a 32-bit index can reach faults in here.
pub(crate) const RESERVED_BYTES: usize = 4 << 30;
/// Inaccessible memory before and after that.
pub(crate) const GUARD_BYTES: usize = 32 << 20;
const MAPPED_BYTES: usize = GUARD_BYTES + RESERVED_BYTES + GUARD_BYTES;

/// The address space of one linear memory.
///
/// Only the thread that runs the instance touches its bytes. The watchdog may revoke access, but only while a call is
/// armed.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    access: Mutex<Access>,
}

#[derive(Default)]
struct Access {
    /// Accessible bytes from the base.
    open_bytes: usize,
    /// The deadline of the running call; `None` between calls.
    deadline: Option<Instant>,
    /// True if a call was armed since the last check of the watchdog.
    used: bool,
    /// True if the watchdog has revoked access, or tried to.
    is_revoked: bool,
    /// True if all pages but those of `changed` are read-only.
    is_protected: bool,
    /// Offsets of the pages that differ from the image's file, as of the last scan.
    changed: Vec<Range<usize>>,
    /// True if that scan is out of date, because pages were dropped since or could not be protected.
    is_scan_stale: bool,
    /// For each page, the number of times in a row that it was unchanged.
    idle: Vec<u8>,
    /// Number of times that the memory was restored.
    restore_count: u32,
}

impl Access {
    fn changed_bytes(&self) -> usize {
        self.changed.iter().map(Range::len).sum()
    }
}

// SAFETY: the value owns the address space, and `Instance` upholds who may touch its bytes (see above).
unsafe impl Send for Mapping {}
// SAFETY: as above; everything else is behind the lock.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves address space, all of it inaccessible.
    pub(crate) fn reserve() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), MAPPED_BYTES, ProtFlags::empty(), flags) }?;
        // SAFETY: inside the mapping that was just made.
        let base = NonNull::new(unsafe { start.cast::<u8>().add(GUARD_BYTES) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, access: Mutex::default() })
    }

    /// Maps `image`, followed by zeros, into the first `len` bytes and makes the rest inaccessible.
    pub(crate) fn map_image(&self, image: &Image, len: usize) -> io::Result<()> {
        let mut access = self.lock();
        self.make_inaccessible(len..access.open_bytes.max(len))?;
        // Before mapping, so that a failure leaves nothing accessible.
        access.open_bytes = 0;
        access.changed.clear();
        access.idle.clear();
        access.is_scan_stale = true;
        let (flags, open) = (MapFlags::PRIVATE | MapFlags::FIXED, ProtFlags::READ | ProtFlags::WRITE);
        let base = self.base.as_ptr().cast();
        match image.file() {
            // A mapping is not accessible beyond the end of its file.
            Some(_) if len > image.len().max(FILE_BYTES) => return Err(io::ErrorKind::InvalidInput.into()),
            // SAFETY: replaces pages of our own address space, which no one else touches (see `Mapping`).
            Some(file) => unsafe { rustix::mm::mmap(base, len, open, flags, file, 0) }?,
            None => {
                // SAFETY: as above; the copy goes to fresh pages of at least that length.
                unsafe {
                    let fresh = rustix::mm::mmap_anonymous(base, len, open, flags)?;
                    ptr::copy_nonoverlapping(image.as_ptr(), fresh.cast::<u8>(), image.len().min(len));
                    fresh
                }
            }
        };
        access.open_bytes = len;
        access.is_revoked = false;
        access.is_protected = false;
        Ok(())
    }

    /// Lets a call run until `deadline`; from here on the watchdog may revoke access.
    pub(crate) fn arm(&self, deadline: Instant) {
        let mut access = self.lock();
        access.deadline = Some(deadline);
        access.used = true;
    }

    /// Ends a call and restores access; true if the watchdog had revoked it.
    pub(crate) fn disarm(&self) -> io::Result<bool> {
        let mut access = self.lock();
        access.deadline = None;
        if access.is_revoked {
            self.make_writable(&mut access)?;
            access.is_revoked = false;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns true if access is revoked, so that the memory must not be read.
    pub(crate) fn is_revoked(&self) -> bool {
        self.lock().is_revoked
    }

    /// Revokes access if the call is overdue; returns true if a call was armed since the last check.
    pub(crate) fn revoke_if_overdue(&self, now: Instant) -> io::Result<bool> {
        let mut access = self.lock();
        if access.deadline.is_some_and(|deadline| deadline <= now) {
            // First, because a failure may leave some pages inaccessible; and again at each check until the call ends.
            access.is_revoked = true;
            self.protect(0..access.open_bytes, MprotectFlags::empty())?;
        }
        Ok(std::mem::take(&mut access.used) || access.deadline.is_some())
    }

    /// The total size of the pages that differed from the image at the last scan.
    pub(crate) fn changed_bytes(&self) -> usize {
        self.lock().changed_bytes()
    }

    /// Writes one byte, as a guest would. Must not be called while a guest runs.
    pub(crate) fn write(&self, offset: usize, value: u8) -> io::Result<()> {
        let access = self.lock();
        if offset >= access.open_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: below `open_bytes`, hence accessible, and no guest runs.
        unsafe { self.base.as_ptr().add(offset).write_volatile(value) };
        Ok(())
    }

    /// A copy of the accessible bytes. Must not be called while a guest runs.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let access = self.lock();
        // SAFETY: accessible up to `open_bytes`, and no guest runs.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), access.open_bytes) }.to_vec()
    }

    /// The start of the memory.
    pub(crate) const fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    fn lock(&self) -> MutexGuard<'_, Access> {
        // No code that holds this lock leaves `Access` inconsistent, so a poisoned lock is safe to use.
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the first `bytes` accessible, unless the watchdog has revoked access.
    pub(crate) fn grow_to(&self, bytes: usize) -> io::Result<()> {
        let mut access = self.lock();
        if access.is_revoked {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if bytes > access.open_bytes {
            self.protect(access.open_bytes..bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            access.open_bytes = bytes;
        }
        Ok(())
    }

    fn shrink(&self, access: &mut Access, bytes: usize) -> io::Result<()> {
        if access.open_bytes > bytes {
            self.make_inaccessible(bytes..access.open_bytes)?;
            access.open_bytes = bytes;
        }
        Ok(())
    }

    /// Drops the pages in `range` and makes them inaccessible.
    fn make_inaccessible(&self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        let start = self.address(range.start)?;
        // SAFETY: replaces pages of our own address space, which no one else touches (see `Mapping`).
        unsafe { rustix::mm::mmap_anonymous(start.cast(), range.len(), ProtFlags::empty(), flags) }?;
        Ok(())
    }

    fn protect(&self, range: Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        let start = self.address(range.start)?;
        if range.end > RESERVED_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: our own address space. Only compiled code can fault on it, and that is a trap: between messages, the
        // host writes to pages that have changed, which are writable, and during one it asks `is_writable`.
        unsafe { rustix::mm::mprotect(start.cast(), range.len(), flags) }?;
        Ok(())
    }

    fn address(&self, offset: usize) -> io::Result<*mut u8> {
        if offset > RESERVED_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: inside the address space that `reserve` made.
        Ok(unsafe { self.base.as_ptr().add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `reserve` mapped; an instance that uses it holds an `Arc` to this value.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().sub(GUARD_BYTES).cast(), MAPPED_BYTES) };
        debug_assert!(unmapped.is_ok());
    }
}
