//! A loaded function set, ready to be run anywhere.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::contract::sources::SourcesHash;
use crate::contract::wire::{Dialect, Slot};
use crate::load::module::Module;
use crate::memory::image::Image;
use crate::settings::Limits;

/// The functions of one application after evaluation, and what they may use. Clones share everything.
#[derive(Clone)]
pub struct Functions {
    loaded: Arc<Loaded>,
}

struct Loaded {
    module: Module,
    limits: Arc<Limits>,
    origin: Origin,
    /// The image, for as long as some sandbox has it mapped.
    image: Mutex<Weak<Image>>,
}

/// Where a function set came from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its texts were evaluated just now.
    Evaluated,
    /// It was read, from disk or wherever it was kept.
    Read,
}

impl Functions {
    pub(crate) fn new(module: Module, limits: Arc<Limits>, origin: Origin) -> Self {
        Self { loaded: Arc::new(Loaded { module, limits, origin, image: Mutex::default() }) }
    }

    /// The hash of the texts and limits that these functions were loaded from.
    pub fn hash(&self) -> SourcesHash {
        self.loaded.module.about().hash
    }

    /// The calling convention of the function in `slot`; `None` where there is no function.
    pub fn dialect(&self, slot: Slot) -> Option<Dialect> {
        self.loaded.module.about().dialects[slot as usize]
    }

    /// The fuel that parsing and evaluating the texts took, whenever that was.
    pub fn load_fuel(&self) -> u64 {
        self.loaded.module.about().fuel
    }

    /// The part of it that was spent to make this value: nothing where the set was read and not evaluated.
    pub fn fuel_spent(&self) -> u64 {
        if self.is_new() { self.load_fuel() } else { 0 }
    }

    /// Whether it was evaluated just now, and not read from where it was kept.
    pub(crate) fn is_new(&self) -> bool {
        self.loaded.origin == Origin::Evaluated
    }

    /// What they may use, at load and in every message.
    pub fn limits(&self) -> &Limits {
        &self.loaded.limits
    }

    /// The bytes of memory that are kept for these functions while no message meets them.
    pub fn idle_bytes(&self) -> usize {
        size_of::<Loaded>() + self.loaded.module.resident_bytes()
    }

    /// What evaluation left, as a Wasm module with nothing but data: see [`Engine::read`](crate::Engine::read).
    pub fn module_bytes(&self) -> &[u8] {
        self.module().as_bytes()
    }

    /// The function that an uplink meets first.
    pub(crate) fn first(&self) -> Slot {
        Slot::ALL.into_iter().find(|slot| self.dialect(*slot).is_some()).unwrap_or(Slot::Decoder)
    }

    /// What evaluation left.
    pub(crate) fn module(&self) -> &Module {
        &self.loaded.module
    }

    /// The memory that each message starts from: the one that others map just now, or a new one by `make`.
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
            .field("dialects", &self.module().about().dialects)
            .finish()
    }
}
