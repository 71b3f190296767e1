//! The text of a script, as QuickJS reads it.

use rquickjs_sys as qjs;
use std::ffi::{CStr, c_char};

/// A text with a zero byte behind it. Unlike a [`CStr`] it may have others: ECMAScript allows them in strings and comments.
pub(crate) struct ScriptText(Vec<u8>);

/// Where a text that ends in a zero byte starts, and its length without that.
pub(super) type Extent = (*const c_char, qjs::size_t);

impl ScriptText {
    pub(crate) fn new(text: &[u8]) -> Self {
        Self([text, b"\0"].concat())
    }

    /// The text without the zero byte behind it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }

    pub(super) fn extent(&self) -> Extent {
        (self.0.as_ptr().cast(), self.as_bytes().len() as qjs::size_t)
    }
}

pub(super) fn extent(text: &CStr) -> Extent {
    (text.as_ptr(), text.to_bytes().len() as qjs::size_t)
}
