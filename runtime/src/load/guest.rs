//! Parses the built-in guest module into code and initial memory, and proves that it has no other state.
//!
//! The data becomes an image that is mapped rather than copied, so the module is compiled without it. Resetting an
//! instance by its memory and two globals is sound only because [`Guest::parse`] refuses a module with any other state
//! that could change: further mutable globals, passive segments, imports, a start function. (The engine's configuration
//! refuses bulk memory and reference types, the only instructions that could write a table.)

use std::ops::Range;

use sha2::{Digest, Sha256};
use wasmparser::{
    BinaryReaderError, ConstExpr, Data, DataKind, Export, ExternalKind, Global, MemoryType, Operator, Parser, Payload,
};

use crate::error::Error;

/// The size of a Wasm page, the unit in which linear memory grows.
pub(crate) const WASM_PAGE_BYTES: usize = 65_536;

/// The guest as the engine needs it.
pub(crate) struct Guest {
    /// The SHA-256 of the whole module.
    pub(crate) digest: [u8; 32],
    /// The module without its data.
    pub(crate) code: Vec<u8>,
    /// The initial linear memory; whole Wasm pages.
    pub(crate) memory: Box<[u8]>,
    /// The address of the byte that holds the running slot.
    pub(crate) running_slot: usize,
    /// Where the shadow stack starts; it grows downwards, to address 0.
    pub(crate) stack_pointer: i32,
}

impl Guest {
    /// Parses a guest; the error says why it is unsuitable.
    pub(crate) fn parse(wasm: &[u8]) -> Result<Self, Error> {
        let sections = Sections::read(wasm).map_err(|error| Error::Guest(error.to_string()))?.map_err(refuse)?;
        let running_slot = sections.exported("running_slot", false)?;
        let stack_pointer = sections.exported("stack_pointer", true)?;
        sections.exported("fuel", true)?;
        if sections.globals.iter().filter(|global| global.mutable).count() != 2 {
            return Err(refuse("it has mutable globals besides `fuel` and `stack_pointer`"));
        }
        let memory = sections.memory()?;
        let running_slot = usize::try_from(running_slot).ok().filter(|address| *address < memory.len());
        Ok(Self {
            digest: Sha256::digest(wasm).into(),
            code: without(wasm, &sections.data_ranges),
            memory,
            running_slot: running_slot.ok_or_else(|| refuse("`running_slot` points outside of its memory"))?,
            stack_pointer: i32::try_from(stack_pointer)
                .map_err(|_| refuse("its stack starts outside of its memory"))?,
        })
    }
}

fn refuse(reason: impl Into<String>) -> Error {
    Error::Guest(reason.into())
}

/// A global with its initial value, if that is a constant.
struct GuestGlobal {
    mutable: bool,
    start: Option<i64>,
}

/// The relevant parts of each section.
#[derive(Default)]
struct Sections<'a> {
    globals: Vec<GuestGlobal>,
    exported_globals: Vec<(&'a str, u32)>,
    memories: Vec<MemoryType>,
    data: Vec<(i64, &'a [u8])>,
    /// The file ranges of the data section and its count, including section headers.
    data_ranges: Vec<Range<usize>>,
}

impl<'a> Sections<'a> {
    /// The outer error is for an invalid module, the inner one for an unsuitable one.
    fn read(wasm: &'a [u8]) -> Result<Result<Self, &'static str>, BinaryReaderError> {
        let mut sections = Self::default();
        let mut end = 0;
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            let start = end;
            if let Some((_, range)) = payload.as_section() {
                end = range.end;
            }
            match payload {
                Payload::Version { range, .. } => end = range.end,
                Payload::ImportSection(imports) if imports.count() > 0 => return Ok(Err("it imports something")),
                Payload::StartSection { .. } => return Ok(Err("it has a start function")),
                Payload::MemorySection(memories) => {
                    sections.memories = memories.into_iter().collect::<Result<_, _>>()?;
                }

                Payload::GlobalSection(globals) => {
                    sections.globals =
                        globals.into_iter().map(|global| parse_global(&global?)).collect::<Result<_, _>>()?;
                }
                Payload::ExportSection(exports) => {
                    let exports = exports.into_iter().collect::<Result<Vec<Export<'_>>, _>>()?;
                    let globals = exports.into_iter().filter(|export| export.kind == ExternalKind::Global);
                    sections.exported_globals = globals.map(|export| (export.name, export.index)).collect();
                }
                Payload::DataCountSection { .. } => sections.data_ranges.push(start..end),
                Payload::DataSection(data) => {
                    sections.data_ranges.push(start..end);
                    for data in data {
                        let Some(segment) = active_segment(&data?)? else {
                            return Ok(Err("it has a passive data segment"));
                        };
                        sections.data.push(segment);
                    }
                }
                _ => {}
            }
        }
        Ok(Ok(sections))
    }

    /// The initial value of an exported global.
    fn exported(&self, name: &str, mutable: bool) -> Result<i64, Error> {
        let index = self.exported_globals.iter().find(|(exported, _)| *exported == name).map(|(_, index)| *index);
        let global =
            index.and_then(|index| self.globals.get(index as usize)).filter(|global| global.mutable == mutable);
        global.and_then(|global| global.start).ok_or_else(|| refuse(format!("it does not export the global `{name}`")))
    }

    fn memory(&self) -> Result<Box<[u8]>, Error> {
        let [memory] = self.memories.as_slice() else { return Err(refuse("it has not exactly one memory")) };
        let pages = usize::try_from(memory.initial).ok().filter(|pages| *pages <= 1024);
        let pages = pages.ok_or_else(|| refuse("its memory starts larger than 64 MiB"))?;
        let mut bytes = vec![0; pages * WASM_PAGE_BYTES].into_boxed_slice();
        for (offset, data) in &self.data {
            let range = usize::try_from(*offset).ok().and_then(|start| bytes.get_mut(start..start + data.len()));
            range.ok_or_else(|| refuse("it has data outside of its memory"))?.copy_from_slice(data);
        }
        Ok(bytes)
    }
}

fn parse_global(global: &Global<'_>) -> Result<GuestGlobal, BinaryReaderError> {
    Ok(GuestGlobal { mutable: global.ty.mutable, start: number(&global.init_expr)? })
}

/// The offset and bytes of an active segment; `None` for a passive one.
fn active_segment<'a>(data: &Data<'a>) -> Result<Option<(i64, &'a [u8])>, BinaryReaderError> {
    let DataKind::Active { memory_index: 0, offset_expr } = &data.kind else { return Ok(None) };
    Ok(number(offset_expr)?.map(|offset| (offset, data.data)))
}

fn number(expression: &ConstExpr<'_>) -> Result<Option<i64>, BinaryReaderError> {
    Ok(match expression.get_operators_reader().read()? {
        Operator::I32Const { value } => Some(i64::from(value)),
        Operator::I64Const { value } => Some(value),
        _ => None,
    })
}

/// `bytes` without `ranges`, which must be in ascending order.
fn without(bytes: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(bytes.len());
    let mut next = 0;
    for range in ranges {
        rest.extend_from_slice(&bytes[next..range.start]);
        next = range.end;
    }
    rest.extend_from_slice(&bytes[next..]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: (u8, &[u8]) = (5, &[1, 0, 1]);
    /// An immutable global 3, a mutable global 64 and a mutable global 0 of 64 bits.
    const GLOBALS: (u8, &[u8]) =
        (6, &[3, 0x7f, 0, 0x41, 3, 0x0b, 0x7f, 1, 0x41, 0xc0, 0, 0x0b, 0x7e, 1, 0x42, 0, 0x0b]);
    const EXPORTS: (u8, &[u8]) = (7, b"\x03\x0crunning_slot\x03\x00\x0dstack_pointer\x03\x01\x04fuel\x03\x02");
    /// "hello" at address 5.
    const DATA: (u8, &[u8]) = (11, b"\x01\x00\x41\x05\x0b\x05hello");

    fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        for (id, content) in sections {
            module.extend([*id, content.len() as u8]);
            module.extend_from_slice(content);
        }
        module
    }

    fn check_refused(sections: &[(u8, &[u8])], reason: &str) {
        let error = Guest::parse(&module(sections)).err().expect("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn a_guest_is_split_into_code_and_memory() {
        let guest = Guest::parse(&module(&[MEMORY, GLOBALS, EXPORTS, (12, &[1]), DATA])).unwrap();
        assert_eq!(guest.code, module(&[MEMORY, GLOBALS, EXPORTS]));
        assert_eq!(guest.memory.len(), WASM_PAGE_BYTES);
        assert_eq!(&guest.memory[..12], b"\0\0\0\0\0hello\0\0");
        assert_eq!((guest.running_slot, guest.stack_pointer), (3, 64));
    }

    #[test]
    fn refuses_a_guest_with_other_state() {
        let hidden = [&[4], &GLOBALS.1[1..], &[0x7f, 1, 0x41, 0, 0x0b]].concat();
        check_refused(&[MEMORY, (6, &hidden), EXPORTS, DATA], "mutable globals besides");
        check_refused(&[MEMORY, GLOBALS, EXPORTS, (11, b"\x01\x01\x05hello")], "passive");
        check_refused(&[(2, b"\x01\x01a\x01b\x00\x00"), MEMORY, GLOBALS, EXPORTS], "imports");
        check_refused(&[MEMORY, GLOBALS, EXPORTS, (8, &[0])], "start function");
        check_refused(&[(5, &[2, 0, 1, 0, 1]), GLOBALS, EXPORTS], "exactly one memory");
    }

    #[test]
    fn refuses_a_guest_that_does_not_fit_its_memory() {
        check_refused(&[MEMORY, GLOBALS, (7, b"\x01\x0crunning_slot\x03\x00"), DATA], "stack_pointer");
        check_refused(
            &[MEMORY, GLOBALS, EXPORTS, (11, b"\x01\x00\x41\xfd\xff\x03\x0b\x05hello")],
            "outside of its memory",
        );
        check_refused(&[(5, &[1, 0, 0x81, 0x08]), GLOBALS, EXPORTS], "64 MiB");
        assert!(Guest::parse(b"\0asm").is_err());
    }
}
