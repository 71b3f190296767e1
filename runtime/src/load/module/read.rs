//! Reads the sections of a module and refuses anything that [`super::write`] would not write.

use wasmparser::{DataKind, MemoryType, Parser, Payload};

use super::{FORMAT, METADATA, Metadata, PAGE_BYTES, PageIndex};
use crate::contract::sources::SourcesHash;
use crate::contract::wire::{Dialect, Reader};
use crate::error::ModuleError;
use crate::load::guest::WASM_PAGE_BYTES;

/// Maximum size of the memory, in Wasm pages; keeps addresses below 2 GiB.
const WASM_PAGES_MAX: u64 = (2 << 30) / WASM_PAGE_BYTES as u64;

/// The parsed sections.
pub(super) struct Parts {
    pub(super) metadata: Metadata,
    pub(super) memory_bytes: usize,
    pub(super) pages: Box<[PageIndex]>,
    pub(super) data_end: usize,
}

/// A data segment, and the bytes after it.
pub(super) struct Segment<'a> {
    pub(super) offset: u32,
    pub(super) bytes: &'a [u8],
    pub(super) rest: &'a [u8],
}

pub(super) fn body(body: &[u8]) -> Result<Parts, ModuleError> {
    let mut memory_bytes = None;
    let mut index = None;
    let mut metadata = None;
    for payload in Parser::new(0).parse_all(body) {
        match payload.map_err(|_| ModuleError::Damaged("it is no Wasm module"))? {
            Payload::Version { .. } | Payload::End(_) => {}
            Payload::MemorySection(memories) if memory_bytes.is_none() => {
                let memories: Result<Vec<MemoryType>, _> = memories.into_iter().collect();
                memory_bytes = Some(length(&memories.unwrap_or_default())?);
            }
            Payload::DataSection(data) if index.is_none() => {
                let memory_bytes = memory_bytes.ok_or(ModuleError::Damaged("it has data before its memory"))?;
                index = Some(index_pages(data, body, memory_bytes)?);
            }
            Payload::CustomSection(section) if section.name() == METADATA && metadata.is_none() => {
                metadata = Some(decode(section.data()).ok_or(ModuleError::Damaged("its metadata is malformed"))?);
            }
            _ => return Err(ModuleError::Damaged("it has sections that it must not have")),
        }
    }
    let (Some(memory_bytes), Some((pages, data_end)), Some(metadata)) = (memory_bytes, index, metadata) else {
        return Err(ModuleError::Damaged("a section is missing"));
    };
    Ok(Parts { metadata, memory_bytes, pages, data_end })
}

/// The length of the one memory, in bytes.
fn length(memories: &[MemoryType]) -> Result<usize, ModuleError> {
    let plain = |memory: &&MemoryType| !memory.memory64 && !memory.shared && memory.maximum.is_none();
    let [memory] = memories else { return Err(ModuleError::Damaged("it has not exactly one memory")) };
    let pages = Some(memory).filter(plain).map(|memory| memory.initial).filter(|pages| *pages <= WASM_PAGES_MAX);
    let pages = pages.and_then(|pages| usize::try_from(pages).ok());
    Ok(pages.ok_or(ModuleError::Damaged("its memory is of another kind or size"))? * WASM_PAGE_BYTES)
}

/// Returns the start of the segments of each page, and the end of the last one.
fn index_pages(
    data: wasmparser::DataSectionReader<'_>,
    body: &[u8],
    memory_bytes: usize,
) -> Result<(Box<[PageIndex]>, usize), ModuleError> {
    const DAMAGED: ModuleError = ModuleError::Damaged("its data is out of order or out of bounds");
    let mut pages: Vec<PageIndex> = Vec::new();
    let (mut free_from, mut data_end) = (0, 0);
    for data in data {
        let data = data.map_err(|_| DAMAGED)?;
        let offset = data.range.start;
        // Also parsed by the function that applies it later, so that the two agree.
        let segment = body.get(offset..data.range.end).and_then(segment).ok_or(DAMAGED)?;
        if segment.bytes.is_empty() {
            return Err(DAMAGED);
        }
        let (start, end) = (segment.offset as usize, segment.offset as usize + segment.bytes.len());
        let is_active = matches!(data.kind, DataKind::Active { memory_index: 0, .. });
        let is_same = segment.rest.is_empty() && segment.bytes == data.data;
        let is_in_order = start >= free_from && end <= memory_bytes && start / PAGE_BYTES == (end - 1) / PAGE_BYTES;
        if !(is_active && is_same && is_in_order) {
            return Err(DAMAGED);
        }
        (free_from, data_end) = (end, data.range.end);
        let page = (start / PAGE_BYTES) as u32;
        if pages.last().is_none_or(|last| last.page != page) {
            pages.push(PageIndex { page, offset: u32::try_from(offset).map_err(|_| DAMAGED)? });
        }
    }
    Ok((pages.into(), data_end))
}

fn decode(bytes: &[u8]) -> Option<Metadata> {
    let (version, rest) = bytes.split_first()?;
    let (guest, rest) = rest.split_first_chunk()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let mut reader = Reader::new(rest);
    let mut dialects = [None; 4];
    for dialect in &mut dialects {
        *dialect = match reader.byte()? {
            0 => None,
            byte => Some(Dialect::from_byte(byte)?),
        };
    }
    let metadata = Metadata { guest: *guest, hash: SourcesHash::from_bytes(*hash), dialects, fuel: reader.long()? };
    (*version == FORMAT && reader.is_empty()).then_some(metadata)
}

/// Parses the first of `segments`; `None` if there is none, or it has another encoding than `write` uses.
pub(super) fn segment(segments: &[u8]) -> Option<Segment<'_>> {
    let (offset, rest) = number(segments.strip_prefix(&[0, 0x41])?)?;
    let (length, rest) = number(rest.strip_prefix(&[0x0b])?)?;
    let (bytes, rest) = rest.split_at_checked(length as usize)?;
    Some(Segment { offset, bytes, rest })
}

/// Parses a LEB128 number of at most five bytes.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}
