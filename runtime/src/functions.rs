//! A loaded function set.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::contract::sources::SourcesHash;
use crate::contract::wire::{Dialect, Slot};
use crate::limits::Limits;
use crate::load::module::Module;
use crate::memory::image::Image;

/// The loaded functions of one application and their limits. Cheap to clone.
#[derive(Clone)]
pub struct Functions {
    loaded: Arc<Loaded>,
}

struct Loaded {
    module: Module,
    limits: Arc<Limits>,
    origin: Origin,
    /// The image, as long as a sandbox has it mapped.
    image: Mutex<Weak<Image>>,
}

/// Origin of a function set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its sources were evaluated.
    Evaluated,
    /// It was read from the cache, or from bytes.
    Read,
}

impl Functions {
    pub(crate) fn new(module: Module, limits: Arc<Limits>, origin: Origin) -> Self {
        Self { loaded: Arc::new(Loaded { module, limits, origin, image: Mutex::default() }) }
    }

    /// The hash of the sources and limits that these functions were loaded from.
    pub fn hash(&self) -> SourcesHash {
        self.loaded.module.metadata().hash
    }

    /// The dialect of the function in `slot`; `None` if there is no function.
    pub fn dialect(&self, slot: Slot) -> Option<Dialect> {
        self.loaded.module.metadata().dialects[slot as usize]
    }

    /// The fuel that evaluating the sources took, now or earlier.
    pub fn load_fuel(&self) -> u64 {
        self.loaded.module.metadata().fuel
    }

    /// The fuel spent on creating this value: zero if the set was read and not evaluated.
    pub fn fuel_spent(&self) -> u64 {
        if self.is_new() { self.load_fuel() } else { 0 }
    }

    /// Returns true if its sources were evaluated, rather than read.
    pub(crate) fn is_new(&self) -> bool {
        self.loaded.origin == Origin::Evaluated
    }

    /// The limits for loading and for every message.
    pub fn limits(&self) -> &Limits {
        &self.loaded.limits
    }

    /// The memory that these functions take while no message runs, in bytes.
    pub fn idle_bytes(&self) -> usize {
        size_of::<Loaded>() + self.loaded.module.resident_bytes()
    }

    /// The loaded functions as a data-only Wasm module; see [`Engine::read`](crate::Engine::read).
    pub fn module_bytes(&self) -> &[u8] {
        self.module().as_bytes()
    }

    pub(crate) fn first_slot(&self) -> Slot {
        Slot::ALL.into_iter().find(|slot| self.dialect(*slot).is_some()).unwrap_or(Slot::Decoder)
    }

    pub(crate) fn module(&self) -> &Module {
        &self.loaded.module
    }

    /// The image that every message starts from: the shared one if a sandbox has it mapped, else a new one from `make`.
    pub(crate) fn image(&self, make: impl FnOnce() -> io::Result<Image>) -> io::Result<Arc<Image>> {
        let mut shared = self.loaded.image.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = shared.upgrade() {
            return Ok(image);
        }
        let image = Arc::new(make()?);
        *shared = Arc::downgrade(&image);
        Ok(image)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions")
            .field("hash", &self.hash())
            .field("dialects", &self.module().metadata().dialects)
            .finish()
    }
}
