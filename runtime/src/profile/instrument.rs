//! Makes the guest report each step of a script: the same code with the same charges, and one call more.
//!
//! The interpreter of QuickJS has one place where it looks at the next step of the bytecode. Before that, the
//! instrumented guest calls a function of the host, with the fuel that is left, the stack pointer and the address of the
//! step. The call comes after the guest has been metered, so it costs no fuel, and a message uses exactly the fuel that
//! it uses in the guest as it is. The call goes through a further place in the guest's table, so that no index changes.

use std::ops::Range;

use wasm_encoder::{CodeSection, Encode as _, Instruction, RawSection};
use wasmparser::{BinaryReaderError, ExternalKind, FunctionBody, Operator, Parser, Payload};

use crate::error::Error;

/// The exported table; its last place is for the function of the host.
pub(crate) const TABLE: &str = "steps";

/// The interpreter knows more kinds of steps than this; no other code of the guest looks like this with that many.
const STEP_KINDS_MIN: u32 = 200;

/// The guest with a call before each step.
pub(crate) fn instrument(wasm: &[u8]) -> Result<Vec<u8>, Error> {
    let guest = Guest::read(wasm).map_err(|error| Error::Guest(error.to_string()))?;
    guest
        .and_then(|guest| guest.write(wasm))
        .ok_or_else(|| Error::Guest("its interpreter is not recognized".to_owned()))
}

/// The parts of the guest that instrumentation extends or replaces.
struct Guest {
    /// All sections: their id and content.
    sections: Vec<(u8, Range<usize>)>,
    types: u32,
    table_places: u64,
    fuel: u32,
    stack_pointer: u32,
    bodies: Vec<Range<usize>>,
    dispatch: Dispatch,
}

/// Place where the interpreter reads the next step: the function, and the local that has the address of the step.
struct Dispatch {
    body: usize,
    offset: usize,
    address: u32,
}

impl Guest {
    /// Reads the guest; `None` if it is not one that can be instrumented.
    fn read(wasm: &[u8]) -> Result<Option<Self>, BinaryReaderError> {
        let (mut sections, mut bodies, mut dispatches) = (Vec::new(), Vec::new(), Vec::new());
        let (mut types, mut table_places, mut globals) = (0, 0, [None; 2]);
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section() {
                sections.push((id, range));
            }
            match payload {
                Payload::TypeSection(section) => types = section.count(),
                Payload::TableSection(section) => {
                    for table in section {
                        table_places = table?.ty.initial;
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        let named = ["fuel", "stack_pointer"].iter().position(|name| *name == export.name);
                        if let (Some(index), ExternalKind::Global) = (named, export.kind) {
                            globals[index] = Some(export.index);
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    if let Some((offset, address)) = dispatch(&body)? {
                        dispatches.push(Dispatch { body: bodies.len(), offset, address });
                    }
                    bodies.push(body.range());
                }
                _ => {}
            }
        }
        let (Some(dispatch), [Some(fuel), Some(stack_pointer)]) = (dispatches.pop(), globals) else { return Ok(None) };
        let is_unique = dispatches.is_empty() && table_places > 0;
        Ok(is_unique.then_some(Self { sections, types, table_places, fuel, stack_pointer, bodies, dispatch }))
    }

    fn write(&self, wasm: &[u8]) -> Option<Vec<u8>> {
        let mut module = wasm_encoder::Module::new();
        for (id, range) in &self.sections {
            let content = &wasm[range.clone()];
            if *id == wasm_encoder::SectionId::Code as u8 {
                module.section(&self.code(wasm));
                continue;
            }
            let changed = match *id {
                // (i64, i32, i32) -> ()
                1 => one_more(content, &[0x60, 3, 0x7e, 0x7f, 0x7f, 0])?,
                4 => self.table(),
                7 => {
                    let mut export = Vec::new();
                    TABLE.encode(&mut export);
                    one_more(content, &[&export[..], &[1, 0]].concat())?
                }
                _ => content.to_vec(),
            };
            module.section(&RawSection { id: *id, data: &changed });
        }
        Some(module.finish())
    }

    fn table(&self) -> Vec<u8> {
        let places = self.table_places + 1;
        let mut table = vec![1, 0x70, 1];
        places.encode(&mut table);
        places.encode(&mut table);
        table
    }

    fn code(&self, wasm: &[u8]) -> CodeSection {
        let mut code = CodeSection::new();
        for (index, range) in self.bodies.iter().enumerate() {
            if index == self.dispatch.body {
                let (before, after) = wasm[range.clone()].split_at(self.dispatch.offset - range.start);
                code.raw(&[before, &self.call(), after].concat());
            } else {
                code.raw(&wasm[range.clone()]);
            }
        }
        code
    }

    fn call(&self) -> Vec<u8> {
        let mut call = Vec::new();
        for instruction in [
            Instruction::GlobalGet(self.fuel),
            Instruction::GlobalGet(self.stack_pointer),
            Instruction::LocalGet(self.dispatch.address),
            Instruction::I32Const(i32::try_from(self.table_places).unwrap_or(i32::MAX)),
            Instruction::CallIndirect { type_index: self.types, table_index: 0 },
        ] {
            instruction.encode(&mut call);
        }
        call
    }
}

/// Finds where a function reads a byte and branches to one of very many places by it.
fn dispatch(body: &FunctionBody<'_>) -> Result<Option<(usize, u32)>, BinaryReaderError> {
    let (mut read, mut since) = (None, 0);
    let mut last_local = None;
    for next in body.get_operators_reader()?.into_iter_with_offsets() {
        let (operator, offset) = next?;
        since += 1;
        match operator {
            Operator::LocalGet { local_index } => last_local = Some((offset, local_index)),
            Operator::I32Load8U { memarg } if memarg.offset == 0 => (read, since) = (last_local.take(), 0),
            // Between the two: the byte is kept, and the number of the first step is subtracted.
            Operator::BrTable { targets } if since <= 4 && targets.len() >= STEP_KINDS_MIN => return Ok(read),
            _ => last_local = None,
        }
    }
    Ok(None)
}

/// A section with one more entry at its end.
fn one_more(content: &[u8], entry: &[u8]) -> Option<Vec<u8>> {
    let mut reader = wasmparser::BinaryReader::new(content, 0);
    let count = reader.read_var_u32().ok()?;
    let mut section = Vec::new();
    (count + 1).encode(&mut section);
    section.extend_from_slice(content.get(reader.original_position()..)?);
    section.extend_from_slice(entry);
    Some(section)
}
