//! Linear memory: address space that an image is laid over, put back after each message, and closed by the watchdog.
#![allow(unsafe_code, reason = "maps, protects and copies back the memory of instances")]

mod restore;

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::memory::image::{FILE_BYTES, Image};
pub(crate) use restore::Pristine;

/// What compiled code may address without a check: 32 bits of index and as many of offset fault in here.
pub(crate) const RESERVED_BYTES: usize = 4 << 30;
/// What lies before and after that, never accessible.
pub(crate) const GUARD_BYTES: usize = 32 << 20;
const MAPPED_BYTES: usize = GUARD_BYTES + RESERVED_BYTES + GUARD_BYTES;

/// The address space of one linear memory.
///
/// Only the thread that runs the instance touches its bytes; the watchdog may close it, and only while a call is armed.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    access: Mutex<Access>,
}

/// Who may touch a mapping just now.
#[derive(Default)]
struct Access {
    /// Bytes from the base that can be read and written.
    open_bytes: usize,
    /// When the running call has had its time; `None` between calls.
    deadline: Option<Instant>,
    /// Whether a call was armed since the watchdog last looked.
    used: bool,
    /// Whether the watchdog closed it.
    closed: bool,
    /// Offsets of the pages that are not those of the image's file, as of the last scan.
    changed: Vec<Range<usize>>,
    /// Whether that scan no longer holds, because pages were given back since.
    unsure: bool,
    /// For each page how often in a row nobody had written to it.
    idle: Vec<u8>,
    /// How often it was put back.
    restored: u32,
}

// SAFETY: the address space belongs to the value; who may touch its bytes is said above and kept by `Instance`.
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

    /// Makes the first `len` bytes `image` and zeros behind it, and everything behind that inaccessible.
    pub(crate) fn lay(&self, image: &Image, len: usize) -> io::Result<()> {
        let mut access = self.lock();
        self.hide(len..access.open_bytes.max(len))?;
        // In this order, so that a failure leaves nothing open that is not the image.
        access.open_bytes = 0;
        access.changed.clear();
        access.idle.clear();
        access.unsure = true;
        let (flags, open) = (MapFlags::PRIVATE | MapFlags::FIXED, ProtFlags::READ | ProtFlags::WRITE);
        let base = self.base.as_ptr().cast();
        match image.file() {
            // Behind the end of its file a mapping cannot be touched.
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
        access.closed = false;
        Ok(())
    }

    /// Lets a call run until `deadline`; from here on the watchdog may close the memory.
    pub(crate) fn arm(&self, deadline: Instant) {
        let mut access = self.lock();
        access.deadline = Some(deadline);
        access.used = true;
    }

    /// Ends a call; true when the watchdog had closed the memory, which is open again now.
    pub(crate) fn disarm(&self) -> io::Result<bool> {
        let mut access = self.lock();
        access.deadline = None;
        if access.closed {
            self.protect(0..access.open_bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            access.closed = false;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether the memory is closed, so that nobody may read it.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the memory if its call is overdue; says whether it was used since the last look.
    pub(crate) fn close_if_overdue(&self, now: Instant) -> io::Result<bool> {
        let mut access = self.lock();
        if access.deadline.is_some_and(|deadline| deadline <= now) && !access.closed {
            self.protect(0..access.open_bytes, MprotectFlags::empty())?;
            access.closed = true;
        }
        Ok(std::mem::take(&mut access.used) || access.deadline.is_some())
    }

    /// The bytes in pages that were not those of the image when it was last put back.
    pub(crate) fn changed_bytes(&self) -> usize {
        self.lock().changed.iter().map(Range::len).sum()
    }

    /// Writes one byte as a guest would. Not for use while a guest runs on it.
    pub(crate) fn write(&self, offset: usize, value: u8) -> io::Result<()> {
        let access = self.lock();
        if offset >= access.open_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: below `open_bytes`, hence accessible, and no guest runs.
        unsafe { self.base.as_ptr().add(offset).write_volatile(value) };
        Ok(())
    }

    /// A copy of what is accessible. Not for use while a guest runs on it.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let access = self.lock();
        // SAFETY: accessible up to `open_bytes`, and no guest runs.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), access.open_bytes) }.to_vec()
    }

    /// Where the memory begins.
    pub(crate) const fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    fn lock(&self) -> MutexGuard<'_, Access> {
        // Every change of `Access` is complete in itself, so a panic elsewhere leaves nothing half done.
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the first `bytes` accessible, unless the watchdog has closed the memory.
    pub(crate) fn open_to(&self, bytes: usize) -> io::Result<()> {
        let mut access = self.lock();
        if access.closed {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if bytes > access.open_bytes {
            self.protect(access.open_bytes..bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            access.open_bytes = bytes;
        }
        Ok(())
    }

    fn shrink(&self, bytes: usize) -> io::Result<()> {
        let mut access = self.lock();
        if access.open_bytes > bytes {
            self.hide(bytes..access.open_bytes)?;
            access.open_bytes = bytes;
        }
        Ok(())
    }

    /// Drops the pages of `range` and makes it inaccessible.
    fn hide(&self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        let start = self.at(range.start)?;
        // SAFETY: replaces pages of our own address space, which no one else touches (see `Mapping`).
        unsafe { rustix::mm::mmap_anonymous(start.cast(), range.len(), ProtFlags::empty(), flags) }?;
        Ok(())
    }

    fn protect(&self, range: Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        let start = self.at(range.start)?;
        if range.end > RESERVED_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: our own address space. Whoever faults on it is compiled code, and that fault is a trap.
        unsafe { rustix::mm::mprotect(start.cast(), range.len(), flags) }?;
        Ok(())
    }

    fn at(&self, offset: usize) -> io::Result<*mut u8> {
        if offset > RESERVED_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: inside the address space that `reserve` made.
        Ok(unsafe { self.base.as_ptr().add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `reserve` made; whoever holds an instance over it holds the mapping too.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().sub(GUARD_BYTES).cast(), MAPPED_BYTES) };
        debug_assert!(unmapped.is_ok());
    }
}
