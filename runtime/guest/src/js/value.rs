//! Values, their types, and exceptions.

use super::realm::Realm;
use rquickjs_sys as qjs;
use std::ffi::c_int;

/// A reference to a JavaScript value.
pub(crate) struct Value {
    realm: Realm,
    raw: qjs::JSValue,
}

/// A value that a script threw.
pub(crate) struct Thrown(pub(crate) Value);

/// The type of a value, with the value itself if it fits in a register.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Primitive {
    Undefined,
    Null,
    Bool(bool),
    Int(i32),
    Float(f64),
    Text,
    Symbol,
    BigInt,
    Object,
}

impl Realm {
    /// Takes ownership of one reference to `raw`.
    pub(super) fn own(self, raw: qjs::JSValue) -> Value {
        Value { realm: self, raw }
    }

    /// Takes ownership of a result of QuickJS: a value, or the marker of an exception.
    pub(super) fn result(self, raw: qjs::JSValue) -> Result<Value, Thrown> {
        if raw == qjs::JS_EXCEPTION { Err(self.thrown()) } else { Ok(self.own(raw)) }
    }

    /// Takes the pending exception.
    pub(super) fn thrown(self) -> Thrown {
        // SAFETY: the context is never freed.
        Thrown(self.own(unsafe { qjs::JS_GetException(self.raw()) }))
    }
}

impl Value {
    /// The value without a reference of its own.
    pub(super) fn raw(&self) -> qjs::JSValue {
        self.raw
    }

    pub(super) fn into_raw(self) -> qjs::JSValue {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    pub(crate) fn realm(&self) -> Realm {
        self.realm
    }

    /// A second reference to the value, for use in `realm`.
    pub(crate) fn share(&self, realm: Realm) -> Self {
        // SAFETY: adds the reference that the new value owns; all realms share one runtime.
        realm.own(unsafe { qjs::JS_DupValue(realm.raw(), self.raw) })
    }

    /// Leaks the value: the host restores the memory anyway, so freeing everything it refers to would be wasted work.
    pub(crate) fn leak(&self) {
        std::mem::forget(self.share(self.realm));
    }

    pub(crate) fn primitive(&self) -> Primitive {
        // SAFETY: these only look at the bits of the value.
        unsafe {
            match qjs::JS_VALUE_GET_NORM_TAG(self.raw) {
                qjs::JS_TAG_OBJECT => Primitive::Object,
                qjs::JS_TAG_INT => Primitive::Int(qjs::JS_VALUE_GET_INT(self.raw)),
                qjs::JS_TAG_FLOAT64 => Primitive::Float(qjs::JS_VALUE_GET_FLOAT64(self.raw)),
                qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => Primitive::Text,
                qjs::JS_TAG_BOOL => Primitive::Bool(qjs::JS_VALUE_GET_BOOL(self.raw)),
                qjs::JS_TAG_NULL => Primitive::Null,
                qjs::JS_TAG_SYMBOL => Primitive::Symbol,
                qjs::JS_TAG_BIG_INT | qjs::JS_TAG_SHORT_BIG_INT => Primitive::BigInt,
                _ => Primitive::Undefined,
            }
        }
    }

    /// Returns true if QuickJS ran out of memory while it created the value.
    pub(crate) fn is_missing(&self) -> bool {
        self.raw == qjs::JS_UNINITIALIZED
    }

    /// A number that identifies a live object.
    pub(crate) fn identity(&self) -> u64 {
        self.raw
    }

    /// True if it can be called.
    pub(crate) fn is_function(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsFunction(self.realm.raw(), self.raw) }
    }

    /// True if it is an array, or a proxy of one.
    pub(crate) fn is_array(&self) -> bool {
        // SAFETY: the value is live, and a proxy keeps its target alive.
        unsafe {
            let mut raw = self.raw;
            while qjs::JS_IsProxy(raw) {
                let target = qjs::JS_GetProxyTarget(self.realm.raw(), raw);
                qjs::JS_FreeValue(self.realm.raw(), target);
                raw = target;
            }
            qjs::JS_IsArray(raw)
        }
    }

    pub(crate) fn is_typed_array(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_GetTypedArrayType(self.raw) >= 0 }
    }

    /// A copy of the bytes of a `Uint8Array` or a subclass of it.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut length: qjs::size_t = 0;
        // SAFETY: the value is live; no script runs that could change the bytes until they are copied.
        unsafe {
            if qjs::JS_GetTypedArrayType(self.raw) != qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8 as c_int {
                return None;
            }
            let start = qjs::JS_GetUint8Array(self.realm.raw(), &raw mut length, self.raw);
            if start.is_null() {
                // Its buffer is detached; ignore the exception.
                drop(self.realm.thrown());
                return None;
            }
            Some(std::slice::from_raw_parts(start, length as usize).to_vec())
        }
    }

    pub(crate) fn is_promise(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsPromise(self.raw) }
    }

    pub(crate) fn is_error(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsError(self.raw) }
    }

    /// The number of its internal class; 0 if it is not an object.
    pub(crate) fn class(&self) -> u32 {
        // SAFETY: the value is live.
        unsafe { qjs::JS_GetClassID(self.raw) }
    }

    pub(crate) fn call<const N: usize>(&self, this: &Value, arguments: [&Value; N]) -> Result<Value, Thrown> {
        let mut raw = arguments.map(|argument| argument.raw);
        // SAFETY: function, receiver and arguments are live until the call is over.
        let returned = unsafe { qjs::JS_Call(self.realm.raw(), self.raw, this.raw, N as c_int, raw.as_mut_ptr()) };
        self.realm.result(returned)
    }

    /// Converts to a number; may run script.
    pub(crate) fn to_number(&self) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm.result(unsafe { qjs::JS_ToNumber(self.realm.raw(), self.raw) })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: releases the one reference that the value owns; primitives without a reference count have none.
        unsafe {
            if qjs::JS_VALUE_HAS_REF_COUNT(self.raw) {
                qjs::JS_FreeValue(self.realm.raw(), self.raw);
            }
        }
    }
}

impl Thrown {
    /// True if it is the interruption of a script that used up its fuel.
    pub(crate) fn is_interruption(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsUncatchableError(self.0.raw) }
    }
}
