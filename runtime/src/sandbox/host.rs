//! Shared by all sandboxes of an engine: the compiled guest, its initial memory, the page scanner and the watchdog.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wasmtime::{Config, Engine, InstancePre, Linker, ResourceLimiter, WasmFeatures};

use crate::error::Error;
use crate::load::compiled_guest;
use crate::load::features::{self, FEATURES};
use crate::load::guest::Guest;
use crate::load::module::Module;
use crate::memory::host_memory::HostMemory;
use crate::memory::image::Image;
use crate::memory::mapping::{Baseline, GUARD_BYTES, Mapping, RESERVED_BYTES};
use crate::memory::page_scan::Scanner;
use crate::memory::reset::Reset;
use crate::memory::watchdog::Watchdog;
use crate::profile::recorder::Recorder;
use crate::settings::Settings;

/// What machine code is built in for.
#[cfg(feature = "compiler")]
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Native stack of compiled code. A thread that runs functions should have 2 MiB, the default.
const STACK_BYTES_MAX: usize = 512 * 1024;
/// The guest's one table holds the functions that it calls by pointer.
const TABLE_ELEMENTS_MAX: usize = 10_000;
/// Memories that are protected at the same time. Each takes up to 33 of the 65,530 ranges of memory that Linux lets a
/// process have by default.
const PROTECTIONS_MAX: usize = 1000;

/// The host side of an engine's sandboxes.
pub(crate) struct Host {
    pub(crate) pre: InstancePre<MemoryLimiter>,
    pub(crate) guest: Guest,
    pub(crate) memory: Arc<HostMemory>,
    pub(crate) watchdog: Watchdog,
    scanner: Option<Scanner>,
    reset: Reset,
    initial: Arc<Image>,
    protections: Arc<Semaphore>,
}

impl Host {
    /// Loads the machine code of `guest`, and starts the watchdog.
    pub(crate) fn new(settings: &Settings, reset: Reset, guest: &[u8]) -> Result<Self, Error> {
        let guest = Guest::parse(guest)?;
        let memory = Arc::new(HostMemory::default());
        let engine = Engine::new(&config(&memory)).map_err(|error| Error::Compile(error.into()))?;
        features::check(&engine)?;
        let module = compiled_guest::load(&engine, &guest.code, settings.cache_dir.as_deref())?;
        let pre = Linker::new(&engine).instantiate_pre(&module).map_err(|error| Error::Guest(error.to_string()))?;
        let tick = Duration::from_millis((settings.limits.time_ms_max / 10).clamp(1, 25));
        Ok(Self {
            pre,
            memory,
            watchdog: Watchdog::start(tick).map_err(Error::Thread)?,
            scanner: reset.scanner().map_err(Error::Memory)?,
            reset,
            protections: Arc::new(Semaphore::new(PROTECTIONS_MAX)),
            initial: Arc::new(reset.image(&guest.memory, None).map_err(Error::Memory)?),
            guest,
        })
    }

    /// Returns the way in which memories are restored after each message.
    pub(crate) fn reset(&self) -> Reset {
        self.reset
    }

    /// A permit for each memory that may be protected.
    pub(crate) fn protections(&self) -> &Arc<Semaphore> {
        &self.protections
    }

    /// The guest's initial memory, which modules are applied to.
    pub(crate) fn initial_image(&self) -> &Arc<Image> {
        &self.initial
    }

    /// Creates the initial memory with `module` applied.
    pub(crate) fn image_of(&self, module: &Module) -> io::Result<Image> {
        self.reset.image(&self.guest.memory, Some(module))
    }

    /// Reserves address space that the watchdog watches, and maps `image` into its first `len` bytes.
    pub(crate) fn map(&self, image: &Image, len: usize) -> io::Result<Arc<Mapping>> {
        let mapping = Arc::new(Mapping::reserve()?);
        mapping.map_image(image, len)?;
        self.watchdog.watch(&mapping);
        Ok(mapping)
    }

    /// This thread's page faults so far, if they can tell whether a scan is needed.
    pub(crate) fn faults(&self) -> Option<u64> {
        self.scanner.as_ref().and_then(Scanner::faults)
    }

    /// Restores `mapping` to `baseline`; `no_faults` as in [`Mapping::restore`].
    pub(crate) fn restore(&self, mapping: &Mapping, baseline: &Baseline<'_>, no_faults: bool) -> io::Result<()> {
        mapping.restore(baseline, self.reset, self.scanner.as_ref(), no_faults)
    }
}

/// The file to build in for a guest, which every processor of the target can run.
#[cfg(feature = "compiler")]
pub(crate) fn built_in_file(guest: &[u8]) -> Result<Vec<u8>, Error> {
    let mut config = config(&Arc::default());
    let engine = config.target(TARGET).and_then(|config| Engine::new(config));
    compiled_guest::built_in_file(&engine.map_err(|error| Error::Compile(error.into()))?, &Guest::parse(guest)?.code)
}

/// `Mapping` and `Guest` rely on these settings; everything else is off. So is the canonicalization of NaN, which takes
/// 2% of a message: QuickJS gives every NaN the same bits when it makes a value of it, so scripts see no others.
fn config(memory: &Arc<HostMemory>) -> Config {
    let mut config = Config::new();
    config
        .wasm_features(WasmFeatures::all(), false)
        .wasm_features(FEATURES, true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .memory_reservation(RESERVED_BYTES as u64)
        .memory_reservation_for_growth(0)
        .memory_guard_size(GUARD_BYTES as u64)
        .memory_may_move(false)
        .memory_init_cow(false)
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .with_host_memory(Arc::clone(memory) as _);
    config
}

/// Limits the memory of one instance and records whether the guest hit the limit.
pub(crate) struct MemoryLimiter {
    pub(crate) bytes_max: usize,
    pub(crate) has_refused: bool,
    /// Counts steps, in an engine that profiles.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.bytes_max;
        self.has_refused |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}
