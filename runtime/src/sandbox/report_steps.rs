//! Connects a guest that reports its steps to the recorder of a message.

use wasmtime::{Caller, Func, Ref, Store};

use super::host::MemoryLimiter;
use crate::profile::instrument;

/// In a guest that reports its steps, puts the function that it calls for each into its table.
pub(super) fn report_steps(store: &mut Store<MemoryLimiter>, instance: &wasmtime::Instance) -> wasmtime::Result<()> {
    let Some(table) = instance.get_table(&mut *store, instrument::TABLE) else { return Ok(()) };
    let report = |mut caller: Caller<'_, MemoryLimiter>, fuel: i64, stack_pointer: i32, address: i32| {
        if let Some(recorder) = &mut caller.data_mut().recorder {
            recorder.step(fuel, stack_pointer.cast_unsigned(), address.cast_unsigned());
        }
    };
    let report = Func::wrap(&mut *store, report);
    let last = table.size(&*store).saturating_sub(1);
    table.set(store, last, Ref::Func(Some(report)))
}
