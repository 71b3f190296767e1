//! Memory images: the memory that messages start from, ready to be mapped.
#![allow(unsafe_code, reason = "maps a sealed file to read it")]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::load::module::{Module, PAGE_BYTES};

/// The length of an image's file. It is padded with zeros, so that longer memories can be mapped from it; a sparse file
/// takes no space for them.
pub(crate) const FILE_BYTES: usize = 64 << 20;
/// A page after the end of an image.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// An immutable memory of whole Wasm pages, followed by zeros.
pub(crate) enum Image {
    /// In a sealed `memfd`, to be mapped privately.
    File(ImageFile),
    /// On the heap, for systems without `memfd`.
    Heap(Box<[u8]>),
}

impl Image {
    /// Writes `initial`, with `module` applied, into a sealed file.
    pub(crate) fn in_file(initial: &[u8], module: Option<&Module>) -> io::Result<Self> {
        let len = module.map_or(initial.len(), Module::memory_bytes);
        let file = rustix::fs::memfd_create("airlock-image", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let file = File::from(file);
        file.set_len(len.max(FILE_BYTES) as u64)?;
        for run in nonzero_runs(initial) {
            file.write_all_at(&initial[run.clone()], run.start as u64)?;
        }
        for (start, page) in changed_pages(initial, module) {
            file.write_all_at(&page, start as u64)?;
        }
        rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that can no longer shrink.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self::File(ImageFile { file, base, len }))
    }

    /// Copies `initial`, with `module` applied, to the heap.
    pub(crate) fn on_heap(initial: &[u8], module: Option<&Module>) -> Self {
        let mut memory = vec![0; module.map_or(initial.len(), Module::memory_bytes)];
        memory[..initial.len()].copy_from_slice(initial);
        for (start, page) in changed_pages(initial, module) {
            memory[start..start + PAGE_BYTES].copy_from_slice(&page);
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

    /// The page at `start`, which may be after the end.
    pub(crate) fn page(&self, start: usize) -> &[u8; PAGE_BYTES] {
        self.get(start..).and_then(<[u8]>::first_chunk).unwrap_or(&ZEROS)
    }
}

/// The runs of pages that are not all zeros.
fn nonzero_runs(memory: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, _) in memory.chunks(PAGE_BYTES).enumerate().filter(|(_, page)| **page != ZEROS[..page.len()]) {
        let start = number * PAGE_BYTES;
        match runs.last_mut() {
            Some(run) if run.end == start => run.end = start + PAGE_BYTES,
            _ => runs.push(start..start + PAGE_BYTES),
        }
    }
    runs
}

/// The pages that `module` changes, with their addresses.
fn changed_pages(initial: &[u8], module: Option<&Module>) -> impl Iterator<Item = (usize, [u8; PAGE_BYTES])> {
    module.into_iter().flat_map(Module::pages).map(|changed| {
        let mut page = *initial.get(changed.start..).and_then(<[u8]>::first_chunk).unwrap_or(&ZEROS);
        changed.apply_to(&mut page);
        (changed.start, page)
    })
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

// SAFETY: the mapping is read-only and not tied to a thread.
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
