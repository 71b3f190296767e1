//! A loaded function set: a data-only Wasm module that is applied to the guest's initial memory.
//!
//! It has standard sections that any tool can read: the size of the memory, active data segments, and two custom ones,
//! `airlock` (which guest and sources it belongs to) and `airlock.mac` (a seal over everything before it). A segment
//! holds a run of changed bytes and never crosses a page; segments are in ascending order.

mod read;
mod write;

use crate::contract::sources::SourcesHash;
use crate::contract::wire::Dialect;
use crate::error::ModuleError;
use crate::limits::Limits;
use crate::load::guest::Guest;
use crate::load::seal::{SEAL_BYTES, SealKey};

/// The granularity of changes; usually the page size of the machine.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The name of the metadata section.
const METADATA: &str = "airlock";
/// The header of the last section: its id, its length, and the name `airlock.mac` with its length.
const SEAL_HEADER: &[u8] = b"\0\x2c\x0bairlock.mac";
/// The version of this format.
const FORMAT: u8 = 1;

/// Origin of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The SHA-256 of the guest.
    pub(crate) guest: [u8; 32],
    pub(crate) hash: SourcesHash,
    /// The dialect of the function in each slot.
    pub(crate) dialects: [Option<Dialect>; 4],
    /// The fuel that loading took.
    pub(crate) fuel: u64,
}

/// A module that was just written, or read and verified.
pub(crate) struct Module {
    bytes: Box<[u8]>,
    metadata: Metadata,
    memory_bytes: usize,
    /// The changed pages, in ascending order.
    pages: Box<[PageIndex]>,
    /// End of the segments.
    data_end: usize,
}

/// Start of the segments of one page in the file.
struct PageIndex {
    page: u32,
    offset: u32,
}

impl Module {
    /// Writes the difference between the initial memory of `guest` and `memory`, which is whole Wasm pages.
    pub(crate) fn diff(guest: &Guest, memory: &[u8], metadata: &Metadata, key: &SealKey) -> Result<Self, ModuleError> {
        let mut bytes = write::body(guest, memory, metadata);
        let seal = key.seal(&bytes);
        bytes.extend_from_slice(SEAL_HEADER);
        bytes.extend_from_slice(&seal);
        Self::parse(bytes.into())
    }

    /// Returns the maximum length of a module within `limits`: segments take less than twice the size of the pages that
    /// they change.
    pub(crate) fn bytes_max(limits: &Limits) -> usize {
        limits.kept_bytes_max.saturating_mul(2)
    }

    pub(crate) fn read(bytes: Box<[u8]>, key: &SealKey, limits: &Limits) -> Result<Self, ModuleError> {
        check_size(bytes.len(), Self::bytes_max(limits))?;
        let (body, seal) = split(&bytes).ok_or(ModuleError::Damaged("it does not end in a seal"))?;
        key.check(body, seal)?;
        Self::parse(bytes)
    }

    /// Reads a module without verifying its seal; separate so that fuzzing reaches the parser.
    pub(crate) fn parse(bytes: Box<[u8]>) -> Result<Self, ModuleError> {
        let (body, _) = split(&bytes).ok_or(ModuleError::Damaged("it does not end in a seal"))?;
        let read::Parts { metadata, memory_bytes, pages, data_end } = read::body(body)?;
        Ok(Self { metadata, memory_bytes, pages, data_end, bytes })
    }

    /// Checks that it was made for `guest` and is within `limits`.
    pub(crate) fn check_fits(&self, guest: &Guest, limits: &Limits) -> Result<(), ModuleError> {
        if self.metadata.guest != guest.digest || self.memory_bytes < guest.memory.len() {
            return Err(ModuleError::OtherGuest);
        }
        check_size(self.changed_bytes(), limits.kept_bytes_max)?;
        check_size(self.memory_bytes, limits.memory_bytes_max)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the origin of the module.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The length of the memory; whole Wasm pages.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(crate) fn changed_bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// The memory that this value takes.
    pub(crate) fn resident_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.pages)
    }

    /// The changed pages, in ascending order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Page<'_>> {
        let ends = self.pages.iter().skip(1).map(|next| next.offset as usize).chain([self.data_end]);
        self.pages.iter().zip(ends).map(|(index, end)| Page {
            start: index.page as usize * PAGE_BYTES,
            segments: self.bytes.get(index.offset as usize..end).unwrap_or_default(),
        })
    }
}

pub(crate) struct Page<'a> {
    /// Its address in the memory.
    pub(crate) start: usize,
    segments: &'a [u8],
}

impl Page<'_> {
    /// Applies the changes to `page`, which holds the page of the initial memory.
    pub(crate) fn apply_to(&self, page: &mut [u8; PAGE_BYTES]) {
        let mut rest = self.segments;
        while let Some(segment) = read::segment(rest) {
            // Within the page: `read` has checked that.
            let start = (segment.offset as usize).wrapping_sub(self.start);
            if let Some(bytes) = page.get_mut(start..).and_then(|room| room.get_mut(..segment.bytes.len())) {
                bytes.copy_from_slice(segment.bytes);
            }
            rest = segment.rest;
        }
    }
}

/// Checks that bytes parse as a module, without verifying the seal. For tests and fuzzing.
pub fn check_module(bytes: &[u8]) -> Result<(), ModuleError> {
    let module = Module::parse(bytes.into())?;
    let mut page = [0; PAGE_BYTES];
    module.pages().for_each(|changed| changed.apply_to(&mut page));
    Ok(())
}

fn check_size(bytes: usize, bytes_max: usize) -> Result<(), ModuleError> {
    if bytes > bytes_max { Err(ModuleError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// Splits off the seal.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
    Some((rest.strip_suffix(SEAL_HEADER)?, seal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::sources::Sources;
    use crate::load::guest::WASM_PAGE_BYTES;

    const KEY: [u8; 32] = [7; 32];

    fn metadata(guest: u8) -> Metadata {
        Metadata { guest: [guest; 32], hash: Sources::default().hash(), dialects: [None; 4], fuel: 9 }
    }

    fn guest(digest: u8, memory: &[u8]) -> Guest {
        Guest { digest: [digest; 32], code: Vec::new(), memory: memory.into(), running_slot: 0, stack_pointer: 0 }
    }

    /// An initial memory of one Wasm page, and one of two pages that differs at its edges, in the middle, and in a
    /// whole page.
    fn memories() -> (Vec<u8>, Vec<u8>) {
        let first: Vec<u8> = (0..WASM_PAGE_BYTES).map(|index| (index % 251) as u8).collect();
        let mut memory = first.clone();
        memory.resize(2 * WASM_PAGE_BYTES, 0);
        for index in [0, 1, 9, 30, PAGE_BYTES - 1, PAGE_BYTES, 2 * WASM_PAGE_BYTES - 1] {
            memory[index] ^= 0xff;
        }
        memory[3 * PAGE_BYTES..4 * PAGE_BYTES].fill(1);
        memory[5 * PAGE_BYTES..6 * PAGE_BYTES].iter_mut().step_by(20).for_each(|byte| *byte ^= 1);
        (first, memory)
    }

    #[test]
    fn applying_the_difference_gives_the_second_memory() {
        let (first, memory) = memories();
        let module = Module::diff(&guest(1, &first), &memory, &metadata(1), &SealKey::new(&KEY)).unwrap();
        let mut patched = first;
        patched.resize(module.memory_bytes(), 0);
        for page in module.pages() {
            page.apply_to((&mut patched[page.start..page.start + PAGE_BYTES]).try_into().unwrap());
        }
        assert!(patched == memory);
        assert_eq!(module.metadata(), &metadata(1));
        assert_eq!(module.changed_bytes(), 5 * PAGE_BYTES);
        assert!(module.as_bytes().len() < 3 * PAGE_BYTES, "{}", module.as_bytes().len());
    }

    #[test]
    fn an_unchanged_memory_gives_a_tiny_module() {
        let (first, _) = memories();
        let module = Module::diff(&guest(1, &first), &first, &metadata(1), &SealKey::new(&KEY)).unwrap();
        assert_eq!((module.pages().count(), module.memory_bytes()), (0, WASM_PAGE_BYTES));
        assert!(module.resident_bytes() < 500);
    }

    #[test]
    fn stack_contents_are_not_saved() {
        let (first, memory) = memories();
        let guest = Guest { stack_pointer: 3 * PAGE_BYTES as i32 + 100, ..guest(1, &first) };
        let module = Module::diff(&guest, &memory, &metadata(1), &SealKey::new(&KEY)).unwrap();
        assert_eq!(module.pages().next().map(|page| page.start), Some(3 * PAGE_BYTES));
    }

    #[test]
    fn a_module_fits_only_its_own_guest() {
        let (first, memory) = memories();
        let module = Module::diff(&guest(1, &first), &memory, &metadata(1), &SealKey::new(&KEY)).unwrap();
        let limits = Limits::default();
        assert_eq!(module.check_fits(&guest(1, &first), &limits), Ok(()));
        assert_eq!(module.check_fits(&guest(2, &first), &limits), Err(ModuleError::OtherGuest));
        let longer = vec![0; 3 * WASM_PAGE_BYTES];
        assert_eq!(module.check_fits(&guest(1, &longer), &limits), Err(ModuleError::OtherGuest));
    }
}
