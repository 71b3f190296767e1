//! One thread's sandboxes: a fresh one for every message, at the price of putting back what the last one changed.

mod hot;
pub(crate) mod instance;
mod memory_slot;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::contract::call::{Call, CallOutcome};
use crate::contract::failure::Failure;
use crate::contract::input;
use crate::contract::reply;
use crate::contract::wire::{EntryPoint, FailureKind, Slot, Writer};
use crate::engine::{Engine, deadline, no_room, nonsense};
use crate::error::Error;
use crate::functions::Functions;
use crate::sandbox::hot::{Hot, Own};
use crate::sandbox::instance::{Errand, OUT_OF_MEMORY, Run, Task};
use crate::sandbox::memory_slot::{Bed, Faults};
use crate::settings::Limits;

/// Shared memories of a thread: of nearly all function sets the memory has one of two lengths, and how much of it they
/// change lies between 64 KiB and 1 MiB.
const SHARED_MAX: usize = 8;
/// Function sets that change less than this count as equally small.
const SMALL_BYTES: usize = 64 * 1024;

/// The instances of one thread. Every call meets exactly the memory that loading its functions left.
pub struct Sandbox {
    engine: Arc<Engine>,
    /// The memories of those function sets that are busy.
    hot: Hot,
    /// The memories of all others, each for sets of about one size; the one that was used last comes last.
    shared: Vec<Shared>,
    faults: Faults,
    request: Writer,
    /// How long the guest ran for the last message, if that is asked for.
    timed: Option<Duration>,
}

/// A memory for function sets that need memories of one length and change about as many pages of it: those that one set
/// changed are looked at for the next, so small sets do well to stay among themselves.
struct Shared {
    size: (usize, u32),
    bed: Bed,
}

impl Sandbox {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let settings = engine.settings();
        let hot = Hot::new(settings.hot_max, settings.hot_after);
        Self { engine, hot, shared: Vec::new(), faults: Faults::default(), request: Writer::default(), timed: None }
    }

    /// Runs one message through `functions`, within their limits.
    ///
    /// The thread needs 2 MiB of stack and is busy for up to `Limits::time_ms_max`.
    pub fn call(&mut self, functions: &Functions, call: &Call) -> CallOutcome {
        let start = Instant::now();
        let first = match (call.entry_point, &call.single_function) {
            (EntryPoint::SingleFunction, Some(single)) => single.function.slot(),
            (EntryPoint::Uplink | EntryPoint::SingleFunction, _) => functions.first(),
            (EntryPoint::EncodeDownlink | EntryPoint::DecodeDownlink, _) => Slot::Encoder,
        };
        if let Err(failure) = input::check(call, first, functions.limits()) {
            return CallOutcome::of(Err(failure));
        }
        write_request(&mut self.request, call);
        let mut report = match self.run(functions, first, start) {
            Ok(run) => {
                self.timed = self.timed.map(|_| run.in_guest);
                report(run, first, functions.limits())
            }
            Err(error) => CallOutcome::of(Err(no_room(first, &error))),
        };
        report.elapsed = start.elapsed();
        report
    }

    /// The same, and how long the guest ran.
    #[doc(hidden)]
    pub fn call_timed(&mut self, functions: &Functions, call: &Call) -> (CallOutcome, Duration) {
        self.timed = Some(Duration::ZERO);
        let report = self.call(functions, call);
        (report, self.timed.take().unwrap_or_default())
    }

    /// What the next message of `functions` would find in its memory.
    #[doc(hidden)]
    pub fn next_memory(&mut self, functions: &Functions) -> Option<Vec<u8>> {
        if let Some(bed) = self.hot.get(functions.hash()) {
            return Some(bed.snapshot());
        }
        let mut shared = self.take_shared(functions).ok()?;
        shared.bed.make(&self.engine, Some(functions.module())).ok()?;
        let memory = shared.bed.snapshot();
        self.shared.push(shared);
        Some(memory)
    }

    /// Messages so far that met no page fault, so that the host need not ask what they changed.
    #[doc(hidden)]
    pub fn messages_without_faults(&self) -> u64 {
        self.faults.without
    }

    fn run(&mut self, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        match self.hot.take(&self.engine, functions) {
            Some(own) => self.run_hot(own, functions, first, start),
            None => self.run_cold(functions, first, start),
        }
    }

    /// In a memory of its own, which is put back at once: a message must not hold memory until the next one comes.
    fn run_hot(&mut self, mut own: Own, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        let task = task(&self.request, functions, first, start, self.timed.is_some());
        let run = own.bed.run(&self.engine, &mut self.faults, None, &task)?;
        match own.bed.make(&self.engine, None) {
            Ok(()) => self.hot.put(own),
            Err(error) => tracing::error!(%error, "failed to put back the memory of a sandbox, will make a new one"),
        }
        Ok(run)
    }

    /// In a memory that others use too, which is put back when it is known what shall lie there next.
    fn run_cold(&mut self, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        // Out of the list until it has run: what a panic leaves behind must not meet another message.
        let mut shared = self.take_shared(functions).map_err(Error::Memory)?;
        let task = task(&self.request, functions, first, start, self.timed.is_some());
        let run = shared.bed.run(&self.engine, &mut self.faults, Some(functions.module()), &task)?;
        self.shared.push(shared);
        Ok(run)
    }

    /// Takes out the shared memory for sets of this size, or makes one.
    fn take_shared(&mut self, functions: &Functions) -> io::Result<Shared> {
        let (len, changed) = (functions.module().memory_bytes(), functions.module().changed_bytes());
        let size = (len, changed.max(SMALL_BYTES).next_power_of_two().ilog2());
        if let Some(place) = self.shared.iter().position(|shared| shared.size == size) {
            return Ok(self.shared.remove(place));
        }
        if self.shared.len() >= SHARED_MAX {
            self.shared.remove(0);
        }
        Ok(Shared { size, bed: Bed::new(&self.engine, self.engine.first_image(), len)? })
    }
}

fn task<'a>(request: &'a Writer, functions: &'a Functions, first: Slot, start: Instant, timed: bool) -> Task<'a> {
    let limits = functions.limits();
    Task {
        errand: Errand::Call(first),
        request: request.as_bytes(),
        limits,
        fuel: limits.fuel,
        deadline: deadline(start, limits.time_ms_max),
        timed,
    }
}

fn write_request(request: &mut Writer, call: &Call) {
    request.clear();
    request.byte(call.entry_point as u8).byte(call.port).long(call.time_ms.cast_unsigned()).long(call.seed);
    request.text(&call.payload);
    if let Some(single) = &call.single_function {
        request.byte(single.function as u8).text(single.extra.as_bytes());
    }
}

fn report(run: Run, first: Slot, limits: &Limits) -> CallOutcome {
    match run.reply.and_then(|bytes| reply::call(&bytes, limits).ok_or_else(|| nonsense(first))) {
        Ok(report) => CallOutcome {
            fuel: run.fuel,
            result: report.result.map_err(|failure| blame(failure, run.hungry)),
            ..report
        },
        Err(failure) => CallOutcome { fuel: run.fuel, logs: run.logs, ..CallOutcome::of(Err(failure)) },
    }
}

/// What is thrown for want of memory may be anything, because there was none to make an error of.
fn blame(failure: Failure, hungry: bool) -> Failure {
    if hungry && failure.kind == FailureKind::Thrown {
        return Failure { kind: FailureKind::Memory, message: OUT_OF_MEMORY.into(), ..failure };
    }
    failure
}
