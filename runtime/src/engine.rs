//! The engine loads function sets and creates sandboxes for them.

#[cfg(test)]
mod hostile_guest;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use crate::contract::failure::Failure;
use crate::contract::refused_import;
use crate::contract::reply;
use crate::contract::sources::{Sources, SourcesHash};
use crate::contract::wire::{FailureKind, Slot};
use crate::error::{Error, ModuleError};
use crate::functions::{Functions, Origin};
use crate::limits::Limits;
use crate::load::module::{Metadata, Module};
use crate::load::module_cache::ModuleCache;
use crate::memory::reset::Reset;
use crate::profile::instrument;
use crate::sandbox::Sandbox;
#[cfg(feature = "compiler")]
use crate::sandbox::host;
use crate::sandbox::host::Host;
use crate::sandbox::instance::{Instance, Operation, Task, deadline};
use crate::settings::Settings;

/// The guest, as `runtime/guest/build.sh` built it. It imports nothing, so other engines can run it, too.
// Of a constant, each crate that uses it would have a copy in the program.
pub static GUEST: &[u8] = include_bytes!("../guest.wasm");

/// Loads function sets and creates sandboxes for them. One per process is enough.
pub struct Engine {
    host: Arc<Host>,
    cache: ModuleCache,
    settings: Settings,
    limits: Arc<Limits>,
}

impl Engine {
    /// Loads the guest's machine code, and probes what the kernel supports.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_reset(settings, Reset::probe())
    }

    /// An engine whose sandboxes can also count the cost of each step of a script, for [`Sandbox::call_recorded`].
    /// Messages use the same fuel there, but take many times as long.
    pub fn profiling(settings: &Settings) -> Result<Self, Error> {
        // Its guest is another one, so neither cache may be shared.
        let cache_dir = settings.cache_dir.as_ref().map(|dir| dir.join("profiling"));
        let settings = Settings { cache_dir, cache_bytes_max: 0, ..settings.clone() };
        Self::build(&settings, Reset::probe(), &instrument::instrument(GUEST)?)
    }

    /// An engine with a given way to restore memories, which the system must support. For tests and benchmarks.
    #[doc(hidden)]
    pub fn with_reset(settings: &Settings, reset: Reset) -> Result<Self, Error> {
        Self::build(settings, reset, GUEST)
    }

    /// The files to build in for a guest: `guest-x86_64.bin` and `counting-guest-x86_64.bin`. For the guest's build.
    #[cfg(feature = "compiler")]
    #[doc(hidden)]
    pub fn built_in_files(guest: &[u8]) -> Result<[Vec<u8>; 2], Error> {
        Ok([host::built_in_file(guest)?, host::built_in_file(&instrument::instrument(guest)?)?])
    }

    /// An engine with another guest, which only builds with a compiler can run. For tests and benchmarks.
    #[doc(hidden)]
    pub fn with_guest(settings: &Settings, guest: &[u8]) -> Result<Self, Error> {
        Self::build(settings, Reset::probe(), guest)
    }

    pub(crate) fn build(settings: &Settings, reset: Reset, guest: &[u8]) -> Result<Self, Error> {
        settings.check().map_err(Error::Settings)?;
        let host = Arc::new(Host::new(settings, reset, guest)?);
        let cache = ModuleCache::open(settings.cache_dir.as_deref(), settings.cache_bytes_max)?;
        tracing::info!(reset = reset.name(), "sandboxes are ready");
        if reset != Reset::PageScan {
            tracing::warn!(
                reset = reset.name(),
                "the kernel cannot report changed pages (PAGEMAP_SCAN), so every message takes longer"
            );
        }
        Ok(Self { host, cache, settings: settings.clone(), limits: Arc::new(settings.limits.clone()) })
    }

    /// Returns the way in which memories are restored after each message.
    pub fn reset(&self) -> Reset {
        self.host.reset()
    }

    /// The SHA-256 of the guest. Another guest charges other fuel.
    pub fn guest_digest(&self) -> [u8; 32] {
        self.host.guest.digest
    }

    /// The settings of this engine.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The limits of function sets that have no limits of their own.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// Creates a sandbox for one thread. It takes memory only once it is used.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox::new(Arc::clone(&self.host), &self.settings)
    }

    /// Loads a function set from the cache, or evaluates its sources in a sandbox and caches the result.
    ///
    /// Blocks the calling thread for up to [`Limits::load_time_ms_max`]; the thread needs 2 MiB of stack.
    pub fn load(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        self.load_hashed(sources, sources.hash(), limits, true)
    }

    /// Loads a function set without adding it to the cache. For tests.
    #[doc(hidden)]
    pub fn load_uncached(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        self.load_hashed(sources, sources.hash(), limits, false)
    }

    /// Loads a function set whose sources have this hash; `is_cached` says whether to add it to the cache.
    pub(crate) fn load_hashed(
        &self,
        sources: &Sources,
        hash: SourcesHash,
        limits: &Arc<Limits>,
        is_cached: bool,
    ) -> Result<Functions, Failure> {
        check_lengths(sources, limits)?;
        let hash = hash.with(limits);
        let cached = self.cache.get(hash, Module::bytes_max(limits), |bytes| self.verify(bytes, limits, Some(hash)));
        let functions = cached.map_or_else(|| self.evaluate(sources, hash, limits), Ok)?;
        if is_cached && functions.is_new() {
            self.cache.insert(functions.hash(), functions.module_bytes());
        }
        Ok(functions)
    }

    /// Reads the bytes of [`Functions::module_bytes`] from an engine with the same guest and key.
    pub fn read(&self, module: &[u8], limits: &Arc<Limits>) -> Result<Functions, ModuleError> {
        self.verify(module.into(), limits, None)
    }

    fn evaluate(&self, sources: &Sources, hash: SourcesHash, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        let mut instance = self.new_instance().map_err(|error| Failure::no_sandbox(Slot::Decoder, &error))?;
        let request = sources.load_request(limits);
        let task = Task {
            operation: Operation::Load,
            request: request.as_bytes(),
            limits,
            fuel: limits.load_fuel,
            deadline: deadline(Instant::now(), limits.load_time_ms_max),
            timed: false,
            recorder: Cell::default(),
        };
        let run = instance.run(&self.host, &task, false);
        let loaded = reply::load(&run.reply?, limits).ok_or_else(|| Failure::malformed_reply(Slot::Decoder))?;
        let dialects = loaded.map_err(|failure| refused_import::locate(failure, sources))?;
        let guest = &self.host.guest;
        let metadata = Metadata { guest: guest.digest, hash, dialects, fuel: run.fuel };
        let module = Module::diff(guest, instance.memory(), &metadata, self.cache.key())
            .map_err(|error| Failure::no_sandbox(Slot::Decoder, &error))?;
        let (kept, kept_max) = (module.changed_bytes(), limits.kept_bytes_max);
        let functions = Functions::new(module, Arc::clone(limits), Origin::Evaluated);
        if kept > kept_max {
            let text = format!("leaves {kept} bytes behind when it is evaluated, {kept_max} are allowed");
            return Err(Failure::new(functions.first_slot(), FailureKind::Memory, text));
        }
        Ok(functions)
    }

    /// Checks that a module is authentic, intact, for this guest, within its limits, and has the expected hash.
    fn verify(
        &self,
        bytes: Box<[u8]>,
        limits: &Arc<Limits>,
        expected: Option<SourcesHash>,
    ) -> Result<Functions, ModuleError> {
        let module = Module::read(bytes, self.cache.key(), limits)?;
        module.check_fits(&self.host.guest, limits)?;
        if expected.is_some_and(|hash| hash != module.metadata().hash) {
            return Err(ModuleError::OtherFunctions);
        }
        Ok(Functions::new(module, Arc::clone(limits), Origin::Read))
    }

    fn new_instance(&self) -> Result<Instance, Error> {
        let image = self.host.initial_image();
        let mapping = self.host.map(image, image.len()).map_err(Error::Memory)?;
        Instance::start(&self.host, &mapping, image.len())
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
