//! Where scripts are, and where they threw.

use super::{Atom, Realm};
use crate::guest;
use javy::quickjs::qjs;
use std::ffi::c_int;

unsafe extern "C" {
    /// In `place.c`.
    fn guest_place(context: *mut qjs::JSContext, file: qjs::JSAtom, line: *mut c_int, column: *mut c_int) -> bool;
}

/// Line and column, from 1, in a text.
pub(crate) type Place = (u32, u32);

impl Realm {
    /// Where the innermost running function of the text called `file` is. Reads only, so that it may be asked after a
    /// trap.
    pub(crate) fn place(self, file: Atom) -> Option<Place> {
        let (mut line, mut column) = (0, 0);
        // SAFETY: the context lives for ever, and the frames that QuickJS knows lie on the stack above us.
        let found = unsafe { guest_place(self.raw(), file.0, &raw mut line, &raw mut column) };
        found.then_some((line.unsigned_abs(), column.unsigned_abs()))
    }
}

/// Called by QuickJS when a script throws what is no error.
#[unsafe(no_mangle)]
extern "C" fn guest_note_throw(_: *mut qjs::JSContext) {
    guest::note_throw();
}
