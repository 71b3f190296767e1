//! The current line of a running script, and where an error was thrown.

use super::realm::{Atom, Realm};
use super::value::Value;
use rquickjs_sys as qjs;
use std::ffi::c_int;

unsafe extern "C" {
    /// In `location.c`.
    fn guest_location(context: *mut qjs::JSContext, file: qjs::JSAtom, line: *mut c_int, column: *mut c_int) -> bool;

    /// In `location.c`.
    fn guest_error_stack(value: qjs::JSValue) -> qjs::JSValue;
}

/// Line and column in a source, from 1.
pub(crate) type Location = (u32, u32);

impl Realm {
    /// The position of the innermost running function of the source `file`. Only reads, so it works after a trap.
    pub(crate) fn location(self, file: Atom) -> Option<Location> {
        let (mut line, mut column) = (0, 0);
        // SAFETY: the context is never freed, and the frames that QuickJS knows are still on the stack.
        let found = unsafe { guest_location(self.raw(), file.0, &raw mut line, &raw mut column) };
        found.then_some((line.unsigned_abs(), column.unsigned_abs()))
    }
}

impl Value {
    /// The stack trace from when an error was thrown; `undefined` for any other value.
    pub(crate) fn error_stack(&self) -> Value {
        // SAFETY: the value is live, and the reference to its trace is ours.
        self.realm().own(unsafe { guest_error_stack(self.raw()) })
    }
}
