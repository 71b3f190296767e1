//! Closes the module: no import is left, and only what the host needs is exported.

use anyhow::{Context, Result, bail};
use walrus::ir::Value;
use walrus::{ConstExpr, ExportItem, FunctionId, GlobalId, ImportKind, InstrSeqBuilder, Module, ModuleConfig, ValType};

/// What `errno` means by "there is no such function here".
const ENOSYS: i32 = 52;

/// What the module shall export once it is closed; the last is used by the next step and goes with it.
const EXPORTS: [&str; 10] = [
    "memory",
    "alloc",
    "load",
    "list_steps",
    "trap_report",
    "call",
    "running_slot",
    crate::meter::FUEL,
    crate::meter::STACK_POINTER,
    crate::snapshot::INITIALIZE,
];

/// Gives every imported function a body, and adds the fuel counter.
pub(crate) fn run(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = parse(wasm)?;
    let fuel = module.globals.add_local(ValType::I64, true, false, ConstExpr::Value(Value::I64(i64::MAX)));
    module.exports.add(crate::meter::FUEL, fuel);
    let imports: Vec<_> = module.imports.iter().map(|import| (import.name.clone(), import.kind.clone())).collect();
    for (name, kind) in imports {
        let ImportKind::Function(function) = kind else { bail!("the import `{name}` is no function") };
        stub(&mut module, &name, function, fuel)?;
    }
    rename_export(&mut module, "__stack_pointer", crate::meter::STACK_POINTER)?;
    let surplus: Vec<_> = module
        .exports
        .iter()
        .filter(|export| !EXPORTS.contains(&export.name.as_str()))
        .map(walrus::Export::id)
        .collect();
    surplus.into_iter().for_each(|export| module.exports.delete(export));
    walrus::passes::gc::run(&mut module);
    Ok(module.emit_wasm())
}

/// Reads a module, to be written without names, producers or debug information.
pub(crate) fn parse(wasm: &[u8]) -> Result<Module> {
    let mut config = ModuleConfig::new();
    config.generate_name_section(false).generate_producers_section(false).generate_dwarf(false);
    let mut module = config.parse(wasm).context("failed to read the module")?;
    let customs: Vec<_> = module.customs.iter().map(|(id, _)| id).collect();
    customs.into_iter().for_each(|custom| drop(module.customs.delete(custom)));
    Ok(module)
}

fn stub(module: &mut Module, name: &str, function: FunctionId, fuel: GlobalId) -> Result<()> {
    let results = module.types.get(module.funcs.get(function).ty()).results().to_vec();
    let body = |body: &mut InstrSeqBuilder<'_>| match (name, &results[..]) {
        ("fuel_left", [ValType::I64]) => _ = body.global_get(fuel),
        (_, []) => _ = body.unreachable(),
        _ => _ = body.i32_const(ENOSYS),
    };
    if results.len() > 1 || results.iter().any(|result| name != "fuel_left" && *result != ValType::I32) {
        bail!("the import `{name}` returns something unforeseen");
    }
    module
        .replace_imported_func(function, |(builder, _)| body(builder))
        .with_context(|| format!("failed to stub `{name}`"))?;
    Ok(())
}

fn rename_export(module: &mut Module, from: &str, to: &str) -> Result<()> {
    let export = module.exports.iter_mut().find(|export| export.name == from);
    let export = export.with_context(|| format!("the module does not export `{from}`"))?;
    if !matches!(export.item, ExportItem::Global(_)) {
        bail!("`{from}` is no global");
    }
    export.name = to.to_owned();
    Ok(())
}
