//! Lists the steps of all scripts, for a host that counts them.

use super::realm::{Atom, Realm};
use rquickjs_sys as qjs;
use std::ffi::{c_int, c_void};

/// Receives the list of steps.
pub(crate) trait StepList {
    /// The steps that follow are those of this function; its code starts at `address`.
    fn function(&mut self, file: Atom, name: Atom, address: u32);
    /// A step at `offset` in the code; after a branch, one of two steps is next.
    fn step(&mut self, offset: u32, line: u32, column: u32, is_branch: bool);
}

/// As in `steps.c`.
#[repr(C)]
struct Receiver {
    function: unsafe extern "C" fn(*mut c_void, qjs::JSAtom, qjs::JSAtom, *const u8),
    step: unsafe extern "C" fn(*mut c_void, u32, c_int, c_int, bool),
    list: *mut c_void,
}

unsafe extern "C" {
    fn guest_list_steps(runtime: *mut qjs::JSRuntime, to: *const Receiver);
}

impl Realm {
    /// Lists the steps of the functions of all realms.
    pub(crate) fn list_steps<L: StepList>(self, mut list: L) -> L {
        let receiver = Receiver { function: function::<L>, step: step::<L>, list: (&raw mut list).cast() };
        // SAFETY: the runtime is never freed, no script is running, and the list outlives the call.
        unsafe { guest_list_steps(qjs::JS_GetRuntime(self.raw()), &raw const receiver) };
        list
    }
}

unsafe extern "C" fn function<L: StepList>(list: *mut c_void, file: qjs::JSAtom, name: qjs::JSAtom, code: *const u8) {
    // SAFETY: the list that `Realm::list_steps` passed, which nothing else uses meanwhile.
    unsafe { (*list.cast::<L>()).function(Atom(file), Atom(name), code as usize as u32) };
}

unsafe extern "C" fn step<L: StepList>(list: *mut c_void, offset: u32, line: c_int, column: c_int, is_branch: bool) {
    // SAFETY: as above.
    unsafe { (*list.cast::<L>()).step(offset, line.unsigned_abs(), column.unsigned_abs(), is_branch) };
}
