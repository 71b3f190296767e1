//! What loading a function set left: a Wasm module of nothing but data, to be laid over the guest's first memory.
//!
//! Standard sections, readable by any tool: the size of the memory, active data segments, and two custom ones, `airlock`
//! (which guest and texts it belongs to) and `airlock.mac` (a seal over all before it). A segment holds a run of bytes
//! that differ, never crosses a page, and lies behind the one before.

mod read;
mod write;

use crate::contract::sources::SourcesHash;
use crate::contract::wire::Dialect;
use crate::error::ModuleError;
use crate::load::guest::Guest;
use crate::load::seal::{SEAL_BYTES, SealKey};
use crate::settings::Limits;

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
    /// Writes down how `memory`, which is whole Wasm pages, differs from the first one of `guest`.
    pub(crate) fn between(guest: &Guest, memory: &[u8], about: &About, key: &SealKey) -> Result<Self, ModuleError> {
        let mut bytes = write::body(guest, memory, about);
        let seal = key.seal(&bytes);
        bytes.extend_from_slice(SEAL_HEADER);
        bytes.extend_from_slice(&seal);
        Self::parse(bytes.into())
    }

    /// The longest module worth proving: segments take less than twice the pages that they change.
    pub(crate) fn bytes_max(limits: &Limits) -> usize {
        limits.kept_bytes_max.saturating_mul(2)
    }

    /// Reads a module that was kept somewhere, and trusts nothing of it that its seal does not prove.
    pub(crate) fn read(bytes: Box<[u8]>, key: &SealKey, limits: &Limits) -> Result<Self, ModuleError> {
        within(bytes.len(), Self::bytes_max(limits))?;
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

    /// Checks that it goes over the first memory of `guest`, and that it needs no more than `limits` allow.
    pub(crate) fn check_fits(&self, guest: &Guest, limits: &Limits) -> Result<(), ModuleError> {
        if self.about.guest != guest.digest || self.memory_bytes < guest.memory.len() {
            return Err(ModuleError::OtherGuest);
        }
        within(self.changed_bytes(), limits.kept_bytes_max)?;
        within(self.memory_bytes, limits.memory_bytes_max)
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

/// Says what is wrong with bytes as a module, whatever their seal: for tests and fuzzing.
pub fn is_module(bytes: &[u8]) -> Result<(), ModuleError> {
    let module = Module::parse(bytes.into())?;
    let mut page = [0; PAGE_BYTES];
    module.pages().for_each(|changed| changed.lay_over(&mut page));
    Ok(())
}

fn within(bytes: usize, bytes_max: usize) -> Result<(), ModuleError> {
    if bytes > bytes_max { Err(ModuleError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// All that is sealed, and the seal.
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

    fn about(guest: u8) -> About {
        About { guest: [guest; 32], hash: Sources::default().hash(), dialects: [None; 4], fuel: 9 }
    }

    fn guest(digest: u8, memory: &[u8]) -> Guest {
        Guest { digest: [digest; 32], code: Vec::new(), memory: memory.into(), running_slot: 0, stack_pointer: 0 }
    }

    /// A first memory of one Wasm page, and one of two that differs at its edges, in the middle, and throughout a page.
    fn memories() -> (Vec<u8>, Vec<u8>) {
        let first: Vec<u8> = (0..WASM_PAGE_BYTES).map(|place| (place % 251) as u8).collect();
        let mut memory = first.clone();
        memory.resize(2 * WASM_PAGE_BYTES, 0);
        for place in [0, 1, 9, 30, PAGE_BYTES - 1, PAGE_BYTES, 2 * WASM_PAGE_BYTES - 1] {
            memory[place] ^= 0xff;
        }
        memory[3 * PAGE_BYTES..4 * PAGE_BYTES].fill(1);
        memory[5 * PAGE_BYTES..6 * PAGE_BYTES].iter_mut().step_by(20).for_each(|byte| *byte ^= 1);
        (first, memory)
    }

    #[test]
    fn laid_over_the_first_memory_it_gives_back_the_other() {
        let (first, memory) = memories();
        let module = Module::between(&guest(1, &first), &memory, &about(1), &SealKey::new(&KEY)).unwrap();
        let mut again = first;
        again.resize(module.memory_bytes(), 0);
        for page in module.pages() {
            page.lay_over((&mut again[page.start..page.start + PAGE_BYTES]).try_into().unwrap());
        }
        assert!(again == memory);
        assert_eq!(module.about(), &about(1));
        assert_eq!(module.changed_bytes(), 5 * PAGE_BYTES);
        assert!(module.as_bytes().len() < 3 * PAGE_BYTES, "{}", module.as_bytes().len());
    }

    #[test]
    fn a_memory_that_did_not_change_takes_next_to_nothing() {
        let (first, _) = memories();
        let module = Module::between(&guest(1, &first), &first, &about(1), &SealKey::new(&KEY)).unwrap();
        assert_eq!((module.pages().count(), module.memory_bytes()), (0, WASM_PAGE_BYTES));
        assert!(module.resident_bytes() < 500);
    }

    #[test]
    fn what_calls_left_on_the_stack_is_not_kept() {
        let (first, memory) = memories();
        let guest = Guest { stack_pointer: 3 * PAGE_BYTES as i32 + 100, ..guest(1, &first) };
        let module = Module::between(&guest, &memory, &about(1), &SealKey::new(&KEY)).unwrap();
        assert_eq!(module.pages().next().map(|page| page.start), Some(3 * PAGE_BYTES));
    }

    #[test]
    fn it_fits_only_its_own_guest() {
        let (first, memory) = memories();
        let module = Module::between(&guest(1, &first), &memory, &about(1), &SealKey::new(&KEY)).unwrap();
        let limits = Limits::default();
        assert_eq!(module.check_fits(&guest(1, &first), &limits), Ok(()));
        assert_eq!(module.check_fits(&guest(2, &first), &limits), Err(ModuleError::OtherGuest));
        let longer = vec![0; 3 * WASM_PAGE_BYTES];
        assert_eq!(module.check_fits(&guest(1, &longer), &limits), Err(ModuleError::OtherGuest));
    }
}
