//! What the host and the guest share while a call runs: the fuel that is left, and which function runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// The running slot, 255 between calls. The host reads it at the address of the exported global of this name.
#[unsafe(export_name = "running_slot")]
static RUNNING_SLOT: AtomicU8 = AtomicU8::new(NO_SLOT);
const NO_SLOT: u8 = u8::MAX;

#[link(wasm_import_module = "airlock")]
unsafe extern "C" {
    /// The build replaces this import with a read of the fuel counter.
    #[link_name = "fuel_left"]
    safe fn metered_fuel_left() -> i64;
}

pub(crate) fn fuel_left() -> i64 {
    metered_fuel_left()
}

pub(crate) fn running_slot() -> u8 {
    RUNNING_SLOT.load(Ordering::Relaxed)
}

pub(crate) fn set_running_slot(slot: u8) {
    RUNNING_SLOT.store(slot, Ordering::Relaxed);
}

/// Records that no function runs.
pub(crate) fn clear_running_slot() {
    set_running_slot(NO_SLOT);
}
