//! The memory functions that QuickJS calls, and the limit on the heap of scripts.
//!
//! QuickJS has its own limit, but throws a bare `null` once it has no memory left for an error object. Here the first
//! refusal releases a small reserve, which is enough for the error, its backtrace and the reply.

use crate::memory::{self, HEADER_BYTES};
use rquickjs_sys::{self as qjs, size_t};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The reserve that the first refusal releases.
const GRACE_BYTES: usize = 32 * 1024;

/// Also read by QuickJS, to decide when to collect garbage.
#[unsafe(export_name = "airlock_held_bytes")]
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX / 2);
static REFUSED: AtomicBool = AtomicBool::new(false);

/// For `JS_NewRuntime2`, which takes the runtime itself from `js_calloc`. All else QuickJS takes from the functions below
/// by name.
pub(super) static FUNCTIONS: qjs::JSMallocFunctions = qjs::JSMallocFunctions {
    js_calloc: Some(runtime),
    js_malloc: None,
    js_free: None,
    js_realloc: None,
    js_malloc_usable_size: None,
};

/// The runtime. Not on the heap: every message changes it, and here it shares a page with other static data.
static RUNTIME: Single = Single(UnsafeCell::new([0; RUNTIME_WORDS]));
const RUNTIME_WORDS: usize = 128;

struct Single(UnsafeCell<[u64; RUNTIME_WORDS]>);

// SAFETY: the guest has no threads.
unsafe impl Sync for Single {}

/// Sets the limit on the heap of scripts.
pub(super) fn set_limit(bytes: usize) {
    LIMIT_BYTES.store(bytes, Relaxed);
}

/// The size of the heap of scripts.
pub(super) fn held_bytes() -> usize {
    HELD_BYTES.load(Relaxed)
}

/// The memory that scripts may still take.
pub(super) fn left_bytes() -> usize {
    LIMIT_BYTES.load(Relaxed).saturating_sub(held_bytes())
}

/// True if scripts have exceeded the limit.
pub(super) fn has_refused() -> bool {
    REFUSED.load(Relaxed)
}

/// True if a block with `bytes` more is allowed.
fn admits(bytes: usize) -> bool {
    let limit = LIMIT_BYTES.load(Relaxed);
    if HELD_BYTES.load(Relaxed).saturating_add(bytes).saturating_add(HEADER_BYTES) <= limit {
        return true;
    }
    refuse();
    false
}

fn refuse() {
    if !REFUSED.swap(true, Relaxed) {
        LIMIT_BYTES.fetch_add(GRACE_BYTES, Relaxed);
    }
}

/// Counts an allocated block; null if the host refused more linear memory.
fn taken(block: *mut c_void) -> *mut c_void {
    if block.is_null() {
        refuse();
    } else {
        // SAFETY: the allocator has just given the block.
        HELD_BYTES.store(HELD_BYTES.load(Relaxed) + unsafe { size(block) }, Relaxed);
    }
    block
}

/// The memory that a block takes, with its header.
///
/// # Safety
///
/// The allocator has given `block`.
unsafe fn size(block: *mut c_void) -> usize {
    // SAFETY: said above.
    unsafe { memory::malloc_usable_size(block) + HEADER_BYTES }
}

#[unsafe(no_mangle)]
extern "C" fn airlock_js_calloc(count: usize, bytes: usize) -> *mut c_void {
    if admits(count.saturating_mul(bytes)) { taken(memory::calloc(count, bytes)) } else { ptr::null_mut() }
}

#[unsafe(no_mangle)]
extern "C" fn airlock_js_malloc(bytes: usize) -> *mut c_void {
    if admits(bytes) { taken(memory::malloc(bytes)) } else { ptr::null_mut() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_js_free(block: *mut c_void) {
    // SAFETY: QuickJS frees only blocks that it got from here.
    unsafe {
        HELD_BYTES.store(HELD_BYTES.load(Relaxed) - size(block), Relaxed);
        memory::free(block);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_js_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: QuickJS passes a block that it got from here, and keeps it if the call fails.
    unsafe {
        let before = size(block);
        if !admits(bytes.saturating_sub(before - HEADER_BYTES)) {
            return ptr::null_mut();
        }
        let moved = taken(memory::realloc(block, bytes));
        if !moved.is_null() {
            HELD_BYTES.store(HELD_BYTES.load(Relaxed) - before, Relaxed);
        }
        moved
    }
}

/// The place of the runtime, of which there is one; null if it does not fit, which fails the build of the guest.
unsafe extern "C" fn runtime(_: *mut c_void, count: size_t, bytes: size_t) -> *mut c_void {
    if (count * bytes) as usize <= size_of_val(&RUNTIME.0) { RUNTIME.0.get().cast() } else { ptr::null_mut() }
}
