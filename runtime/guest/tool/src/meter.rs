//! Inserts the charges: a counter goes down at every loop header and at the entry of enough functions.
//!
//! Every cycle of control flow passes a loop header, and every cycle of calls an entry that is charged: those of all
//! functions in the table, so that indirect calls are, and of the rest as many as it takes.

use crate::call_graph::{self, Calls};
use crate::charge::Charges;
use crate::stub;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::{
    BinaryOp, Binop, Const, GlobalGet, GlobalSet, IfElse, Instr, InstrSeqId, InstrSeqType, LocalGet, LocalTee,
};
use walrus::ir::{Unreachable, Value};
use walrus::{ExportItem, FunctionId, FunctionKind, GlobalId, LocalFunction, LocalId, Module, ValType};

/// The exported counter.
pub(crate) const FUEL: &str = "fuel";
/// The other exported global that can change.
pub(crate) const STACK_POINTER: &str = "stack_pointer";

/// The module with charges inserted.
pub(crate) fn run(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = stub::parse(wasm)?;
    let fuel = fuel_global(&module)?;
    let calls = Calls::of(&module);
    let charged = calls.break_cycles(call_graph::in_tables(&module));
    for (function, charges) in charges(&module, &calls, &charged)? {
        let left = module.locals.add(ValType::I64);
        let is_charged = charged.contains(&function);
        if let FunctionKind::Local(local) = &mut module.funcs.get_mut(function).kind {
            insert(local, &charges, is_charged, fuel, left);
        }
    }
    Ok(module.emit_wasm())
}

/// The global exported as the counter.
pub(crate) fn fuel_global(module: &Module) -> Result<GlobalId> {
    let export = module.exports.iter().find(|export| export.name == FUEL);
    match export.map(|export| export.item) {
        Some(ExportItem::Global(fuel)) => Ok(fuel),
        _ => bail!("the module exports no global `{FUEL}`"),
    }
}

/// The charges of all functions. The cost of one whose entry is not charged is charged to its callers.
fn charges(module: &Module, calls: &Calls, charged: &BTreeSet<FunctionId>) -> Result<Vec<(FunctionId, Charges)>> {
    let Ok(order) = calls.order(charged) else { bail!("a cycle of calls would not be charged") };
    let mut costs = BTreeMap::new();
    let mut all = Vec::new();
    for id in order.into_iter().chain(charged.iter().copied()) {
        let FunctionKind::Local(function) = &module.funcs.get(id).kind else { continue };
        let charges = Charges::of(function, &costs);
        if !charged.contains(&id) {
            costs.insert(id, charges.entry);
        }
        all.push((id, charges));
    }
    Ok(all)
}

fn insert(function: &mut LocalFunction, charges: &Charges, is_charged: bool, fuel: GlobalId, left: LocalId) {
    for (header, units) in &charges.loops {
        prepend(function, *header, *units, fuel, left);
    }
    if is_charged {
        prepend(function, function.entry_block(), charges.entry, fuel, left);
    }
}

/// Puts `fuel -= units; if fuel < 0 { unreachable }` before what `label` holds.
fn prepend(function: &mut LocalFunction, label: InstrSeqId, units: u64, fuel: GlobalId, left: LocalId) {
    let builder = function.builder_mut();
    let mut arm = |instructions: &[Instr]| {
        let mut arm = builder.dangling_instr_seq(InstrSeqType::Simple(None));
        instructions.iter().for_each(|instruction| _ = arm.instr(instruction.clone()));
        arm.id()
    };
    let consequent = arm(&[Instr::Unreachable(Unreachable {})]);
    let alternative = arm(&[]);
    let charge = [
        Instr::GlobalGet(GlobalGet { global: fuel }),
        Instr::Const(Const { value: Value::I64(units as i64) }),
        Instr::Binop(Binop { op: BinaryOp::I64Sub }),
        Instr::LocalTee(LocalTee { local: left }),
        Instr::GlobalSet(GlobalSet { global: fuel }),
        Instr::LocalGet(LocalGet { local: left }),
        Instr::Const(Const { value: Value::I64(0) }),
        Instr::Binop(Binop { op: BinaryOp::I64LtS }),
        Instr::IfElse(IfElse { consequent, alternative }),
    ];
    let instructions = &mut function.block_mut(label).instrs;
    instructions.splice(0..0, charge.map(|instruction| (instruction, Default::default())));
}
