//! The cost of code, in fuel: the number of instructions on the shortest path through it.
//!
//! So the fuel used never exceeds the number of instructions executed. On scripts of very different kinds it stays within
//! a small factor of time. Charging the mean of all paths was far worse: an interpreter's loop chooses among a few hundred
//! paths, and the usual ones are short.

use std::collections::BTreeMap;
use walrus::ir::{Instr, InstrSeqId};
use walrus::{FunctionId, LocalFunction};

/// The cost of a path that traps, or leaves the loop that it should repeat.
const NEVER: u64 = u64::MAX;

/// Charges of one function: its entry, and each loop header.
pub(crate) struct Charges {
    pub(crate) entry: u64,
    pub(crate) loops: BTreeMap<InstrSeqId, u64>,
}

impl Charges {
    /// Works out the charges of `function`, given what calls of functions without a charge of their own cost.
    pub(crate) fn of(function: &LocalFunction, calls: &BTreeMap<FunctionId, u64>) -> Self {
        let mut walk = Walk { function, calls, after: BTreeMap::new(), loops: BTreeMap::new() };
        // A branch to the outermost label returns.
        walk.after.insert(function.entry_block(), 0);
        let entry = walk.sequence(function.entry_block(), 0);
        Self { entry: units(entry), loops: walk.loops }
    }
}

/// A charge is at least one unit; otherwise a cycle could be free.
fn units(cost: u64) -> u64 {
    if cost == NEVER { 1 } else { cost.max(1) }
}

struct Walk<'a> {
    function: &'a LocalFunction,
    calls: &'a BTreeMap<FunctionId, u64>,
    /// The cost of what follows a branch to this label.
    after: BTreeMap<InstrSeqId, u64>,
    loops: BTreeMap<InstrSeqId, u64>,
}

impl Walk<'_> {
    /// The cost from the start of `label` on, when `rest` comes after its end.
    fn sequence(&mut self, label: InstrSeqId, rest: u64) -> u64 {
        let instructions = &self.function.block(label).instrs;
        instructions.iter().rev().fold(rest, |rest, (instruction, _)| self.instruction(instruction, rest))
    }

    fn instruction(&mut self, instruction: &Instr, rest: u64) -> u64 {
        let others = match instruction {
            Instr::Block(block) => {
                self.after.insert(block.seq, rest);
                return self.sequence(block.seq, rest);
            }
            Instr::Loop(body) => return self.repeat(body.seq, rest),
            Instr::IfElse(branch) => {
                self.after.insert(branch.consequent, rest);
                self.after.insert(branch.alternative, rest);
                self.sequence(branch.consequent, rest).min(self.sequence(branch.alternative, rest))
            }
            Instr::Br(branch) => self.target(branch.block),
            Instr::BrIf(branch) => self.target(branch.block).min(rest),
            Instr::BrTable(table) => {
                let targets = table.blocks.iter().chain([&table.default]);
                targets.map(|label| self.target(*label)).min().unwrap_or(NEVER)
            }
            Instr::Return(_) => 0,
            Instr::Unreachable(_) => return NEVER,
            Instr::Call(call) => rest.saturating_add(self.calls.get(&call.func).copied().unwrap_or(0)),
            _ => rest,
        };
        others.saturating_add(1)
    }

    /// A loop header is charged for each iteration; code before the loop only for the path out of it.
    fn repeat(&mut self, body: InstrSeqId, rest: u64) -> u64 {
        let outside = std::mem::take(&mut self.after);
        self.after.insert(body, 0);
        let round = self.sequence(body, NEVER);
        self.after = outside;
        self.loops.insert(body, units(round));
        self.after.insert(body, NEVER);
        self.sequence(body, rest)
    }

    fn target(&self, label: InstrSeqId) -> u64 {
        self.after.get(&label).copied().unwrap_or(NEVER)
    }
}
