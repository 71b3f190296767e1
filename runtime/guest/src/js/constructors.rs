//! The values that a realm makes, among them functions of our own.

use super::realm::Realm;
use super::value::{Thrown, Value};
use rquickjs_sys as qjs;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;

/// The longest payload that [`Realm::byte_array`] converts on the stack. Not larger, because the whole buffer is
/// initialized each time and most payloads are far shorter.
const FEW_BYTES: usize = 64;

/// A native function that scripts can call. Its last argument is the number it was created with.
pub(crate) type Native = fn(Realm, &[Value], i32) -> Result<Value, Thrown>;

impl Realm {
    pub(crate) fn global(self) -> Value {
        // SAFETY: the context is never freed.
        self.own(unsafe { qjs::JS_GetGlobalObject(self.raw()) })
    }

    /// The value `undefined`.
    pub(crate) fn undefined(self) -> Value {
        self.own(qjs::JS_UNDEFINED)
    }

    /// The value `null`.
    pub(crate) fn null(self) -> Value {
        self.own(qjs::JS_NULL)
    }

    pub(crate) fn number(self, value: f64) -> Value {
        self.own(qjs::JS_NewFloat64(value))
    }

    /// True or false.
    pub(crate) fn boolean(self, value: bool) -> Value {
        self.own(if value { qjs::JS_TRUE } else { qjs::JS_FALSE })
    }

    pub(crate) fn string(self, text: &str) -> Result<Value, Thrown> {
        // SAFETY: the pointer and length are those of `text`.
        self.result(unsafe { qjs::JS_NewStringLen(self.raw(), text.as_ptr().cast::<c_char>(), text.len() as _) })
    }

    /// An object without properties.
    pub(crate) fn object(self) -> Result<Value, Thrown> {
        // SAFETY: the context is never freed.
        self.result(unsafe { qjs::JS_NewObject(self.raw()) })
    }

    pub(crate) fn date(self, time_ms: i64) -> Result<Value, Thrown> {
        // SAFETY: the context is never freed.
        self.result(unsafe { qjs::JS_NewDate(self.raw(), time_ms as f64) })
    }

    /// An ordinary array of the numbers in `bytes`.
    pub(crate) fn byte_array(self, bytes: &[u8]) -> Result<Value, Thrown> {
        let number = |byte: &u8| qjs::JS_MKVAL(qjs::JS_TAG_INT, i32::from(*byte));
        if bytes.len() > FEW_BYTES {
            return self.array(&bytes.iter().map(number).collect::<Vec<_>>());
        }
        let mut values = [qjs::JS_UNDEFINED; FEW_BYTES];
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = number(byte);
        }
        self.array(&values[..bytes.len()])
    }

    /// A `Uint8Array` with a copy of `bytes`.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<Value, Thrown> {
        // SAFETY: the pointer and length are those of `bytes`, which the call copies.
        self.result(unsafe { qjs::JS_NewUint8ArrayCopy(self.raw(), bytes.as_ptr(), bytes.len() as qjs::size_t) })
    }

    fn array(self, numbers: &[qjs::JSValue]) -> Result<Value, Thrown> {
        // SAFETY: numbers hold no references.
        self.result(unsafe { qjs::JS_NewArrayFrom(self.raw(), numbers.len() as c_int, numbers.as_ptr()) })
    }

    pub(crate) fn parse_json(self, text: &CStr) -> Result<Value, Thrown> {
        let length = text.to_bytes().len() as qjs::size_t;
        // SAFETY: the text ends in a zero byte.
        self.result(unsafe { qjs::JS_ParseJSON(self.raw(), text.as_ptr(), length, c"input".as_ptr()) })
    }

    /// A function that calls `native` with `number`.
    pub(crate) fn function(self, name: &CStr, native: Native, number: i32) -> Result<Value, Thrown> {
        let mut target = qjs::JS_MKVAL(qjs::JS_TAG_INT, native as usize as i32);
        // SAFETY: `target` is a number, copied by the call; scripts cannot reach it.
        self.result(unsafe {
            qjs::JS_NewCFunctionData2(self.raw(), Some(call_native), name.as_ptr(), 0, number, 1, &raw mut target)
        })
    }
}

unsafe extern "C" fn call_native(
    context: *mut qjs::JSContext,
    _: qjs::JSValue,
    count: c_int,
    arguments: *mut qjs::JSValue,
    number: c_int,
    target: *mut qjs::JSValue,
) -> qjs::JSValue {
    let Some(context) = NonNull::new(context) else { return qjs::JS_UNDEFINED };
    let realm = Realm::of(context);
    // SAFETY: QuickJS passes `count` live arguments; each is given a reference of its own. The target is the number
    // that `Realm::function` made from a `Native`.
    let (native, arguments) = unsafe {
        let native = std::mem::transmute::<usize, Native>(qjs::JS_VALUE_GET_INT(*target) as usize);
        let raw = std::slice::from_raw_parts(arguments, if arguments.is_null() { 0 } else { count as usize });
        (native, raw.iter().map(|value| realm.own(qjs::JS_DupValue(context.as_ptr(), *value))).collect::<Vec<_>>())
    };
    match native(realm, &arguments, number) {
        Ok(value) => value.into_raw(),
        // SAFETY: the call takes over the reference to what was thrown.
        Err(Thrown(value)) => unsafe { qjs::JS_Throw(context.as_ptr(), value.into_raw()) },
    }
}
