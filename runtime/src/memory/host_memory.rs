//! Gives Wasmtime a `Mapping` as the linear memory of an instance.
#![allow(unsafe_code, reason = "implements Wasmtime's memory traits with a `Mapping`")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::memory::mapping::{GUARD_BYTES, Mapping, RESERVED_BYTES};

/// Passes a mapping to the instance that the same thread is creating.
#[derive(Default)]
pub(crate) struct HostMemory {
    waiting: Mutex<HashMap<ThreadId, Arc<Mapping>>>,
}

impl HostMemory {
    /// Runs `instantiate`, which gets `mapping` as its memory.
    pub(crate) fn with<T>(&self, mapping: &Arc<Mapping>, instantiate: impl FnOnce() -> T) -> T {
        self.lock().insert(thread::current().id(), Arc::clone(mapping));
        let _offer = Offer(self);
        instantiate()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<Mapping>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws the mapping when instantiation ends, fails or panics.
struct Offer<'a>(&'a HostMemory);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&thread::current().id());
    }
}

// SAFETY: a `Mapping` reserves and guards what is requested here, which is checked, and is mapped before it is used. It
// contains the guest's data instead of zeros, because the module is compiled without its data (see `Guest`).
unsafe impl MemoryCreator for HostMemory {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if reserved != Some(RESERVED_BYTES) || guard > GUARD_BYTES {
            return Err("the engine requested other guards than a sandbox has".into());
        }
        let mapping = self.lock().remove(&thread::current().id()).ok_or("no sandbox provided a memory")?;
        Ok(Box::new(SandboxMemory { mapping, bytes: minimum }))
    }
}

/// A mapping as a Wasmtime memory.
struct SandboxMemory {
    mapping: Arc<Mapping>,
    bytes: usize,
}

// SAFETY: the base never moves, and every byte up to `byte_size` is mapped and accessible.
unsafe impl LinearMemory for SandboxMemory {
    fn byte_size(&self) -> usize {
        self.bytes
    }

    fn byte_capacity(&self) -> usize {
        RESERVED_BYTES
    }

    fn grow_to(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.mapping.grow_to(bytes)?;
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
        let (memory, mapping) = (HostMemory::default(), Arc::new(Mapping::reserve().unwrap()));
        let outcome = catch_unwind(AssertUnwindSafe(|| memory.with(&mapping, || panic!("on purpose"))));
        assert!(outcome.is_err());
        assert!(memory.lock().is_empty());
        assert_eq!(Arc::strong_count(&mapping), 1);
        assert_eq!(memory.with(&mapping, || memory.lock().len()), 1, "it still works");
    }
}
