//! What loading a function set left: a Wasm module of nothing but data, to be laid over the guest's first memory.
//!
//! Standard sections, readable by any tool: the size of the memory, active data segments, and two custom ones, `airlock`
//! (which guest and texts it belongs to) and `airlock.mac` (a seal over all before it). A segment holds a run of bytes
//! that differ, never crosses a page, and lies behind the one before.

mod read;
mod write;

use crate::error::ModuleError;
use crate::seal::{SEAL_BYTES, SealKey};
use crate::sources::SourcesHash;
use crate::wire::Dialect;

/// The bytes of one page of a memory; the machine's page is usually the same.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The name of the section that says what the data belongs to.
const ABOUT: &str = "airlock";
/// All of the last section before the seal itself: an id, a length, and the name `airlock.mac` with its length.
const SEAL_HEADER: &[u8] = b"\0\x2c\x0bairlock.mac";
/// The version of this format.
const FORMAT: u8 = 1;

/// What a module belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The SHA-256 of the guest over whose first memory it goes.
    pub(crate) guest: [u8; 32],
    /// The texts and limits it was loaded from.
    pub(crate) hash: SourcesHash,
    /// The calling convention of the function in each slot.
    pub(crate) dialects: [Option<Dialect>; 4],
    /// The fuel that loading took.
    pub(crate) fuel: u64,
}

/// A module that was written here, or was read and found whole.
pub(crate) struct Module {
    bytes: Box<[u8]>,
    about: About,
    memory_bytes: usize,
    /// The pages that it changes, in rising order.
    pages: Box<[Place]>,
    /// Where the segments end.
    data_end: usize,
}

/// Where the segments of one page begin.
struct Place {
    page: u32,
    at: u32,
}

impl Module {
    /// Writes down how `memory` differs from `first`: whole pages both, `first` being no longer.
    pub(crate) fn between(first: &[u8], memory: &[u8], about: &About, key: &SealKey) -> Result<Self, ModuleError> {
        let mut bytes = write::body(first, memory, about);
        let seal = key.seal(&bytes);
        bytes.extend_from_slice(SEAL_HEADER);
        bytes.extend_from_slice(&seal);
        Self::read(bytes.into(), key)
    }

    /// Reads a module that was kept somewhere, and trusts nothing of it that its seal does not prove.
    pub(crate) fn read(bytes: Box<[u8]>, key: &SealKey) -> Result<Self, ModuleError> {
        let (body, seal) = split(&bytes).ok_or(ModuleError::Damaged("it does not end in a seal"))?;
        key.check(body, seal)?;
        Self::parse(bytes)
    }

    /// The same for bytes whose seal is not asked for, which is how the checks behind it are tested.
    pub(crate) fn parse(bytes: Box<[u8]>) -> Result<Self, ModuleError> {
        let (body, _) = split(&bytes).ok_or(ModuleError::Damaged("it does not end in a seal"))?;
        let read::Parts { about, memory_bytes, pages, data_end } = read::body(body)?;
        Ok(Self { about, memory_bytes, pages, data_end, bytes })
    }

    /// The module as it can be kept anywhere.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it belongs to.
    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    /// The length of the memory that it describes; whole Wasm pages.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The bytes of the pages that it changes: what a sandbox needs for it beyond the guest's first memory.
    pub(crate) fn changed_bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// The bytes that this value takes.
    pub(crate) fn resident_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.pages)
    }

    /// The pages that it changes, in rising order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Page<'_>> {
        let ends = self.pages.iter().skip(1).map(|next| next.at as usize).chain([self.data_end]);
        self.pages.iter().zip(ends).map(|(place, end)| Page {
            start: place.page as usize * PAGE_BYTES,
            segments: self.bytes.get(place.at as usize..end).unwrap_or_default(),
        })
    }
}

/// One page that a module changes.
pub(crate) struct Page<'a> {
    /// Where in the memory it begins.
    pub(crate) start: usize,
    segments: &'a [u8],
}

impl Page<'_> {
    /// Lays its bytes over `page`, which holds the page of the first memory.
    pub(crate) fn lay_over(&self, page: &mut [u8; PAGE_BYTES]) {
        let mut rest = self.segments;
        while let Some(segment) = read::segment(rest) {
            // Inside the page: every module was checked for that when it was read.
            let start = (segment.offset as usize).wrapping_sub(self.start);
            if let Some(place) = page.get_mut(start..).and_then(|room| room.get_mut(..segment.bytes.len())) {
                place.copy_from_slice(segment.bytes);
            }
            rest = segment.rest;
        }
    }
}

/// All that is sealed, and the seal.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
    Some((rest.strip_suffix(SEAL_HEADER)?, seal))
}
