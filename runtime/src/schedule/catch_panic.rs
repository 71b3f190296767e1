//! Keeps a worker alive when the host has a bug.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::failure::Failure;
use crate::contract::wire::Slot;

/// Turns a panic, which would be a bug in the host, into a failure, so that the worker survives. Drops what `work`
/// held.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        tracing::error!("the sandbox host panicked; please report this bug");
        Failure::broken(Slot::Decoder, "the host has a bug")
    })
}
