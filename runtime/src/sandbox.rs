//! One thread's sandboxes: a fresh one for every message, at the price of putting back what the last one changed.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::call::{Call, Report};
use crate::engine::{Engine, deadline, no_room, nonsense};
use crate::error::Error;
use crate::failure::Failure;
use crate::functions::Functions;
use crate::image::Image;
use crate::input;
use crate::instance::{Errand, Instance, OUT_OF_MEMORY, Run, Task};
use crate::memory::Mapping;
use crate::reply;
use crate::settings::Limits;
use crate::sources::SourcesHash;
use crate::wire::{Entry, Kind, Slot, Writer};

/// The instances of one thread. Every call meets exactly the memory that loading its functions left.
pub struct Sandbox {
    engine: Arc<Engine>,
    /// At most `hot_max` function sets that were used last.
    hot: Vec<Hot>,
    /// Counts calls, to tell which function set was used last.
    calls: u64,
    request: Writer,
}

/// A function set with memory of its own.
struct Hot {
    hash: SourcesHash,
    image: Arc<Image>,
    mapping: Arc<Mapping>,
    /// Absent when the last message grew its memory or trapped: neither can be undone inside an instance.
    instance: Option<Instance>,
    last_call: u64,
}

impl Sandbox {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, hot: Vec::new(), calls: 0, request: Writer::default() }
    }

    /// Runs one message through `functions`, within the engine's limits.
    ///
    /// The thread needs 2 MiB of stack and is busy for up to `Limits::time_ms_max`.
    pub fn call(&mut self, functions: &Functions, call: &Call) -> Report {
        let start = Instant::now();
        let first = match (call.entry, &call.trial) {
            (Entry::Trial, Some(trial)) => trial.function.slot(),
            (Entry::Uplink | Entry::Trial, _) => functions.first(),
            (Entry::EncodeDownlink | Entry::DecodeDownlink, _) => Slot::Encoder,
        };
        if let Err(failure) = input::check(call, first, self.engine.limits()) {
            return Report::of(Err(failure));
        }
        write_request(&mut self.request, call);
        let mut report = match self.run(functions, first, start) {
            Ok(run) => report(run, first, self.engine.limits()),
            Err(error) => Report::of(Err(no_room(first, &error))),
        };
        report.elapsed = start.elapsed();
        report
    }

    /// What the next message of `functions` would find in its memory.
    #[doc(hidden)]
    pub fn next_memory(&mut self, functions: &Functions) -> Option<Vec<u8>> {
        self.hot.iter().find(|hot| hot.hash == functions.hash()).map(|hot| hot.mapping.snapshot())
    }

    fn run(&mut self, functions: &Functions, first: Slot, start: Instant) -> Result<Run, Error> {
        // Out of the list until it is put back: what a panic leaves behind must not meet another message.
        let mut hot = self.take(functions).map_err(Error::Memory)?;
        let faults = self.engine.faults();
        let mut instance = match hot.instance.take() {
            Some(instance) => instance,
            None => Instance::start(&self.engine, &hot.mapping, hot.image.len())?,
        };
        let limits = self.engine.limits();
        let deadline = deadline(start, limits.time_ms_max);
        let (errand, request) = (Errand::Call(first), self.request.as_bytes());
        let run = instance.run(&self.engine, &Task { errand, request, fuel: limits.fuel, deadline });
        let still = faults.is_some() && faults == self.engine.faults();
        match hot.put_back(instance, &self.engine, still) {
            Ok(()) => self.hot.push(hot),
            Err(error) => tracing::error!(%error, "failed to put back the memory of a sandbox, will make a new one"),
        }
        Ok(run)
    }

    /// Takes `functions` out of the hot ones, or maps them now.
    fn take(&mut self, functions: &Functions) -> io::Result<Hot> {
        self.calls += 1;
        let hash = functions.hash();
        let mut hot = match self.hot.iter().position(|hot| hot.hash == hash) {
            Some(index) => self.hot.swap_remove(index),
            None => self.map(functions)?,
        };
        hot.last_call = self.calls;
        Ok(hot)
    }

    /// Maps `functions`, in place of those that were used longest ago if there are too many.
    fn map(&mut self, functions: &Functions) -> io::Result<Hot> {
        let coldest = (0..self.hot.len()).min_by_key(|index| self.hot[*index].last_call);
        if let Some(coldest) = coldest.filter(|_| self.hot.len() >= self.engine.settings().hot_max.max(1)) {
            self.hot.swap_remove(coldest);
        }
        let image = self.engine.image(functions)?;
        let mapping = self.engine.mapping(&image)?;
        Ok(Hot { hash: functions.hash(), image, mapping, instance: None, last_call: 0 })
    }
}

impl Hot {
    /// Makes the memory what it was before the message, and keeps the instance if nothing else of it changed.
    fn put_back(&mut self, instance: Instance, engine: &Engine, still: bool) -> io::Result<()> {
        if instance.has_trapped() {
            drop(instance);
            return self.mapping.lay(&self.image);
        }
        self.instance = instance.is_reusable(self.image.len()).then_some(instance);
        engine.restore(&self.mapping, &self.image, still)
    }
}

fn write_request(request: &mut Writer, call: &Call) {
    request.clear();
    request.byte(call.entry as u8).byte(call.port).long(call.time_ms.cast_unsigned()).long(call.seed);
    request.text(&call.payload);
    if let Some(trial) = &call.trial {
        request.byte(trial.function as u8).text(trial.extra.as_bytes());
    }
}

fn report(run: Run, first: Slot, limits: &Limits) -> Report {
    match run.reply.and_then(|bytes| reply::call(&bytes, limits).ok_or_else(|| nonsense(first))) {
        Ok(report) => {
            Report { fuel: run.fuel, result: report.result.map_err(|failure| blame(failure, run.hungry)), ..report }
        }
        Err(failure) => Report { fuel: run.fuel, ..Report::of(Err(failure)) },
    }
}

/// What is thrown for want of memory may be anything, because there was none to make an error of.
fn blame(failure: Failure, hungry: bool) -> Failure {
    if hungry && failure.kind == Kind::Thrown {
        return Failure { kind: Kind::Memory, message: OUT_OF_MEMORY.into(), ..failure };
    }
    failure
}
