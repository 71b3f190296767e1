//! The one QuickJS runtime: its limits, its garbage collector, and the way to interrupt it.

use super::allocation;
use crate::memory;
use javy::quickjs::qjs;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

/// Part of the C stack that scripts may use: about 400 calls deep. It is reached well before the host's own limit on the
/// stack of WebAssembly, which traps and knows no line, and leaves the rest to built-ins that do not check.
const STACK_BYTES_MAX: usize = 128 * 1024;

/// The engine that all realms share.
#[derive(Clone, Copy)]
pub(crate) struct Runtime(pub(super) NonNull<qjs::JSRuntime>);

impl Runtime {
    /// Makes the runtime; `interrupt` is asked now and then whether the script must end.
    pub(crate) fn new(interrupt: fn() -> bool) -> Option<Self> {
        // SAFETY: the functions and the opaque pointer, which is a function, live for ever.
        unsafe {
            let runtime = NonNull::new(qjs::JS_NewRuntime2(&raw const allocation::FUNCTIONS, ptr::null_mut()))?;
            qjs::JS_SetMaxStackSize(runtime.as_ptr(), STACK_BYTES_MAX as qjs::size_t);
            qjs::JS_SetInterruptHandler(runtime.as_ptr(), Some(ask), interrupt as *mut c_void);
            qjs::JS_SetGCThreshold(runtime.as_ptr(), qjs::size_t::MAX);
            Some(Self(runtime))
        }
    }

    /// Makes what there is immortal, see `quickjs.sed`, and lets what comes next start on a fresh page.
    pub(crate) fn seal(self) {
        let end = memory::seal();
        // SAFETY: everything that scripts hold so far lies below `end`.
        unsafe { airlock_seal(self.0.as_ptr(), end) };
    }

    /// Bounds what scripts may hold at once.
    pub(crate) fn set_heap_bytes_max(self, bytes: u32) {
        allocation::set_limit(bytes as usize);
    }

    /// Whether scripts wanted more memory than they may have.
    pub(crate) fn has_refused_memory(self) -> bool {
        allocation::has_refused()
    }

    /// Collects garbage now, and again only when scripts have allocated `garbage_bytes` more.
    pub(crate) fn collect(self, garbage_bytes: usize) {
        // SAFETY: the runtime lives for ever, and no script is running.
        unsafe {
            qjs::JS_RunGC(self.0.as_ptr());
            qjs::JS_SetGCThreshold(self.0.as_ptr(), (allocation::held_bytes() + garbage_bytes) as qjs::size_t);
        }
    }
}

unsafe extern "C" {
    fn airlock_seal(runtime: *mut qjs::JSRuntime, end: usize);
}

unsafe extern "C" fn ask(_: *mut qjs::JSRuntime, opaque: *mut c_void) -> c_int {
    // SAFETY: `Runtime::new` set the pointer from a function of this type.
    let interrupt = unsafe { std::mem::transmute::<*mut c_void, fn() -> bool>(opaque) };
    c_int::from(interrupt())
}
