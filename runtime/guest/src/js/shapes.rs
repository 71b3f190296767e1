//! Makes the shapes of objects in advance, so that messages find them in the image.

use super::allocation;
use super::realm::{Atom, Realm};
use super::runtime::Runtime;
use rquickjs_sys as qjs;
use std::ffi::c_int;

/// Scripts that have less left of their memory get no shapes.
const MEMORY_BYTES_MIN: usize = 64 * 1024;

unsafe extern "C" {
    /// In `shapes.c`.
    fn guest_make_shapes(runtime: *mut qjs::JSRuntime, files: *const qjs::JSAtom, file_count: c_int);

    /// In `shapes.c`.
    fn guest_make_shape(context: *mut qjs::JSContext, names: *const qjs::JSAtom, count: c_int);
}

impl Runtime {
    /// Makes shapes for the objects that the functions of the sources `files` build.
    pub(crate) fn make_shapes(self, files: [Atom; 4]) {
        if allocation::left_bytes() < MEMORY_BYTES_MIN {
            return;
        }
        let files = files.map(|file| file.0);
        // SAFETY: the runtime is never freed, no script is running, and the count is that of `files`.
        unsafe { guest_make_shapes(self.raw(), files.as_ptr(), files.len() as c_int) };
    }
}

impl Realm {
    /// Makes the shapes of an object that gets properties with these names, in this order.
    pub(crate) fn make_shape<const COUNT: usize>(self, names: [Atom; COUNT]) {
        let names = names.map(|name| name.0);
        // SAFETY: the context is never freed, and the count is that of `names`.
        unsafe { guest_make_shape(self.raw(), names.as_ptr(), names.len() as c_int) };
    }
}
