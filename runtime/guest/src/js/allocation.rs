//! Our allocator in the form in which QuickJS takes one.
//!
//! By default QuickJS would find `malloc` by itself, but not that blocks have a size: its limit on memory would then count
//! eight bytes for each, whatever they hold.

use crate::memory;
use javy::quickjs::qjs::{self, size_t};
use std::ffi::c_void;

/// The functions that QuickJS calls for memory.
pub(super) static FUNCTIONS: qjs::JSMallocFunctions = qjs::JSMallocFunctions {
    js_calloc: Some(calloc),
    js_malloc: Some(malloc),
    js_free: Some(free),
    js_realloc: Some(realloc),
    js_malloc_usable_size: Some(usable_size),
};

unsafe extern "C" fn calloc(_: *mut c_void, count: size_t, bytes: size_t) -> *mut c_void {
    memory::calloc(count as usize, bytes as usize)
}

unsafe extern "C" fn malloc(_: *mut c_void, bytes: size_t) -> *mut c_void {
    memory::malloc(bytes as usize)
}

unsafe extern "C" fn free(_: *mut c_void, block: *mut c_void) {
    // SAFETY: QuickJS gives back what it got.
    unsafe { memory::free(block) };
}

unsafe extern "C" fn realloc(_: *mut c_void, block: *mut c_void, bytes: size_t) -> *mut c_void {
    // SAFETY: QuickJS gives what it got.
    unsafe { memory::realloc(block, bytes as usize) }
}

unsafe extern "C" fn usable_size(block: *const c_void) -> size_t {
    // SAFETY: QuickJS asks about what it got.
    unsafe { memory::malloc_usable_size(block.cast_mut()) as size_t }
}
