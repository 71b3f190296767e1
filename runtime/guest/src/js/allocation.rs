//! Our allocator in the form in which QuickJS takes one, and the limit on what scripts may hold.
//!
//! QuickJS has such a limit of its own, but throws a bare `null` once there is no room left even for an error. Here the
//! first refusal frees a little more room, in which the error, its backtrace and our reply find place.

use crate::memory;
use javy::quickjs::qjs::{self, size_t};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The room that the first refusal frees.
const GRACE_BYTES: usize = 32 * 1024;

/// Read by QuickJS too, which collects garbage when this has grown enough.
#[unsafe(export_name = "airlock_held_bytes")]
static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX / 2);
static REFUSED: AtomicBool = AtomicBool::new(false);

/// What `JS_NewRuntime2` asks for; beyond the runtime itself, QuickJS calls the functions below by their names.
pub(super) static FUNCTIONS: qjs::JSMallocFunctions = qjs::JSMallocFunctions {
    js_calloc: Some(calloc),
    js_malloc: Some(malloc),
    js_free: Some(free),
    js_realloc: Some(realloc),
    js_malloc_usable_size: Some(usable_size),
};

/// Sets how much scripts may hold at once.
pub(super) fn set_limit(bytes: usize) {
    LIMIT_BYTES.store(bytes, Relaxed);
}

/// How much scripts hold.
pub(super) fn held_bytes() -> usize {
    HELD_BYTES.load(Relaxed)
}

/// Whether scripts wanted more than they may have.
pub(super) fn has_refused() -> bool {
    REFUSED.load(Relaxed)
}

/// Whether `bytes` more may be held.
fn admits(bytes: usize) -> bool {
    let limit = LIMIT_BYTES.load(Relaxed);
    if HELD_BYTES.load(Relaxed).saturating_add(bytes) <= limit {
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

/// Counts a block that QuickJS gets; there is none where the host refused more linear memory.
fn taken(block: *mut c_void) -> *mut c_void {
    if block.is_null() {
        refuse();
    } else {
        // SAFETY: the allocator has just given the block.
        HELD_BYTES.store(HELD_BYTES.load(Relaxed) + unsafe { memory::malloc_usable_size(block) }, Relaxed);
    }
    block
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
    // SAFETY: QuickJS gives back what it got.
    unsafe {
        HELD_BYTES.store(HELD_BYTES.load(Relaxed) - memory::malloc_usable_size(block), Relaxed);
        memory::free(block);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_js_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: QuickJS gives what it got; where nothing is moved the old block stays its own.
    unsafe {
        let before = memory::malloc_usable_size(block);
        if !admits(bytes.saturating_sub(before)) {
            return ptr::null_mut();
        }
        let moved = taken(memory::realloc(block, bytes));
        if !moved.is_null() {
            HELD_BYTES.store(HELD_BYTES.load(Relaxed) - before, Relaxed);
        }
        moved
    }
}

unsafe extern "C" fn calloc(_: *mut c_void, count: size_t, bytes: size_t) -> *mut c_void {
    airlock_js_calloc(count as usize, bytes as usize)
}

unsafe extern "C" fn malloc(_: *mut c_void, bytes: size_t) -> *mut c_void {
    airlock_js_malloc(bytes as usize)
}

unsafe extern "C" fn free(_: *mut c_void, block: *mut c_void) {
    // SAFETY: QuickJS gives back what it got.
    unsafe { airlock_js_free(block) }
}

unsafe extern "C" fn realloc(_: *mut c_void, block: *mut c_void, bytes: size_t) -> *mut c_void {
    // SAFETY: QuickJS gives what it got.
    unsafe { airlock_js_realloc(block, bytes as usize) }
}

unsafe extern "C" fn usable_size(block: *const c_void) -> size_t {
    // SAFETY: QuickJS asks about what it got.
    unsafe { memory::malloc_usable_size(block.cast_mut()) as size_t }
}
