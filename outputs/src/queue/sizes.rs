//! Sizes of the queues, as far as this process knows them.

use std::{
    num::NonZeroUsize,
    ops::{Add, Sub},
};

use lru::LruCache;
use parking_lot::Mutex;

use crate::destination::{Destination, Part};

/// Maximum number of queues and lists of dead letters with known sizes.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// Size of a queue, or its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// At least as much as there is, except for what other processes add.
pub(super) struct Sizes {
    /// True if other processes add messages to the same queues.
    is_shared: bool,
    known: Mutex<LruCache<(Destination, Part), CachedSize>>,
}

#[derive(Clone, Copy)]
struct CachedSize {
    size: Size,
    /// True if no message was removed since it was counted.
    is_exact: bool,
}

impl Size {
    pub(super) fn fits(self, limit: Self) -> bool {
        self.messages <= limit.messages && self.bytes <= limit.bytes
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }
}

impl Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { messages: self.messages.saturating_sub(other.messages), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

impl Sizes {
    pub(super) fn new(is_shared: bool) -> Self {
        Self { is_shared, known: Mutex::new(LruCache::new(KNOWN_MAX)) }
    }

    /// At least as much as there is; none if that is not known.
    pub(super) fn at_most(&self, destination: &Destination, part: Part) -> Option<Size> {
        self.known.lock().get(&(destination.clone(), part)).map(|known| known.size)
    }

    /// Exactly as much as there is; none if it has to be counted.
    pub(super) fn exactly(&self, destination: &Destination, part: Part) -> Option<Size> {
        let known = self.known.lock().get(&(destination.clone(), part)).copied();
        known.filter(|known| known.is_exact && !self.is_shared).map(|known| known.size)
    }

    /// Says that it is going to be counted. If some is removed meanwhile, the result is not exact.
    pub(super) fn begin_count(&self, destination: &Destination, part: Part) {
        let mut known = self.known.lock();
        // Until then nobody can rely on it.
        let unknown = CachedSize { size: Size { messages: usize::MAX / 2, bytes: usize::MAX / 2 }, is_exact: true };
        known.get_or_insert_mut((destination.clone(), part), || unknown).is_exact = true;
    }

    pub(super) fn counted(&self, destination: &Destination, part: Part, size: Size) {
        if let Some(known) = self.known.lock().get_mut(&(destination.clone(), part)) {
            known.size = size;
        }
    }

    /// Some is added with a commit that removes some, or was.
    pub(super) fn changed(&self, destination: &Destination, part: Part, added: Size, removed: Size) {
        if let Some(known) = self.known.lock().get_mut(&(destination.clone(), part)) {
            known.size = known.size + added - removed;
        }
    }

    /// Some was removed, so there is less than is known.
    pub(super) fn removed(&self, destination: &Destination, part: Part) {
        if let Some(known) = self.known.lock().get_mut(&(destination.clone(), part)) {
            known.is_exact = false;
        }
    }

    /// Nobody knows how much there is.
    pub(super) fn forget(&self, destination: &Destination, part: Part) {
        self.known.lock().pop(&(destination.clone(), part));
    }
}
