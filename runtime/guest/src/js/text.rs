//! Strings and property names as bytes.

use super::realm::{Atom, Realm};
use super::value::{Thrown, Value};
use rquickjs_sys as qjs;
use std::ffi::c_char;
use std::ops::Deref;

// Defined in `fast_json.c`.
unsafe extern "C" {
    fn airlock_bytes_of(value: qjs::JSValue, length: *mut usize) -> *const u8;
    fn airlock_bytes_of_atom(context: *mut qjs::JSContext, atom: qjs::JSAtom, length: *mut usize) -> *const u8;
}

impl Value {
    /// The characters of a string that is stored as Latin-1.
    pub(crate) fn characters(&self) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: the value is live; its bytes stay where they are as long as it is, since no script runs meanwhile.
        unsafe { slice(airlock_bytes_of(self.raw(), &raw mut length), length) }
    }

    /// Converts to a string; may run script.
    pub(crate) fn text(&self) -> Result<Text, Thrown> {
        let mut length = 0;
        // SAFETY: the value is live.
        let start = unsafe { qjs::JS_ToCStringLen2(self.realm().raw(), &raw mut length, self.raw(), false) };
        Text::new(self.realm(), start, length as usize)
    }

    /// Converts to a string value; may run script.
    pub(crate) fn to_text(&self) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm().result(unsafe { qjs::JS_ToString(self.realm().raw(), self.raw()) })
    }
}

impl Atom {
    pub(crate) fn text(self, realm: Realm) -> Result<Text, Thrown> {
        let mut length = 0;
        // SAFETY: atoms are never freed while in use.
        let start = unsafe { qjs::JS_AtomToCStringLen(realm.raw(), &raw mut length, self.0) };
        Text::new(realm, start, length as usize)
    }

    /// The characters of the name if it is stored as Latin-1.
    pub(crate) fn characters<'a>(self, realm: Realm) -> Option<&'a [u8]> {
        let mut length = 0;
        // SAFETY: atoms are never freed or moved while in use.
        unsafe { slice(airlock_bytes_of_atom(realm.raw(), self.0, &raw mut length), length) }
    }

    /// The name as a string value.
    pub(crate) fn value(self, realm: Realm) -> Result<Value, Thrown> {
        // SAFETY: atoms are never freed while in use.
        realm.result(unsafe { qjs::JS_AtomToString(realm.raw(), self.0) })
    }
}

/// A string as UTF-8, except that a lone surrogate takes three bytes (WTF-8).
pub(crate) struct Text {
    realm: Realm,
    start: *const c_char,
    length: usize,
}

impl Text {
    fn new(realm: Realm, start: *const c_char, length: usize) -> Result<Self, Thrown> {
        if start.is_null() { Err(realm.thrown()) } else { Ok(Self { realm, start, length }) }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: QuickJS keeps `length` bytes there until they are freed.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: the bytes are ours to free.
        unsafe { qjs::JS_FreeCString(self.realm.raw(), self.start) };
    }
}

/// # Safety
///
/// `start` is null, or that of `length` bytes that live for `'a`.
unsafe fn slice<'a>(start: *const u8, length: usize) -> Option<&'a [u8]> {
    // SAFETY: said above.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, length) })
}
