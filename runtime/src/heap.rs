//! The heap after evaluation: what loading a function set changed in the guest's memory.

use crate::guest::WASM_PAGE_BYTES;

/// The bytes of one page of the difference; the machine's page is usually the same.
const PAGE_BYTES: usize = 4096;

/// Bytes and where in a memory they go.
pub(crate) type Piece<'a> = (usize, &'a [u8]);

/// What of `memory` is not zero, in whole pages.
pub(crate) fn pieces(memory: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let pages = memory.chunks(PAGE_BYTES).enumerate().map(|(number, page)| (number * PAGE_BYTES, page));
    pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0))
}

/// A memory, kept as its difference from the guest's first one: tens to hundreds of pages instead of all of them.
pub(crate) struct Heap {
    len: usize,
    /// Which pages differ, in rising order.
    pages: Box<[u32]>,
    /// Those pages, one after the other.
    bytes: Box<[u8]>,
}

impl Heap {
    /// Keeps what differs between `memory` and `first`, which are whole Wasm pages, `first` being no longer.
    pub(crate) fn between(first: &[u8], memory: &[u8]) -> Self {
        debug_assert!(memory.len() >= first.len() && memory.len().is_multiple_of(WASM_PAGE_BYTES));
        let zeros = [0; PAGE_BYTES];
        let mut pages = Vec::new();
        let mut bytes = Vec::new();
        for (number, page) in (0..).zip(memory.chunks_exact(PAGE_BYTES)) {
            let start = number as usize * PAGE_BYTES;
            if page != first.get(start..start + PAGE_BYTES).unwrap_or(&zeros) {
                pages.push(number);
                bytes.extend_from_slice(page);
            }
        }
        Self { len: memory.len(), pages: pages.into(), bytes: bytes.into() }
    }

    /// The length of the whole memory.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The difference: where each page goes and what it holds.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let places = self.pages.iter().map(|number| *number as usize * PAGE_BYTES);
        places.zip(self.bytes.chunks_exact(PAGE_BYTES))
    }

    /// The bytes that are kept for it.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_gives_back_the_memory_it_was_made_from() {
        let mut first = vec![0; WASM_PAGE_BYTES];
        first[70] = 1;
        let mut memory = vec![0; 2 * WASM_PAGE_BYTES];
        memory[70] = 1;
        memory[5000] = 2;
        *memory.last_mut().unwrap() = 3;
        let heap = Heap::between(&first, &memory);
        assert_eq!(heap.pages.as_ref(), [1, 31]);
        let mut again = vec![0; heap.len()];
        for (start, bytes) in pieces(&first).chain(heap.pieces()) {
            again[start..start + bytes.len()].copy_from_slice(bytes);
        }
        assert_eq!(again, memory);
        assert_eq!(pieces(&first).map(|(start, _)| start).collect::<Vec<_>>(), [0]);
        assert_eq!(heap.kept_bytes(), 2 * PAGE_BYTES);
    }
}
