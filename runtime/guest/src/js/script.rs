//! Texts of scripts, and how they are run.

use super::realm::Realm;
use super::value::{Thrown, Value};
use rquickjs_sys as qjs;
use std::ffi::{CStr, c_char, c_int};

/// A text with a zero byte behind it. Unlike a [`CStr`] it may have others: ECMAScript allows them in strings and comments.
pub(crate) struct ScriptText(Vec<u8>);

/// Where a text that ends in a zero byte starts, and its length without that.
pub(super) type Extent = (*const c_char, qjs::size_t);

/// Why a source did not run to its end.
pub(crate) enum Unevaluated {
    /// It is not a valid script, or not a valid module.
    Unreadable(Thrown),
    /// It threw while it ran.
    Threw(Thrown),
    /// It waits for a promise that nothing settles.
    Unsettled,
}

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

/// Where a constant starts, and its length.
pub(super) fn extent(text: &CStr) -> Extent {
    (text.as_ptr(), text.to_bytes().len() as qjs::size_t)
}

impl Realm {
    /// Runs `text` as a sloppy-mode script.
    pub(crate) fn run(self, text: &ScriptText, file: &CStr) -> Result<(), Unevaluated> {
        let compiled =
            self.eval(text.extent(), file, qjs::JS_EVAL_FLAG_COMPILE_ONLY).map_err(Unevaluated::Unreadable)?;
        // SAFETY: `compiled` is a script of this context, and the call takes over its reference.
        let evaluated = self.result(unsafe { qjs::JS_EvalFunction(self.raw(), compiled.into_raw()) });
        evaluated.map(drop).map_err(Unevaluated::Threw)
    }

    /// Evaluates a built-in expression.
    pub(crate) fn value_of(self, expression: &CStr) -> Result<Value, Thrown> {
        self.eval(extent(expression), c"airlock", 0)
    }

    fn eval(self, (start, length): Extent, file: &CStr, flags: u32) -> Result<Value, Thrown> {
        let flags = (qjs::JS_EVAL_TYPE_GLOBAL | flags) as c_int;
        // SAFETY: both texts end in a zero byte.
        self.result(unsafe { qjs::JS_Eval(self.raw(), start, length, file.as_ptr(), flags) })
    }
}
