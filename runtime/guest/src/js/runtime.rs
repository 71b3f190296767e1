//! The QuickJS runtime: its limits, garbage collector and interrupt handler.

use super::realm::Realm;
use super::{allocation, module};
use crate::memory;
use rquickjs_sys as qjs;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicPtr};

/// The part of the C stack that scripts may use, about 400 calls deep. Scripts reach it well before the host's limit on
/// the WebAssembly stack, which would be a trap without a line number; the rest is for built-ins that do not check.
const STACK_BYTES_MAX: usize = 128 * 1024;

/// Scripts may allocate this much before garbage is collected.
pub(crate) const GARBAGE_BYTES: usize = 1 << 20;

/// The QuickJS runtime that all realms share.
#[derive(Clone, Copy)]
pub(crate) struct Runtime(NonNull<qjs::JSRuntime>);

impl Runtime {
    /// Creates the runtime. QuickJS calls `interrupt` regularly and ends the script when it returns true.
    pub(crate) fn new(interrupt: fn() -> bool) -> Option<Self> {
        // SAFETY: the functions and the opaque pointer, which is a function, are static.
        unsafe {
            let runtime = NonNull::new(qjs::JS_NewRuntime2(&raw const allocation::FUNCTIONS, ptr::null_mut()))?;
            qjs::JS_SetMaxStackSize(runtime.as_ptr(), STACK_BYTES_MAX as qjs::size_t);
            qjs::JS_SetInterruptHandler(runtime.as_ptr(), Some(call_interrupt), interrupt as *mut c_void);
            qjs::JS_SetGCThreshold(runtime.as_ptr(), qjs::size_t::MAX);
            qjs::JS_SetModuleLoaderFunc(runtime.as_ptr(), None, Some(module::load), ptr::null_mut());
            Some(Self(runtime))
        }
    }

    /// Creates a realm with all of ECMAScript and nothing else.
    pub(crate) fn new_realm(self) -> Option<Realm> {
        // SAFETY: the runtime is never freed; a context that lacks intrinsics is never used.
        unsafe {
            let context = NonNull::new(qjs::JS_NewContextRaw(self.0.as_ptr()))?;
            let raw = context.as_ptr();
            qjs::JS_AddIntrinsicRegExpCompiler(raw);
            let failures = [
                qjs::JS_AddIntrinsicBaseObjects(raw),
                qjs::JS_AddIntrinsicDate(raw),
                qjs::JS_AddIntrinsicEval(raw),
                qjs::JS_AddIntrinsicRegExp(raw),
                qjs::JS_AddIntrinsicJSON(raw),
                qjs::JS_AddIntrinsicProxy(raw),
                qjs::JS_AddIntrinsicMapSet(raw),
                qjs::JS_AddIntrinsicTypedArrays(raw),
                qjs::JS_AddIntrinsicPromise(raw),
                qjs::JS_AddIntrinsicWeakRef(raw),
            ];
            failures.iter().all(|failure| *failure == 0).then_some(Realm::of(context))
        }
    }

    /// Makes all existing objects immortal (see `quickjs.sed`); later allocations start on a fresh page.
    pub(crate) fn seal(self) {
        // SAFETY: the runtime is never freed, and everything that scripts have allocated so far lies below the end.
        unsafe {
            airlock_seal_shapes(self.0.as_ptr());
            airlock_seal(self.0.as_ptr(), memory::seal());
        }
    }

    pub(super) fn raw(self) -> *mut qjs::JSRuntime {
        self.0.as_ptr()
    }

    /// Limits the heap of all scripts together.
    pub(crate) fn set_heap_bytes_max(self, bytes: u32) {
        allocation::set_limit(bytes as usize);
    }

    /// True if scripts have exceeded their memory limit.
    pub(crate) fn has_refused_memory(self) -> bool {
        allocation::has_refused()
    }

    /// Collects garbage now, and again once scripts have allocated `garbage_bytes` more.
    pub(crate) fn collect(self, garbage_bytes: usize) {
        // SAFETY: the runtime is never freed, and no script is running.
        unsafe {
            qjs::JS_RunGC(self.0.as_ptr());
            qjs::JS_SetGCThreshold(self.0.as_ptr(), (allocation::held_bytes() + garbage_bytes) as qjs::size_t);
        }
    }
}

/// The shapes that are not in the image, by hash. This and the counter belong to `quickjs.sed`; here, they share a page
/// with other static data that messages change.
#[unsafe(export_name = "airlock_shapes")]
static SHAPES: [AtomicPtr<c_void>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];
/// The steps until scripts are asked whether to go on. QuickJS sets it with each realm.
#[unsafe(export_name = "airlock_interrupt_counter")]
static INTERRUPT_COUNTER: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    fn airlock_seal_shapes(runtime: *mut qjs::JSRuntime);
    fn airlock_seal(runtime: *mut qjs::JSRuntime, end: usize);
}

unsafe extern "C" fn call_interrupt(_: *mut qjs::JSRuntime, opaque: *mut c_void) -> c_int {
    // SAFETY: `Runtime::new` set the pointer from a function of this type.
    let interrupt = unsafe { std::mem::transmute::<*mut c_void, fn() -> bool>(opaque) };
    c_int::from(interrupt())
}
