//! Writes the sections of a module.

use std::ops::Range;

use wasm_encoder::{ConstExpr, CustomSection, DataSection, MemorySection, MemoryType};

use super::{FORMAT, METADATA, Metadata, PAGE_BYTES};
use crate::contract::wire::Writer;
use crate::load::guest::{Guest, WASM_PAGE_BYTES};

/// A segment has about this much overhead, so runs that are closer together are joined.
const GAP_BYTES: usize = 8;
/// With more runs than this a page becomes one segment: Wasm parsers accept at most 100 000 segments.
const RUNS_MAX: usize = 64;

/// The whole module except its seal.
pub(super) fn body(guest: &Guest, memory: &[u8], metadata: &Metadata) -> Vec<u8> {
    let mut memories = MemorySection::new();
    let pages = (memory.len() / WASM_PAGE_BYTES) as u64;
    memories.memory(MemoryType { minimum: pages, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let metadata = encode(metadata);
    let metadata = CustomSection { name: METADATA.into(), data: metadata.as_bytes().into() };
    let mut module = wasm_encoder::Module::new();
    module.section(&memories).section(&data(guest, memory)).section(&metadata);
    module.finish()
}

fn encode(metadata: &Metadata) -> Writer {
    let mut writer = Writer::default();
    writer.byte(FORMAT);
    for byte in metadata.guest.iter().chain(metadata.hash.as_bytes()) {
        writer.byte(*byte);
    }
    for dialect in metadata.dialects {
        writer.byte(dialect.map_or(0, |dialect| dialect as u8));
    }
    writer.long(metadata.fuel);
    writer
}

fn data(guest: &Guest, memory: &[u8]) -> DataSection {
    const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
    let mut segments = DataSection::new();
    // The pages below are the stack; nothing reads what earlier calls left there.
    let stack_pages = usize::try_from(guest.stack_pointer).unwrap_or(0) / PAGE_BYTES;
    for (number, page) in memory.chunks_exact(PAGE_BYTES).enumerate().skip(stack_pages) {
        let start = number * PAGE_BYTES;
        let before = guest.memory.get(start..start + PAGE_BYTES).unwrap_or(&ZEROS);
        if page == before {
            continue;
        }
        for run in runs(before, page) {
            let offset = ConstExpr::i32_const((start + run.start) as i32);
            segments.active(0, &offset, page[run].iter().copied());
        }
    }
    segments
}

/// The runs of bytes that differ between two pages.
fn runs(before: &[u8], page: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, _) in before.iter().zip(page).enumerate().filter(|(_, (before, now))| before != now) {
        match runs.last_mut() {
            Some(run) if index - run.end <= GAP_BYTES => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    if let (Some(first), Some(last)) = (runs.first(), runs.last())
        && runs.len() > RUNS_MAX
    {
        let whole = first.start..last.end;
        runs.clear();
        runs.push(whole);
    }
    runs
}
