//! The memory that every message of one function set starts from, in a form that can be mapped.
#![allow(unsafe_code, reason = "maps a sealed file to read it")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::heap::Piece;

/// Bytes that never change; whole Wasm pages of them.
pub(crate) enum Image {
    /// In a file without a name that processes can map privately.
    File(ImageFile),
    /// On the heap, for systems without such files.
    Heap(Box<[u8]>),
}

impl Image {
    /// Puts `pieces` into a sealed file of `len` bytes; zeros elsewhere take no room until they are read.
    pub(crate) fn in_file<'a>(len: usize, pieces: impl Iterator<Item = Piece<'a>>) -> io::Result<Self> {
        let file = rustix::fs::memfd_create("airlock-image", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let file = File::from(file);
        file.set_len(len as u64)?;
        for (start, bytes) in pieces {
            file.write_all_at(bytes, start as u64)?;
        }
        rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that can no longer shrink.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self::File(ImageFile { file, base, len }))
    }

    /// Puts `pieces` on the heap, between zeros.
    pub(crate) fn on_heap<'a>(len: usize, pieces: impl Iterator<Item = Piece<'a>>) -> Self {
        let mut memory = vec![0; len];
        for (start, bytes) in pieces {
            memory[start..start + bytes.len()].copy_from_slice(bytes);
        }
        Self::Heap(memory.into())
    }

    /// The file behind it, if there is one.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(image) => Some(image.file.as_fd()),
            Self::Heap(_) => None,
        }
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: `base` is mapped for `len` bytes until drop, and the seals forbid every change of the file.
            Self::File(image) => unsafe { std::slice::from_raw_parts(image.base.as_ptr(), image.len) },
            Self::Heap(bytes) => bytes,
        }
    }
}

/// A sealed file and a mapping to read it by.
pub(crate) struct ImageFile {
    file: File,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is read only and belongs to nobody's thread.
unsafe impl Send for ImageFile {}
// SAFETY: as above.
unsafe impl Sync for ImageFile {}

impl Drop for ImageFile {
    fn drop(&mut self) {
        // SAFETY: the mapping that `in_file` made; nobody can borrow its bytes any more.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}
