//! The engine: one compiled guest, and everything that its sandboxes share.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Config, InstancePre, Linker, OptLevel, Strategy, WasmFeatures};

use crate::contract::failure::Failure;
use crate::contract::reply;
use crate::contract::sources::{Sources, SourcesHash};
use crate::contract::wire::{FailureKind, Slot};
use crate::error::{Error, ModuleError};
use crate::functions::{Functions, Origin};
use crate::load::compiled_guest;
use crate::load::features::{self, FEATURES};
use crate::load::guest::Guest;
use crate::load::module::{About, Module};
use crate::load::module_cache::Kept;
use crate::memory::host_memory::Creator;
use crate::memory::image::Image;
use crate::memory::mapping::{GUARD_BYTES, Mapping, Pristine, RESERVED_BYTES};
use crate::memory::page_scan::Scanner;
use crate::memory::reset::Reset;
use crate::memory::watchdog::Watchdog;
use crate::sandbox::Sandbox;
use crate::sandbox::instance::{Errand, Growth, Instance, Task};
use crate::settings::{Limits, Settings};

/// The guest as it is built by `runtime/guest/build.sh`.
const GUEST: &[u8] = include_bytes!("../guest.wasm");
/// Native stack of compiled code. A thread that runs functions should have 2 MiB, the default.
const STACK_BYTES_MAX: usize = 512 * 1024;
/// Longest time limit that is honoured; keeps deadlines representable.
const TIME_MS_MAX: u64 = 3_600_000;

/// Loads function sets and makes sandboxes for them. One per process is enough.
pub struct Engine {
    pub(crate) pre: InstancePre<Growth>,
    pub(crate) guest: Guest,
    pub(crate) creator: Arc<Creator>,
    pub(crate) watchdog: Watchdog,
    scanner: Option<Scanner>,
    reset: Reset,
    /// The guest's first memory, from which function sets are loaded.
    first: Arc<Image>,
    /// Where loaded function sets are kept, and the key that they are sealed with.
    kept: Kept,
    settings: Settings,
    limits: Arc<Limits>,
}

impl Engine {
    /// Compiles the guest, or takes it from the cache, and finds out what the kernel can do.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_reset(settings, Reset::probe())
    }

    /// An engine that resets in a given way, which the system must be able to do.
    #[doc(hidden)]
    pub fn with_reset(settings: &Settings, reset: Reset) -> Result<Self, Error> {
        Self::build(settings, reset, GUEST)
    }

    /// An engine with another guest than the built-in one, to compare the two.
    #[doc(hidden)]
    pub fn with_guest(settings: &Settings, guest: &[u8]) -> Result<Self, Error> {
        Self::build(settings, Reset::probe(), guest)
    }

    pub(crate) fn build(settings: &Settings, reset: Reset, guest: &[u8]) -> Result<Self, Error> {
        settings.check().map_err(Error::Settings)?;
        let guest = Guest::parse(guest)?;
        let creator = Arc::new(Creator::default());
        let engine = wasmtime::Engine::new(&config(&creator)).map_err(|error| Error::Compile(error.into()))?;
        features::check(&engine)?;
        let module = compiled_guest::compiled(&engine, &guest.code, settings.cache_dir.as_deref())?;
        let pre = Linker::new(&engine).instantiate_pre(&module).map_err(|error| Error::Guest(error.to_string()))?;
        let tick = Duration::from_millis((settings.limits.time_ms_max / 10).clamp(1, 25));
        let kept = Kept::open(settings.cache_dir.as_deref(), settings.cache_bytes_max)?;
        tracing::info!(reset = reset.name(), "sandboxes are ready");
        if reset != Reset::PageScan {
            tracing::warn!(
                reset = reset.name(),
                "this system cannot name changed pages, so every message takes longer"
            );
        }
        Ok(Self {
            pre,
            creator,
            watchdog: Watchdog::start(tick).map_err(Error::Thread)?,
            scanner: reset.scanner().map_err(Error::Memory)?,
            reset,
            first: Arc::new(reset.image(&guest.memory, None).map_err(Error::Memory)?),
            kept,
            guest,
            settings: settings.clone(),
            limits: Arc::new(settings.limits.clone()),
        })
    }

    /// How memories are put back after each message.
    pub fn reset(&self) -> Reset {
        self.reset
    }

    /// The settings that the engine was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Instances for one thread. They take memory only once they are used.
    pub fn sandbox(self: &Arc<Self>) -> Sandbox {
        Sandbox::new(Arc::clone(self))
    }

    /// Takes a function set from where it is kept, or else parses and evaluates its texts once, in a sandbox of their own,
    /// and keeps what comes of that.
    ///
    /// Takes as long as [`Limits::load_time_ms_max`] on the calling thread, which needs 2 MiB of stack.
    pub fn load(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        let functions = self.load_uncached(sources, limits)?;
        if functions.is_new() {
            self.kept.keep(&functions);
        }
        Ok(functions)
    }

    /// The same for functions that may never be wanted again: they are not kept.
    pub fn load_uncached(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        check_lengths(sources, limits)?;
        let hash = sources.hash_with(limits);
        if let Some(functions) =
            self.kept.find(hash, Module::bytes_max(limits), |bytes| self.accept(bytes, limits, Some(hash)))
        {
            return Ok(functions);
        }
        self.evaluate(sources, hash, limits)
    }

    /// Reads what [`Functions::module_bytes`] gave to an engine with the same guest and key.
    pub fn read(&self, module: &[u8], limits: &Arc<Limits>) -> Result<Functions, ModuleError> {
        self.accept(module.into(), limits, None)
    }

    fn evaluate(&self, sources: &Sources, hash: SourcesHash, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        let mut instance = self.first_instance().map_err(|error| no_room(Slot::Decoder, &error))?;
        let request = sources.load_request(&limits.guest_limits());
        let deadline = deadline(Instant::now(), limits.load_time_ms_max);
        let (errand, request, fuel) = (Errand::Load, request.as_bytes(), limits.load_fuel);
        let run = instance.run(self, &Task { errand, request, limits, fuel, deadline, timed: false });
        let dialects = reply::load(&run.reply?, limits).ok_or_else(|| nonsense(Slot::Decoder))??;
        let about = About { guest: self.guest.digest, hash, dialects, fuel: run.fuel };
        let module = Module::between(&self.guest, instance.memory(), &about, self.kept.key())
            .map_err(|error| no_room(Slot::Decoder, &error))?;
        let (kept, kept_max) = (module.changed_bytes(), limits.kept_bytes_max);
        let functions = Functions::new(module, Arc::clone(limits), Origin::Evaluated);
        if kept > kept_max {
            let text = format!("leaves {kept} bytes behind when it is evaluated, {kept_max} are allowed");
            return Err(Failure::new(functions.first(), FailureKind::Memory, text));
        }
        Ok(functions)
    }

    /// Checks that a module is ours, whole, over this guest's memory, within its limits, and the one that was meant.
    fn accept(
        &self,
        bytes: Box<[u8]>,
        limits: &Arc<Limits>,
        meant: Option<SourcesHash>,
    ) -> Result<Functions, ModuleError> {
        let module = Module::read(bytes, self.kept.key(), limits)?;
        module.check_fits(&self.guest, limits)?;
        if meant.is_some_and(|hash| hash != module.about().hash) {
            return Err(ModuleError::OtherFunctions);
        }
        Ok(Functions::new(module, Arc::clone(limits), Origin::Read))
    }

    /// The limits of function sets that have none of their own.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// The guest's first memory, over which modules are laid.
    pub(crate) fn first_image(&self) -> Arc<Image> {
        Arc::clone(&self.first)
    }

    /// The image of `functions`, shared with every other sandbox that has it mapped.
    pub(crate) fn image(&self, functions: &Functions) -> io::Result<Arc<Image>> {
        functions.image(|| self.reset.image(&self.guest.memory, Some(functions.module())))
    }

    /// Address space that the watchdog watches, laid with `image` and zeros behind it.
    pub(crate) fn mapping(&self, image: &Image, len: usize) -> io::Result<Arc<Mapping>> {
        let mapping = Arc::new(Mapping::reserve()?);
        mapping.lay(image, len)?;
        self.watchdog.watch(&mapping);
        Ok(mapping)
    }

    /// The page faults of this thread so far, where that makes a scan unnecessary.
    pub(crate) fn faults(&self) -> Option<u64> {
        self.scanner.as_ref().and_then(Scanner::faults)
    }

    /// Makes `mapping` what `pristine` says; `still` as in [`Mapping::restore`].
    pub(crate) fn restore(&self, mapping: &Mapping, pristine: &Pristine<'_>, still: bool) -> io::Result<()> {
        mapping.restore(pristine, self.reset, self.scanner.as_ref(), still)
    }

    fn first_instance(&self) -> Result<Instance, Error> {
        let mapping = self.mapping(&self.first, self.first.len()).map_err(Error::Memory)?;
        Instance::start(self, &mapping, self.first.len())
    }
}

fn check_lengths(sources: &Sources, limits: &Limits) -> Result<(), Failure> {
    let bytes_max = limits.source_bytes_max;
    let too_long = Slot::ALL.into_iter().find(|slot| sources.text(*slot).len() > bytes_max);
    too_long.map_or(Ok(()), |slot| {
        let bytes = sources.text(slot).len();
        Err(Failure::new(slot, FailureKind::Syntax, format!("it is {bytes} bytes long, {bytes_max} are allowed")))
    })
}

/// What `Mapping` and `Guest` rely on, and nothing that costs without need.
fn config(creator: &Arc<Creator>) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
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
        .with_host_memory(Arc::clone(creator) as _);
    config
}

/// When a call that starts now has had its time.
pub(crate) fn deadline(start: Instant, time_ms_max: u64) -> Instant {
    start + Duration::from_millis(time_ms_max.min(TIME_MS_MAX))
}

/// The system gave no room for a sandbox: nobody's function is to blame, so it is logged here.
pub(crate) fn no_room(slot: Slot, error: &(dyn std::error::Error + 'static)) -> Failure {
    tracing::error!(error, "failed to make a sandbox");
    Failure::broken(slot, "there was no room for a sandbox; try again later")
}

pub(crate) fn nonsense(slot: Slot) -> Failure {
    Failure::broken(slot, "its reply made no sense")
}
