//! One guest instance: writes a request into its memory, runs it within its limits, and copies the reply out.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Global, Memory, Store, Trap, TypedFunc, Val};

use super::host::{Host, MemoryLimiter};
use super::report_steps::report_steps;

use crate::contract::call::LogEntry;
use crate::contract::failure::Failure;
use crate::contract::reply;
use crate::contract::wire::{FailureKind, Slot};
use crate::error::Error;
use crate::limits::Limits;
use crate::load::guest::WASM_PAGE_BYTES;
use crate::memory::mapping::Mapping;
use crate::profile::recorder::Recorder;

/// Fuel for allocating the request buffer, which runs no tenant code.
const ALLOC_FUEL: i64 = 1_000_000;
/// Fuel for the trap report: as much as the guest reserves for the reply when it interrupts a script.
const TRAP_REPORT_FUEL: i64 = 500_000;
/// Maximum time limit; keeps deadlines representable.
const TIME_MS_MAX: u64 = 3_600_000;

/// The failure message of a function that exceeded its memory limit.
pub(crate) const OUT_OF_MEMORY: &str = "needs more memory than it may have";

/// A request to the guest and its limits.
pub(crate) struct Task<'a> {
    pub(crate) operation: Operation,
    pub(crate) request: &'a [u8],
    pub(crate) limits: &'a Limits,
    pub(crate) fuel: u64,
    pub(crate) deadline: Instant,
    /// True to measure the time for which the guest runs.
    pub(crate) timed: bool,
    /// Counts steps; the run takes it and returns it.
    pub(crate) recorder: Cell<Option<Box<Recorder>>>,
}

impl Task<'_> {
    /// Returns true if the steps of this task are counted.
    pub(crate) fn is_recorded(&self) -> bool {
        let recorder = self.recorder.take();
        let is_recorded = recorder.is_some();
        self.recorder.set(recorder);
        is_recorded
    }

    fn reply_bytes_max(&self) -> usize {
        match self.operation {
            Operation::ListSteps => self.limits.memory_bytes_max,
            Operation::Load | Operation::Call(_) => reply::bytes_max(self.limits),
        }
    }
}

/// Operations of the guest, one for each exported function.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// Evaluate function sources.
    Load,
    /// List the steps of all functions.
    ListSteps,
    /// Run a message. A trap before any function starts is reported for this slot.
    Call(Slot),
}

/// The result of a task.
pub(crate) struct Run {
    pub(crate) reply: Result<Vec<u8>, Failure>,
    pub(crate) fuel: u64,
    /// True if the guest asked for more memory than allowed.
    pub(crate) memory_refused: bool,
    /// Time between entering and leaving the guest; zero unless measured.
    pub(crate) in_guest: Duration,
    /// The log of a call that trapped; otherwise the log is part of the reply.
    pub(crate) logs: Vec<LogEntry>,
    pub(crate) recorder: Option<Box<Recorder>>,
    /// True if it was stopped because it writes to a page of a protected memory.
    pub(crate) met_protection: bool,
    /// Fuel of an earlier run of the same message, which was stopped for that reason.
    pub(crate) stopped_fuel: u64,
}

/// An instance. Its whole state is the mapping, two globals and the size of its memory.
pub(crate) struct Instance {
    store: Store<MemoryLimiter>,
    instance: wasmtime::Instance,
    memory: Memory,
    alloc: TypedFunc<i32, i32>,
    load: TypedFunc<(i32, i32), i64>,
    call: TypedFunc<(i32, i32), i64>,
    trap_report: TypedFunc<(), i64>,
    fuel: Global,
    stack_pointer: Global,
    mapping: Arc<Mapping>,
    trapped: bool,
}

impl Instance {
    /// Starts an instance whose memory is the first `bytes` of `mapping`.
    pub(crate) fn start(host: &Host, mapping: &Arc<Mapping>, bytes: usize) -> Result<Self, Error> {
        Self::try_start(host, mapping, bytes).map_err(|error| Error::Guest(format!("{error:#}")))
    }

    fn try_start(host: &Host, mapping: &Arc<Mapping>, bytes: usize) -> wasmtime::Result<Self> {
        let limiter = MemoryLimiter { bytes_max: bytes, has_refused: false, recorder: None };
        let mut store = Store::new(host.pre.module().engine(), limiter);
        store.limiter(|limiter| limiter);
        let instance = host.memory.with(mapping, || host.pre.instantiate(&mut store))?;
        let missing = || wasmtime::format_err!("an export is missing");
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(missing)?;
        let grown = bytes.saturating_sub(memory.data_size(&store)) / WASM_PAGE_BYTES;
        memory.grow(&mut store, grown as u64)?;
        report_steps(&mut store, &instance)?;
        Ok(Self {
            instance,
            memory,
            alloc: instance.get_typed_func(&mut store, "alloc")?,
            load: instance.get_typed_func(&mut store, "load")?,
            call: instance.get_typed_func(&mut store, "call")?,
            trap_report: instance.get_typed_func(&mut store, "trap_report")?,
            fuel: instance.get_global(&mut store, "fuel").ok_or_else(missing)?,
            stack_pointer: instance.get_global(&mut store, "stack_pointer").ok_or_else(missing)?,
            mapping: Arc::clone(mapping),
            store,
            trapped: false,
        })
    }

    /// Runs one task, in a memory that `is_protected` or not. The mapping must be restored afterwards.
    pub(crate) fn run(&mut self, host: &Host, task: &Task<'_>, is_protected: bool) -> Run {
        let fuel = i64::try_from(task.fuel).unwrap_or(i64::MAX);
        // Set for each task: a refusal during the previous one must not affect this one.
        let mut recorder = task.recorder.take();
        if let Some(recorder) = &mut recorder {
            recorder.start(fuel);
        }
        *self.store.data_mut() =
            MemoryLimiter { bytes_max: task.limits.memory_bytes_max, has_refused: false, recorder };
        let (mut in_guest, mut has_request) = (Duration::ZERO, false);
        let reply = self.write_request(host, task.request).and_then(|buffer| {
            self.set(self.fuel, Val::I64(fuel))?;
            has_request = true;
            host.watchdog.arm(&self.mapping, task.deadline);
            let entered = task.timed.then(Instant::now);
            let reply = match task.operation {
                Operation::Load => self.load.call(&mut self.store, buffer),
                Operation::ListSteps => self.list_steps(),
                Operation::Call(_) => self.call.call(&mut self.store, buffer),
            };
            in_guest = entered.map_or(Duration::ZERO, |entered| entered.elapsed());
            // First of all: until here the watchdog may revoke access to the memory.
            if self.mapping.disarm()? { Err(TimedOut.into()) } else { self.read_reply(reply?, task.reply_bytes_max()) }
        });
        // Allocating the request has fuel of its own.
        let left = if has_request { self.fuel_left().clamp(0, fuel) } else { fuel };
        let met_protection = is_protected && reply.as_ref().is_err_and(may_be_protection);
        let mut run = Run {
            reply: reply.map_err(|error| self.failure(host, task.operation, &error)),
            fuel: (fuel - left).unsigned_abs(),
            memory_refused: self.store.data().has_refused,
            in_guest,
            logs: Vec::new(),
            recorder: self.store.data_mut().recorder.take(),
            met_protection,
            stopped_fuel: 0,
        };
        if let Err(failure) = &mut run.reply {
            self.trapped = true;
            if !met_protection {
                run.logs = self.read_trap_report(task.limits, failure).unwrap_or_default();
            }
        }
        run
    }

    /// The linear memory as the guest sees it.
    pub(crate) fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Returns true if its memory still has `bytes`, so that restoring the mapping resets it.
    pub(crate) fn is_reusable(&self, bytes: usize) -> bool {
        self.memory.data_size(&self.store) == bytes
    }

    /// Returns true if its last call trapped or returned a reply outside of its memory.
    pub(crate) fn has_trapped(&self) -> bool {
        self.trapped
    }

    fn list_steps(&mut self) -> wasmtime::Result<i64> {
        self.instance.get_typed_func::<(), i64>(&mut self.store, "list_steps")?.call(&mut self.store, ())
    }

    /// Lets the guest allocate a buffer and copies `request` into it.
    fn write_request(&mut self, host: &Host, request: &[u8]) -> wasmtime::Result<(i32, i32)> {
        self.set(self.stack_pointer, Val::I32(host.guest.stack_pointer))?;
        self.set(self.fuel, Val::I64(ALLOC_FUEL))?;
        let len = i32::try_from(request.len())?;
        let start = self.alloc.call(&mut self.store, len)?;
        let range = byte_range(start.cast_unsigned(), request.len()).ok_or(OutsideOfMemory)?;
        if !self.mapping.is_writable(&range) {
            return Err(Protected.into());
        }
        let buffer = self.memory.data_mut(&mut self.store).get_mut(range);
        buffer.ok_or(OutsideOfMemory)?.copy_from_slice(request);
        Ok((start, len))
    }

    /// After a trap: adds the position to `failure` and returns the log, as far as the guest can still report them.
    fn read_trap_report(&mut self, limits: &Limits, failure: &mut Failure) -> Option<Vec<LogEntry>> {
        if self.mapping.is_revoked() {
            return None;
        }
        // It may need pages that the message left alone.
        self.mapping.unprotect().ok()?;
        self.set(self.fuel, Val::I64(TRAP_REPORT_FUEL)).ok()?;
        let report = self.trap_report.call(&mut self.store, ()).ok()?;
        let report = reply::trap_report(&self.read_reply(report, reply::bytes_max(limits)).ok()?, limits)?;
        (failure.line, failure.column) = (report.line, report.column);
        Some(report.logs)
    }

    /// Copies a reply out of the guest; its address is in the upper half of `reply`, its length in the lower.
    fn read_reply(&self, reply: i64, bytes_max: usize) -> wasmtime::Result<Vec<u8>> {
        let (start, len) = ((reply.cast_unsigned() >> 32) as u32, reply.cast_unsigned() as u32 as usize);
        let reply = byte_range(start, len).filter(|_| len <= bytes_max);
        Ok(reply.and_then(|range| self.memory().get(range)).ok_or(OutsideOfMemory)?.to_vec())
    }

    /// Explains a trap to the author of the function that was running.
    fn failure(&mut self, host: &Host, operation: Operation, error: &wasmtime::Error) -> Failure {
        // If access could not be restored, reading the memory would end the process.
        let is_open = !self.mapping.is_revoked();
        let running_slot =
            is_open.then(|| self.memory().get(host.guest.running_slot).copied()).flatten().and_then(Slot::from_byte);
        let slot = running_slot.unwrap_or(match operation {
            Operation::Load | Operation::ListSteps => Slot::Decoder,
            Operation::Call(slot) => slot,
        });
        let trap = error.downcast_ref::<Trap>();
        if error.is::<TimedOut>() {
            Failure::new(slot, FailureKind::Time, "was stopped by the clock before its fuel had run out")
        } else if trap == Some(&Trap::StackOverflow) || (trap.is_some() && self.is_stack_used_up(host)) {
            Failure::new(slot, FailureKind::Stack, "called itself too deeply")
        } else if trap.is_some() && self.fuel_left() < 0 {
            Failure::new(slot, FailureKind::Fuel, "used up its fuel")
        } else if trap.is_some() && self.store.data().has_refused {
            Failure::new(slot, FailureKind::Memory, OUT_OF_MEMORY)
        } else {
            Failure::broken(slot, error.root_cause())
        }
    }

    /// Returns true if the shadow stack has reached its end, the start of the memory.
    fn is_stack_used_up(&mut self, host: &Host) -> bool {
        // A leaf function does not write back its stack pointer, so almost full counts as full.
        const NEARLY: u32 = 4096;
        let Val::I32(pointer) = self.stack_pointer.get(&mut self.store) else { return false };
        !(NEARLY..=host.guest.stack_pointer.cast_unsigned()).contains(&pointer.cast_unsigned())
    }

    fn fuel_left(&mut self) -> i64 {
        self.fuel.get(&mut self.store).i64().unwrap_or(0)
    }

    fn set(&mut self, global: Global, value: Val) -> wasmtime::Result<()> {
        global.set(&mut self.store, value)
    }
}

/// `len` bytes from `start`; `None` if that overflows.
fn byte_range(start: u32, len: usize) -> Option<Range<usize>> {
    let start = start as usize;
    Some(start..start.checked_add(len)?)
}

/// The watchdog revoked access to the memory.
#[derive(Debug, thiserror::Error)]
#[error("the call took too long")]
struct TimedOut;

/// The request buffer is on a page of a protected memory.
#[derive(Debug, thiserror::Error)]
#[error("its memory is protected")]
struct Protected;

/// Returns true if `error` is what a write to a protected page ends with, though it may have another reason.
fn may_be_protection(error: &wasmtime::Error) -> bool {
    error.is::<Protected>() || error.downcast_ref::<Trap>() == Some(&Trap::MemoryOutOfBounds)
}

/// The guest returned an address outside of its memory, or too long a reply.
#[derive(Debug, thiserror::Error)]
#[error("it points outside of its own memory")]
struct OutsideOfMemory;

/// The deadline of a call that starts at `start`.
pub(crate) fn deadline(start: Instant, time_ms_max: u64) -> Instant {
    start + Duration::from_millis(time_ms_max.min(TIME_MS_MAX))
}
