//! Hands the engine the memory for an instance: a mapping of ours instead of one of its own.
#![allow(unsafe_code, reason = "promises the engine what a `Mapping` keeps")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::memory::mapping::{GUARD_BYTES, Mapping, RESERVED_BYTES};

/// Gives an instance under construction the mapping that its thread has put here.
#[derive(Default)]
pub(crate) struct Creator {
    waiting: Mutex<HashMap<ThreadId, Arc<Mapping>>>,
}

impl Creator {
    /// Runs `instantiate`, whose memory will be `mapping`.
    pub(crate) fn with<T>(&self, mapping: &Arc<Mapping>, instantiate: impl FnOnce() -> T) -> T {
        self.lock().insert(thread::current().id(), Arc::clone(mapping));
        let _offer = Offer(self);
        instantiate()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<Mapping>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mapping that waits for the thread's instance; gone when that is made, was refused, or panicked.
struct Offer<'a>(&'a Creator);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&thread::current().id());
    }
}

// SAFETY: a `Mapping` reserves and guards what is asked for here, which is checked, and is laid before it is used. It is
// not zero filled but filled with the guest's own data, because the module is compiled without it (see `Guest`).
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if reserved != Some(RESERVED_BYTES) || guard > GUARD_BYTES {
            return Err("the engine wants other guards than a sandbox has".into());
        }
        let mapping = self.lock().remove(&thread::current().id()).ok_or("no sandbox asked for a memory")?;
        Ok(Box::new(SandboxMemory { mapping, bytes: minimum }))
    }
}

/// A mapping as the engine sees it.
struct SandboxMemory {
    mapping: Arc<Mapping>,
    bytes: usize,
}

// SAFETY: the base never moves, and every byte up to `byte_size` was laid or opened.
unsafe impl LinearMemory for SandboxMemory {
    fn byte_size(&self) -> usize {
        self.bytes
    }

    fn byte_capacity(&self) -> usize {
        RESERVED_BYTES
    }

    fn grow_to(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.mapping.open_to(bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping.base()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_leaves_no_mapping_behind() {
        let (creator, mapping) = (Creator::default(), Arc::new(Mapping::reserve().unwrap()));
        let outcome = catch_unwind(AssertUnwindSafe(|| creator.with(&mapping, || panic!("on purpose"))));
        assert!(outcome.is_err());
        assert!(creator.lock().is_empty());
        assert_eq!(Arc::strong_count(&mapping), 1);
        assert_eq!(creator.with(&mapping, || creator.lock().len()), 1, "it goes on to work");
    }
}
