//! Writes the sections of a module.

use std::ops::Range;

use super::{ABOUT, About, FORMAT, PAGE_BYTES};
use crate::contract::wire::Writer;
use crate::load::guest::{Guest, WASM_PAGE_BYTES};

/// A segment costs about as many bytes as this, so runs that are nearer to each other become one.
const GAP_BYTES: usize = 8;
/// Runs of one page beyond which the whole page becomes one: readers of Wasm take 100 000 segments at most.
const RUNS_MAX: usize = 64;

/// All of a module but its seal.
pub(super) fn body(guest: &Guest, memory: &[u8], about: &About) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    let mut size = vec![1, 0];
    unsigned(&mut size, memory.len() / WASM_PAGE_BYTES);
    section(&mut module, 5, &size);
    section(&mut module, 11, &data(guest, memory));
    let mut name_and_content = Vec::new();
    unsigned(&mut name_and_content, ABOUT.len());
    name_and_content.extend_from_slice(ABOUT.as_bytes());
    name_and_content.extend_from_slice(describe(about).as_bytes());
    section(&mut module, 0, &name_and_content);
    module
}

fn describe(about: &About) -> Writer {
    let mut writer = Writer::default();
    writer.byte(FORMAT);
    for byte in about.guest.iter().chain(about.hash.as_bytes()) {
        writer.byte(*byte);
    }
    for dialect in about.dialects {
        writer.byte(dialect.map_or(0, |dialect| dialect as u8));
    }
    writer.long(about.fuel);
    writer
}

/// The content of the data section.
fn data(guest: &Guest, memory: &[u8]) -> Vec<u8> {
    const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
    let (mut count, mut segments) = (0, Vec::new());
    // Below lies the stack: what calls left there, none of the next will read.
    let stack_pages = usize::try_from(guest.stack_pointer).unwrap_or(0) / PAGE_BYTES;
    for (number, page) in memory.chunks_exact(PAGE_BYTES).enumerate().skip(stack_pages) {
        let start = number * PAGE_BYTES;
        let before = guest.memory.get(start..start + PAGE_BYTES).unwrap_or(&ZEROS);
        if page == before {
            continue;
        }
        for run in runs(before, page) {
            segment(&mut segments, start + run.start, &page[run]);
            count += 1;
        }
    }
    let mut data = Vec::with_capacity(segments.len() + 5);
    unsigned(&mut data, count);
    data.append(&mut segments);
    data
}

/// Where two pages differ.
fn runs(before: &[u8], page: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, _) in before.iter().zip(page).enumerate().filter(|(_, (before, now))| before != now) {
        match runs.last_mut() {
            Some(run) if place - run.end <= GAP_BYTES => run.end = place + 1,
            _ => runs.push(place..place + 1),
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

/// An active segment of memory 0, at an address below 2 GiB.
fn segment(segments: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    segments.extend([0, 0x41]);
    // A signed number: one more bit, so that it is not taken for a negative one.
    let mut rest = offset;
    while rest >= 0x40 {
        segments.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    segments.extend([rest as u8, 0x0b]);
    unsigned(segments, bytes.len());
    segments.extend_from_slice(bytes);
}

fn section(module: &mut Vec<u8>, id: u8, content: &[u8]) {
    module.push(id);
    unsigned(module, content.len());
    module.extend_from_slice(content);
}

/// A number in LEB128.
fn unsigned(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
