//! One running guest over one mapping: puts a request in, lets it run within its limits, takes the reply out.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Global, Memory, ResourceLimiter, Store, Trap, TypedFunc, Val};

use crate::contract::call::LogEntry;
use crate::contract::failure::Failure;
use crate::contract::reply;
use crate::contract::wire::{FailureKind, Slot};
use crate::engine::Engine;
use crate::error::Error;
use crate::load::guest::WASM_PAGE_BYTES;
use crate::memory::mapping::Mapping;
use crate::settings::Limits;

/// Fuel for making room for a request, which runs no tenant code.
const ALLOC_FUEL: i64 = 1_000_000;
/// Fuel for telling, after a trap, where that was: as much as the guest keeps back when it sees the end coming.
const LAST_WORDS_FUEL: i64 = 500_000;
/// Elements of the guest's one table: its functions that are called by pointer.
const TABLE_ELEMENTS_MAX: usize = 10_000;

/// What a function did that the host had to refuse memory.
pub(crate) const OUT_OF_MEMORY: &str = "needs more memory than it may have";

/// What a guest is asked for, and what it may use.
pub(crate) struct Task<'a> {
    pub(crate) errand: Errand,
    pub(crate) request: &'a [u8],
    pub(crate) limits: &'a Limits,
    pub(crate) fuel: u64,
    pub(crate) deadline: Instant,
    /// Whether to say how long the guest ran.
    pub(crate) timed: bool,
}

/// Which of its functions the guest runs.
#[derive(Clone, Copy)]
pub(crate) enum Errand {
    /// Evaluate function texts.
    Load,
    /// Run a message; a trap before any function is blamed on the slot.
    Call(Slot),
}

/// What became of it.
pub(crate) struct Run {
    pub(crate) reply: Result<Vec<u8>, Failure>,
    pub(crate) fuel: u64,
    /// Whether the guest asked for more memory than it may have.
    pub(crate) hungry: bool,
    /// Time between entering and leaving the guest; zero unless it was asked for.
    pub(crate) in_guest: Duration,
    /// What a call had logged that ended in a trap; the reply has it otherwise.
    pub(crate) logs: Vec<LogEntry>,
}

/// An instance. Its whole state is the mapping, two globals, and the size of its memory.
pub(crate) struct Instance {
    store: Store<Growth>,
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
    /// An instance whose memory is what lies in the first `bytes` of `mapping`.
    pub(crate) fn start(engine: &Engine, mapping: &Arc<Mapping>, bytes: usize) -> Result<Self, Error> {
        Self::try_start(engine, mapping, bytes).map_err(|error| Error::Guest(format!("{error:#}")))
    }

    fn try_start(engine: &Engine, mapping: &Arc<Mapping>, bytes: usize) -> wasmtime::Result<Self> {
        let growth = Growth { bytes_max: bytes, refused: false };
        let mut store = Store::new(engine.pre.module().engine(), growth);
        store.limiter(|growth| growth);
        let instance = engine.creator.with(mapping, || engine.pre.instantiate(&mut store))?;
        let missing = || wasmtime::format_err!("an export is missing");
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(missing)?;
        let grown = bytes.saturating_sub(memory.data_size(&store)) / WASM_PAGE_BYTES;
        memory.grow(&mut store, grown as u64)?;
        Ok(Self {
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

    /// Runs one task. The mapping has to be put back afterwards.
    pub(crate) fn run(&mut self, engine: &Engine, task: &Task<'_>) -> Run {
        let fuel = i64::try_from(task.fuel).unwrap_or(i64::MAX);
        // Of this task alone: what the one before was refused must not colour what is thrown in this one.
        *self.store.data_mut() = Growth { bytes_max: task.limits.memory_bytes_max, refused: false };
        let mut in_guest = Duration::ZERO;
        let reply = self.hand_in(engine, task.request).and_then(|place| {
            self.set(self.fuel, Val::I64(fuel))?;
            engine.watchdog.arm(&self.mapping, task.deadline);
            let entered = task.timed.then(Instant::now);
            let reply = match task.errand {
                Errand::Load => self.load.call(&mut self.store, place),
                Errand::Call(_) => self.call.call(&mut self.store, place),
            };
            in_guest = entered.map_or(Duration::ZERO, |entered| entered.elapsed());
            // Before anything else: until here the watchdog may close the memory under whoever reads it.
            if self.mapping.disarm()? {
                Err(Overdue.into())
            } else {
                self.hand_out(reply?, task.limits.reply_bytes_max())
            }
        });
        let left = self.fuel_left().clamp(0, fuel);
        let mut run = Run {
            reply: reply.map_err(|error| self.failure(engine, task.errand, &error)),
            fuel: (fuel - left).unsigned_abs(),
            hungry: self.store.data().refused,
            in_guest,
            logs: Vec::new(),
        };
        if let Err(failure) = &mut run.reply {
            self.trapped = true;
            run.logs = self.ask_trap_report(task.limits, failure).unwrap_or_default();
        }
        run
    }

    /// The linear memory as the guest sees it.
    pub(crate) fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Whether it has not grown beyond `bytes`, so that putting back the mapping makes it as new.
    pub(crate) fn is_reusable(&self, bytes: usize) -> bool {
        self.memory.data_size(&self.store) == bytes
    }

    /// Whether its last call ended in a trap, or with a reply that cannot be read.
    pub(crate) fn has_trapped(&self) -> bool {
        self.trapped
    }

    /// Lets the guest make room for `request` and puts it there.
    fn hand_in(&mut self, engine: &Engine, request: &[u8]) -> wasmtime::Result<(i32, i32)> {
        self.set(self.stack_pointer, Val::I32(engine.guest.stack_pointer))?;
        self.set(self.fuel, Val::I64(ALLOC_FUEL))?;
        let len = i32::try_from(request.len())?;
        let start = self.alloc.call(&mut self.store, len)?;
        let room = place(start.cast_unsigned(), request.len());
        let room = room.and_then(|range| self.memory.data_mut(&mut self.store).get_mut(range));
        room.ok_or(OutsideOfMemory)?.copy_from_slice(request);
        Ok((start, len))
    }

    /// After a trap: adds to `failure` where it happened, and gives what was logged until then, as far as the guest can
    /// still say so.
    fn ask_trap_report(&mut self, limits: &Limits, failure: &mut Failure) -> Option<Vec<LogEntry>> {
        if self.mapping.is_closed() {
            return None;
        }
        self.set(self.fuel, Val::I64(LAST_WORDS_FUEL)).ok()?;
        let words = self.trap_report.call(&mut self.store, ()).ok()?;
        let words = reply::trap_report(&self.hand_out(words, limits.reply_bytes_max()).ok()?, limits)?;
        (failure.line, failure.column) = (words.line, words.column);
        Some(words.logs)
    }

    /// Copies out the reply that the guest points at, in its upper half, with the length in the lower.
    fn hand_out(&self, reply: i64, bytes_max: usize) -> wasmtime::Result<Vec<u8>> {
        let (start, len) = ((reply.cast_unsigned() >> 32) as u32, reply.cast_unsigned() as u32 as usize);
        let reply = place(start, len).filter(|_| len <= bytes_max);
        Ok(reply.and_then(|range| self.memory().get(range)).ok_or(OutsideOfMemory)?.to_vec())
    }

    /// What a trap means to the author of the function that was running.
    fn failure(&mut self, engine: &Engine, errand: Errand, error: &wasmtime::Error) -> Failure {
        // Memory that could not be opened again must not be read: that would end the process.
        let open = !self.mapping.is_closed();
        let running_slot =
            open.then(|| self.memory().get(engine.guest.running_slot).copied()).flatten().and_then(Slot::from_byte);
        let slot = running_slot.unwrap_or(match errand {
            Errand::Load => Slot::Decoder,
            Errand::Call(slot) => slot,
        });
        let trap = error.downcast_ref::<Trap>();
        if error.is::<Overdue>() {
            Failure::new(slot, FailureKind::Time, "was stopped by the clock before its fuel had run out")
        } else if trap == Some(&Trap::StackOverflow) || (trap.is_some() && self.is_stack_used_up(engine)) {
            Failure::new(slot, FailureKind::Stack, "called itself too deeply")
        } else if trap.is_some() && self.fuel_left() < 0 {
            Failure::new(slot, FailureKind::Fuel, "used up its fuel")
        } else if trap.is_some() && self.store.data().refused {
            Failure::new(slot, FailureKind::Memory, OUT_OF_MEMORY)
        } else {
            Failure::broken(slot, error.root_cause())
        }
    }

    /// Whether the shadow stack has reached its end, which is the start of the memory.
    fn is_stack_used_up(&mut self, engine: &Engine) -> bool {
        // A function that calls no other does not write its frame back, so "nearly" counts.
        const NEARLY: u32 = 4096;
        let Val::I32(pointer) = self.stack_pointer.get(&mut self.store) else { return false };
        !(NEARLY..=engine.guest.stack_pointer.cast_unsigned()).contains(&pointer.cast_unsigned())
    }

    fn fuel_left(&mut self) -> i64 {
        self.fuel.get(&mut self.store).i64().unwrap_or(0)
    }

    fn set(&mut self, global: Global, value: Val) -> wasmtime::Result<()> {
        global.set(&mut self.store, value)
    }
}

/// The bytes from `start`, as far as that can be said without a memory.
fn place(start: u32, len: usize) -> Option<Range<usize>> {
    let start = start as usize;
    Some(start..start.checked_add(len)?)
}

/// The watchdog closed the memory.
#[derive(Debug, thiserror::Error)]
#[error("the call took too long")]
struct Overdue;

/// The guest named a place that it does not have, or more than a reply may be.
#[derive(Debug, thiserror::Error)]
#[error("it points outside of its own memory")]
struct OutsideOfMemory;

/// Bounds the memory of one instance and remembers whether the guest met the bound.
pub(crate) struct Growth {
    bytes_max: usize,
    refused: bool,
}

impl ResourceLimiter for Growth {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.bytes_max;
        self.refused |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}
