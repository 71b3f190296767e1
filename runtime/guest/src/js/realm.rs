//! A realm: one global object with its own set of built-ins; and the names of properties.

use rquickjs_sys as qjs;
use std::ffi::c_char;
use std::ptr::NonNull;

/// A global object with its own built-ins; functions of one realm do not see the globals of another.
#[derive(Clone, Copy)]
pub(crate) struct Realm(NonNull<qjs::JSContext>);

/// A property name (QuickJS atom) that is never freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Atom(pub(super) qjs::JSAtom);

impl Realm {
    pub(super) fn of(context: NonNull<qjs::JSContext>) -> Self {
        Self(context)
    }

    pub(super) fn raw(self) -> *mut qjs::JSContext {
        self.0.as_ptr()
    }

    /// The property name `text`; never freed.
    pub(crate) fn atom(self, text: &str) -> Atom {
        // SAFETY: the pointer and length are those of `text`.
        Atom(unsafe { qjs::JS_NewAtomLen(self.raw(), text.as_ptr().cast::<c_char>(), text.len() as _) })
    }
}
