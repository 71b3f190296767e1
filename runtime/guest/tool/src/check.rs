//! Verifies what the host assumes about a finished guest.

use crate::call_graph::{self, Calls};
use crate::meter::{FUEL, STACK_POINTER, fuel_global};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;
use walrus::ir::{Const, Instr, InstrSeqId, Loop, Value, Visitor, dfs_in_order};
use walrus::ir::{ElemDrop, MemoryCopy, MemoryFill, MemoryInit, TableCopy, TableFill, TableGrow, TableInit, TableSet};
use walrus::{DataKind, ElementKind, ExportItem, FunctionId, GlobalId, LocalFunction, Module};

/// The imports that a guest may have.
const IMPORTS: [(&str, &str); 0] = [];
const PAGE_BYTES: usize = 4096;

/// Checks the module; says its measures.
pub(crate) fn run(wasm: &[u8]) -> Result<String> {
    wasmparser::Validator::new_with_features(features()).validate_all(wasm)?;
    let module = Module::from_buffer(wasm)?;
    check_imports(&module)?;
    check_state(&module)?;
    let charged = check_charges(&module)?;
    let functions = call_graph::local_functions(&module).count();
    let (pages, memory) = (image_pages(&module)?, module.memories.iter().map(|memory| memory.initial).sum::<u64>());
    Ok(format!(
        "{} bytes; memory of {} KiB with {pages} pages of 4 KiB that are not zero; {charged} of {functions} functions are charged at their entry",
        wasm.len(),
        memory * 64
    ))
}

/// WebAssembly 1.0, and the few later features that the guest is compiled with.
fn features() -> wasmparser::WasmFeatures {
    use wasmparser::WasmFeatures as F;
    F::WASM1 | F::SIGN_EXTENSION | F::SATURATING_FLOAT_TO_INT | F::SIMD
}

fn check_imports(module: &Module) -> Result<()> {
    for import in module.imports.iter() {
        let name = (import.module.as_str(), import.name.as_str());
        ensure!(IMPORTS.contains(&name), "imports {}.{}", import.module, import.name);
    }
    Ok(())
}

/// Nothing but the memory and two globals may change.
fn check_state(module: &Module) -> Result<()> {
    let exported = |name| match module.exports.iter().find(|export| export.name == name).map(|export| export.item) {
        Some(ExportItem::Global(global)) => Ok(global),
        _ => bail!("exports no global `{name}`"),
    };
    let allowed = [exported(FUEL)?, exported(STACK_POINTER)?];
    ensure!(
        module.globals.iter().all(|global| !global.mutable || allowed.contains(&global.id())),
        "a third global can change"
    );
    ensure!(module.memories.iter().count() == 1 && module.tables.iter().count() <= 1, "more than one memory or table");
    ensure!(module.data.iter().all(|data| matches!(data.kind, DataKind::Active { .. })), "a data segment is passive");
    ensure!(
        module.elements.iter().all(|element| matches!(element.kind, ElementKind::Active { .. })),
        "an element segment is not active"
    );
    for (_, function) in call_graph::local_functions(module) {
        let mut bulk = Bulk::default();
        dfs_in_order(&mut bulk, function, function.entry_block());
        ensure!(!bulk.found, "a bulk instruction, which the host would serve");
    }
    Ok(())
}

#[derive(Default)]
struct Bulk {
    found: bool,
}

impl<'a> Visitor<'a> for Bulk {
    fn visit_memory_copy(&mut self, _: &MemoryCopy) {
        self.found = true;
    }
    fn visit_memory_fill(&mut self, _: &MemoryFill) {
        self.found = true;
    }
    fn visit_memory_init(&mut self, _: &MemoryInit) {
        self.found = true;
    }
    fn visit_table_set(&mut self, _: &TableSet) {
        self.found = true;
    }
    fn visit_table_grow(&mut self, _: &TableGrow) {
        self.found = true;
    }
    fn visit_table_fill(&mut self, _: &TableFill) {
        self.found = true;
    }
    fn visit_table_init(&mut self, _: &TableInit) {
        self.found = true;
    }
    fn visit_table_copy(&mut self, _: &TableCopy) {
        self.found = true;
    }
    fn visit_elem_drop(&mut self, _: &ElemDrop) {
        self.found = true;
    }
}

/// Every loop is charged, and every cycle of calls holds a function that is charged at its entry; says how many are.
fn check_charges(module: &Module) -> Result<usize> {
    let fuel = fuel_global(module)?;
    for (id, function) in call_graph::local_functions(module) {
        let mut loops = Loops { function, fuel, uncharged: 0 };
        dfs_in_order(&mut loops, function, function.entry_block());
        ensure!(loops.uncharged == 0, "function {} has {} loops that are not charged", id.index(), loops.uncharged);
    }
    let charged: BTreeSet<FunctionId> = call_graph::local_functions(module)
        .filter(|(_, function)| is_charged(function, function.entry_block(), fuel))
        .map(|(id, _)| id)
        .collect();
    ensure!(call_graph::in_tables(module).is_subset(&charged), "a function in the table is not charged");
    if let Err(cycle) = Calls::of(module).order(&charged) {
        bail!("{} functions call each other in cycles that are not charged", cycle.len());
    }
    Ok(charged.len())
}

struct Loops<'a> {
    function: &'a LocalFunction,
    fuel: GlobalId,
    uncharged: usize,
}

impl<'a> Visitor<'a> for Loops<'a> {
    fn visit_loop(&mut self, header: &Loop) {
        self.uncharged += usize::from(!is_charged(self.function, header.seq, self.fuel));
    }
}

/// Whether what `label` holds starts with a charge that traps below zero.
fn is_charged(function: &LocalFunction, label: InstrSeqId, fuel: GlobalId) -> bool {
    let instructions: Vec<&Instr> =
        function.block(label).instrs.iter().take(9).map(|(instruction, _)| instruction).collect();
    let [
        Instr::GlobalGet(read),
        Instr::Const(Const { value: Value::I64(units) }),
        Instr::Binop(_),
        Instr::LocalTee(kept),
        rest @ ..,
    ] = &instructions[..]
    else {
        return false;
    };
    let [
        Instr::GlobalSet(written),
        Instr::LocalGet(tested),
        Instr::Const(Const { value: Value::I64(0) }),
        Instr::Binop(_),
        Instr::IfElse(trap),
    ] = rest
    else {
        return false;
    };
    let traps = matches!(function.block(trap.consequent).instrs.first(), Some((Instr::Unreachable(_), _)));
    read.global == fuel && written.global == fuel && kept.local == tested.local && *units > 0 && traps
}

/// How many pages of the memory are not all zero from the start.
fn image_pages(module: &Module) -> Result<usize> {
    let mut pages = BTreeSet::new();
    for data in module.data.iter() {
        let DataKind::Active { offset: walrus::ConstExpr::Value(Value::I32(start)), .. } = data.kind else {
            bail!("a data segment has no fixed place");
        };
        let bytes = data.value.iter().enumerate().filter(|(_, byte)| **byte != 0);
        pages.extend(bytes.map(|(index, _)| (start as u32 as usize + index) / PAGE_BYTES));
    }
    Ok(pages.len())
}
