//! The steps of loaded functions: where each is in the memory of the guest, and in its source.

use std::ops::Range;

use crate::contract::wire::{Reader, Slot};

/// A function of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFunction {
    /// The source that it is in. A source that fills several slots counts as the first.
    pub slot: Slot,
    /// Its name; may be empty.
    pub name: String,
    /// Line of its first step, from 1.
    pub line: u32,
    /// Its steps among all.
    pub steps: Range<usize>,
    /// The address of its code.
    address: u32,
    /// The length of its code.
    length: u32,
}

/// One instruction of the bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line in the source, from 1.
    pub line: u32,
    /// The column in that line, from 1, in UTF-16 units.
    pub column: u32,
    /// True if it decides between two ways to go on.
    pub is_branch: bool,
    /// Continuation, if it is not the next step.
    pub(crate) exit: Exit,
    offset: u32,
}

/// Continuation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// In the function, for as far as is known here.
    Inside,
    /// At the first step of the function: the end of a loop. Otherwise that step is the beginning of a call.
    First,
    /// In the caller of the function.
    Caller,
}

impl Exit {
    /// Reads the bytecode of a step at `offset`. The numbers are those of the guest's QuickJS: they cannot be asked for,
    /// and tests of profiles notice others.
    fn read(code: &[u8], offset: u32) -> Self {
        let distance = match *code {
            // return, return_undef, return_async
            [40 | 41 | 47, ..] => return Self::Caller,
            // if_false, if_true, goto
            [104..=106, a, b, c, d, ..] => i32::from_le_bytes([a, b, c, d]),
            // if_false8, if_true8, goto8
            [240..=242, a, ..] => i32::from(a.cast_signed()),
            // goto16
            [243, a, b, ..] => i32::from(i16::from_le_bytes([a, b])),
            _ => return Self::Inside,
        };
        // Counted from behind the number of the instruction.
        match i64::from(offset) + 1 + i64::from(distance) {
            0 => Self::First,
            _ => Self::Inside,
        }
    }
}

/// All steps of loaded functions, in the order of the functions.
#[derive(Debug, Default)]
pub struct Steps {
    /// Ordered by address.
    functions: Vec<ScriptFunction>,
    steps: Vec<Step>,
}

impl Steps {
    /// Parses the guest's list, with the memory that it is about; `None` if it is malformed.
    pub(crate) fn read(list: &[u8], memory: &[u8]) -> Option<Self> {
        const STEP_BYTES_MAX: u32 = 16;
        let mut reader = Reader::new(list);
        let mut all = Self::default();
        loop {
            match reader.byte()? {
                0 => break,
                1 => {
                    let (slot, address) = (Slot::from_byte(reader.byte()?)?, reader.number()?);
                    let name = String::from_utf8_lossy(reader.text()?).into_owned();
                    let steps = all.steps.len()..all.steps.len();
                    all.functions.push(ScriptFunction { slot, name, line: 0, steps, address, length: 0 });
                }
                kind @ 2..=3 => {
                    let (offset, line, column) = (reader.number()?, reader.number()?, reader.number()?);
                    let function = all.functions.last_mut()?;
                    if function.steps.is_empty() {
                        function.line = line;
                    }
                    let code = memory.get(function.address.checked_add(offset)? as usize..);
                    let exit = Exit::read(code.unwrap_or_default(), offset);
                    all.steps.push(Step { line, column, is_branch: kind == 3, exit, offset });
                    function.steps.end = all.steps.len();
                    function.length = offset.checked_add(STEP_BYTES_MAX)?;
                }
                _ => return None,
            }
        }
        all.functions.sort_by_key(|function| function.address);
        reader.is_empty().then_some(all)
    }

    /// All functions.
    pub fn functions(&self) -> &[ScriptFunction] {
        &self.functions
    }

    /// All steps, as counted by [`ScriptFunction::steps`].
    pub fn all(&self) -> &[Step] {
        &self.steps
    }

    /// The function and the step at an address of the guest's memory.
    pub(crate) fn find(&self, address: u32) -> Option<(usize, usize)> {
        let index = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        self.find_in(index, address).map(|step| (index, step))
    }

    /// The step at an address, if it is in this function.
    pub(crate) fn find_in(&self, function: usize, address: u32) -> Option<usize> {
        let function = self.functions.get(function)?;
        let offset = address.checked_sub(function.address).filter(|offset| *offset < function.length)?;
        let steps = self.steps.get(function.steps.clone())?;
        steps.binary_search_by_key(&offset, |step| step.offset).ok().map(|index| function.steps.start + index)
    }
}
