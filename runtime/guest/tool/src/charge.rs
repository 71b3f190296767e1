//! What a stretch of code costs: about as many units as instructions run from one payment to the next.

use std::collections::BTreeMap;
use walrus::ir::{Instr, InstrSeqId};
use walrus::{FunctionId, LocalFunction};

/// Charges of one function: its entry, and each loop header.
pub(crate) struct Charges {
    pub(crate) entry: i64,
    pub(crate) loops: Vec<(InstrSeqId, i64)>,
}

impl Charges {
    /// Works out the charges of `function`, given what calls of functions that do not pay themselves cost.
    pub(crate) fn of(function: &LocalFunction, calls: &BTreeMap<FunctionId, i64>) -> Self {
        let mut walk = Walk { function, calls, after: BTreeMap::new(), loops: Vec::new() };
        let entry = walk.sequence(function.entry_block(), 0.0);
        Self { entry: units(entry), loops: walk.loops }
    }
}

fn units(cost: f64) -> i64 {
    cost.ceil().max(1.0) as i64
}

struct Walk<'a> {
    function: &'a LocalFunction,
    calls: &'a BTreeMap<FunctionId, i64>,
    /// What is still to come at the target of a branch to this label.
    after: BTreeMap<InstrSeqId, f64>,
    loops: Vec<(InstrSeqId, i64)>,
}

impl Walk<'_> {
    /// The cost from the start of `label` on, when `rest` comes after its end and both ways of a branch are taken
    /// equally often. A loop pays for its body itself, each time round.
    fn sequence(&mut self, label: InstrSeqId, rest: f64) -> f64 {
        let mut cost = rest;
        for (instruction, _) in self.function.block(label).instrs.iter().rev() {
            cost = self.instruction(instruction, cost);
        }
        cost
    }

    fn instruction(&mut self, instruction: &Instr, rest: f64) -> f64 {
        match instruction {
            Instr::Block(block) => {
                self.after.insert(block.seq, rest);
                self.sequence(block.seq, rest)
            }
            Instr::Loop(body) => {
                let outer = std::mem::take(&mut self.after);
                let cost = self.sequence(body.seq, 0.0);
                self.after = outer;
                self.loops.push((body.seq, units(cost)));
                rest
            }
            Instr::IfElse(branch) => {
                self.after.insert(branch.consequent, rest);
                self.after.insert(branch.alternative, rest);
                let consequent = self.sequence(branch.consequent, rest);
                let alternative = self.sequence(branch.alternative, rest);
                1.0 + (consequent + alternative) / 2.0
            }
            Instr::Br(branch) => 1.0 + self.target(branch.block),
            Instr::BrIf(branch) => 1.0 + (self.target(branch.block) + rest) / 2.0,
            Instr::BrTable(table) => {
                let targets = table.blocks.iter().chain([&table.default]).map(|label| self.target(*label));
                1.0 + targets.sum::<f64>() / (table.blocks.len() + 1) as f64
            }
            Instr::Return(_) | Instr::Unreachable(_) => 1.0,
            Instr::Call(call) => 1.0 + rest + self.calls.get(&call.func).copied().unwrap_or(0) as f64,
            _ => 1.0 + rest,
        }
    }

    /// Branches back to a loop, or out of the one being looked at, cost nothing more here.
    fn target(&self, label: InstrSeqId) -> f64 {
        self.after.get(&label).copied().unwrap_or(0.0)
    }
}
