//! The sandboxes of one thread: every message starts from exactly the memory that loading its functions left.

pub(crate) mod host;
mod hot;
pub(crate) mod instance;
mod protection;
mod report_steps;
mod resettable_memory;

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::contract::call::{Call, CallOutcome};
use crate::contract::failure::Failure;
use crate::contract::input;
use crate::contract::reply;
use crate::contract::wire::{EntryPoint, FailureKind, Slot, Writer};
use crate::error::Error;
use crate::functions::Functions;
use crate::limits::Limits;
use crate::profile::recorder::{Recorder, Recording};
use crate::profile::steps::Steps;
use crate::settings::Settings;
use host::Host;
use hot::{HotSet, HotSets};
use instance::{OUT_OF_MEMORY, Operation, Run, Task, deadline};
use resettable_memory::{FaultCounter, ResettableMemory};

/// Maximum number of shared memories of a thread. Nearly all function sets need a memory of one of two lengths and
/// change between 64 KiB and 1 MiB of it.
const SHARED_MAX: usize = 8;
/// Function sets that change less than this count as equally small.
const SMALL_BYTES: usize = 64 * 1024;

/// The instances of one thread. Every call starts from exactly the memory that loading its functions left.
pub struct Sandbox {
    host: Arc<Host>,
    /// Busy function sets, each with its own memory.
    hot: HotSets,
    /// The memories of all other function sets, least recently used first.
    shared: Vec<SharedMemory>,
    faults: FaultCounter,
    request: Writer,
    /// Time for which the guest ran for the last message, if it is measured.
    timed: Option<Duration>,
    /// Counts the steps of the next message.
    recorder: Option<Box<Recorder>>,
    /// Fuel of the run of the last message that a protected memory stopped.
    stopped_fuel: u64,
}

/// A memory for function sets of similar size. Restoring looks at the pages that the previous set changed, so small
/// sets are faster among themselves.
struct SharedMemory {
    size: SizeClass,
    memory: ResettableMemory,
}

/// The length of the memory, and the binary logarithm of the bytes that loading changed.
type SizeClass = (usize, u32);

impl Sandbox {
    pub(crate) fn new(host: Arc<Host>, settings: &Settings) -> Self {
        let hot = HotSets::new(settings.hot_max, settings.hot_after);
        let faults = FaultCounter::default();
        let request = Writer::default();
        Self { host, hot, shared: Vec::new(), faults, request, timed: None, recorder: None, stopped_fuel: 0 }
    }

    /// Runs one message through `functions`, within their limits.
    ///
    /// Blocks for up to `Limits::time_ms_max`, or twice that if a protected memory stops the message, which is rare.
    /// The thread needs 2 MiB of stack.
    pub fn call(&mut self, functions: &Functions, call: &Call) -> CallOutcome {
        let start = Instant::now();
        let first = match (call.entry_point, &call.single_function) {
            (EntryPoint::SingleFunction, Some(function)) => function.slot(),
            (EntryPoint::Uplink | EntryPoint::SingleFunction, _) => functions.first_slot(),
            (EntryPoint::EncodeDownlink | EntryPoint::DecodeDownlink, _) => Slot::Encoder,
        };
        if let Err(failure) = input::check(call, first, functions.limits()) {
            return CallOutcome::new(Err(failure));
        }
        write_request(&mut self.request, call);
        let mut outcome = match self.run(functions, first, start) {
            Ok(mut run) => {
                self.timed = self.timed.map(|_| run.in_guest);
                self.recorder = run.recorder.take();
                self.stopped_fuel = run.stopped_fuel;
                outcome(run, first, functions.limits())
            }
            Err(error) => CallOutcome::new(Err(Failure::no_sandbox(first, &error))),
        };
        if let Err(failure) = &mut outcome.result {
            failure.function = call.function();
        }
        outcome.elapsed = start.elapsed();
        outcome
    }

    /// Like [`call`](Self::call), and measures how long the guest ran. For benchmarks.
    #[doc(hidden)]
    pub fn call_timed(&mut self, functions: &Functions, call: &Call) -> (CallOutcome, Duration) {
        self.timed = Some(Duration::ZERO);
        let outcome = self.call(functions, call);
        (outcome, self.timed.take().unwrap_or_default())
    }

    /// Takes the fuel that the last message used beside that of its outcome, because it ran twice.
    pub(crate) fn take_stopped_fuel(&mut self) -> u64 {
        std::mem::take(&mut self.stopped_fuel)
    }

    /// Lists the steps of `functions`, for [`call_recorded`](Self::call_recorded).
    pub fn steps(&mut self, functions: &Functions) -> Result<Arc<Steps>, Failure> {
        let slot = functions.first_slot();
        let limits = functions.limits();
        let task = Task {
            operation: Operation::ListSteps,
            request: &[],
            limits,
            fuel: limits.load_fuel,
            deadline: deadline(Instant::now(), limits.load_time_ms_max),
            timed: false,
            recorder: Cell::default(),
        };
        let run = self.take_shared(functions).map_err(Error::Memory).and_then(|mut shared| {
            let run = shared.memory.run(&self.host, &mut self.faults, Some(functions.module()), &task)?;
            self.shared.push(shared);
            Ok(run)
        });
        let run = run.map_err(|error| Failure::no_sandbox(slot, &error))?;
        let (list, memory) = (run.reply?, self.next_memory(functions).unwrap_or_default());
        Steps::read(&list, &memory).map(Arc::new).ok_or_else(|| Failure::malformed_reply(slot))
    }

    /// Like [`call`](Self::call), and adds the cost of each step to a recording of [`steps`](Self::steps). Only
    /// sandboxes of [`Engine::profiling`](crate::Engine::profiling) count steps; in others, all fuel is outside of
    /// them.
    pub fn call_recorded(
        &mut self,
        functions: &Functions,
        call: &Call,
        recording: Recording,
    ) -> (CallOutcome, Option<Recording>) {
        self.recorder = Some(Box::new(Recorder::new(recording)));
        let outcome = self.call(functions, call);
        let recording = self.recorder.take().map(|recorder| {
            let left = functions.limits().fuel.saturating_sub(outcome.fuel);
            let kind = outcome.result.as_ref().err().map(|failure| failure.kind);
            let is_cut_off = matches!(kind, Some(FailureKind::Fuel | FailureKind::Time | FailureKind::Memory));
            recorder.finish(i64::try_from(left).unwrap_or(i64::MAX), is_cut_off)
        });
        (outcome, recording)
    }

    /// The memory that the next message of `functions` would start from.
    #[doc(hidden)]
    pub fn next_memory(&mut self, functions: &Functions) -> Option<Vec<u8>> {
        if let Some(memory) = self.hot.get(functions.hash()) {
            return Some(memory.snapshot());
        }
        let mut shared = self.take_shared(functions).ok()?;
        shared.memory.restore(&self.host, Some(functions.module())).ok()?;
        let memory = shared.memory.snapshot();
        self.shared.push(shared);
        Some(memory)
    }

    /// Messages so far that met no page fault and so needed no page scan. For tests.
    #[doc(hidden)]
    pub fn messages_without_faults(&self) -> u64 {
        self.faults.messages_without
    }

    /// Messages so far that ran in a protected memory. For tests.
    #[doc(hidden)]
    pub fn messages_protected(&self) -> u64 {
        self.faults.messages_protected
    }

    fn run(&mut self, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        match self.hot.take(&self.host, functions) {
            Some(set) => self.run_hot(set, functions, first, start),
            None => self.run_cold(functions, first, start),
        }
    }

    /// Runs in the set's own memory and restores it at once, so that it holds no memory between messages.
    fn run_hot(&mut self, mut set: HotSet, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        let recorder = Cell::new(self.recorder.take());
        let task = Task { recorder, ..task(&self.request, functions, first, start, self.timed.is_some()) };
        let run = set.memory.run(&self.host, &mut self.faults, None, &task)?;
        match set.memory.restore(&self.host, None) {
            Ok(()) => self.hot.put_back(set),
            Err(error) => tracing::error!(%error, "cannot restore the memory of a sandbox: making a new one"),
        }
        Ok(run)
    }

    /// Runs in a shared memory, which is restored once it is known which function set comes next.
    fn run_cold(&mut self, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        // Out of the list while it runs: after a panic it must not be used for another message.
        let mut shared = self.take_shared(functions).map_err(Error::Memory)?;
        let recorder = Cell::new(self.recorder.take());
        let task = Task { recorder, ..task(&self.request, functions, first, start, self.timed.is_some()) };
        let run = shared.memory.run(&self.host, &mut self.faults, Some(functions.module()), &task)?;
        self.shared.push(shared);
        Ok(run)
    }

    /// Takes the shared memory for sets of this size out of the list, or creates one.
    fn take_shared(&mut self, functions: &Functions) -> io::Result<SharedMemory> {
        let (len, changed) = (functions.module().memory_bytes(), functions.module().changed_bytes());
        let size = (len, changed.max(SMALL_BYTES).next_power_of_two().ilog2());
        if let Some(index) = self.shared.iter().position(|shared| shared.size == size) {
            return Ok(self.shared.remove(index));
        }
        if self.shared.len() >= SHARED_MAX {
            self.shared.remove(0);
        }
        Ok(SharedMemory {
            size,
            memory: ResettableMemory::new(&self.host, Arc::clone(self.host.initial_image()), len)?,
        })
    }
}

fn task<'a>(request: &'a Writer, functions: &'a Functions, first: Slot, start: Instant, timed: bool) -> Task<'a> {
    let limits = functions.limits();
    Task {
        operation: Operation::Call(first),
        request: request.as_bytes(),
        limits,
        fuel: limits.fuel,
        deadline: deadline(start, limits.time_ms_max),
        timed,
        recorder: Cell::default(),
    }
}

fn write_request(request: &mut Writer, call: &Call) {
    request.clear();
    request.byte(call.entry_point as u8).byte(call.port).long(call.time_ms.cast_unsigned()).long(call.seed);
    request.text(&call.payload).text(call.extra.as_bytes());
    if let Some(function) = call.single_function {
        request.byte(function as u8);
    }
}

fn outcome(run: Run, first: Slot, limits: &Limits) -> CallOutcome {
    match run.reply.and_then(|bytes| reply::call(&bytes, limits).ok_or_else(|| Failure::malformed_reply(first))) {
        Ok(outcome) => {
            let result = outcome.result.map_err(|failure| as_out_of_memory(failure, run.memory_refused));
            CallOutcome { fuel: run.fuel, result, ..outcome }
        }
        Err(failure) => CallOutcome { fuel: run.fuel, logs: run.logs, ..CallOutcome::new(Err(failure)) },
    }
}

/// Without memory for an error object, QuickJS may throw anything; reports that as out of memory.
fn as_out_of_memory(failure: Failure, memory_refused: bool) -> Failure {
    if memory_refused && failure.kind == FailureKind::Thrown {
        return Failure { kind: FailureKind::Memory, message: OUT_OF_MEMORY.into(), ..failure };
    }
    failure
}
