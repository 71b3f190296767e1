//! A loaded function set, ready to be run anywhere.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::heap::Heap;
use crate::image::Image;
use crate::sources::SourcesHash;
use crate::wire::{Dialect, Slot};

/// The functions of one application after evaluation. Clones share everything.
#[derive(Clone)]
pub struct Functions {
    loaded: Arc<Loaded>,
}

struct Loaded {
    hash: SourcesHash,
    dialects: [Option<Dialect>; 4],
    fuel: u64,
    heap: Heap,
    /// The image, for as long as some sandbox has it mapped.
    image: Mutex<Weak<Image>>,
}

impl Functions {
    pub(crate) fn new(hash: SourcesHash, dialects: [Option<Dialect>; 4], fuel: u64, heap: Heap) -> Self {
        Self { loaded: Arc::new(Loaded { hash, dialects, fuel, heap, image: Mutex::default() }) }
    }

    /// The hash of the texts that these functions were loaded from.
    pub fn hash(&self) -> SourcesHash {
        self.loaded.hash
    }

    /// The calling convention of the function in `slot`; `None` where there is no function.
    pub fn dialect(&self, slot: Slot) -> Option<Dialect> {
        self.loaded.dialects[slot as usize]
    }

    /// The fuel that parsing and evaluating the texts took.
    pub fn load_fuel(&self) -> u64 {
        self.loaded.fuel
    }

    /// The bytes of memory that are kept for these functions while no message meets them.
    pub fn kept_bytes(&self) -> usize {
        self.loaded.heap.kept_bytes()
    }

    /// The function that an uplink meets first.
    pub(crate) fn first(&self) -> Slot {
        Slot::ALL.into_iter().find(|slot| self.dialect(*slot).is_some()).unwrap_or(Slot::Decoder)
    }

    /// What evaluation left.
    pub(crate) fn heap(&self) -> &Heap {
        &self.loaded.heap
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
        f.debug_struct("Functions").field("hash", &self.hash()).field("dialects", &self.loaded.dialects).finish()
    }
}
