//! Values, their properties, and exceptions.

use super::Realm;
use rquickjs_sys as qjs;
use std::ffi::{c_char, c_int};
use std::ops::Deref;
use std::ptr;

/// A reference to a JavaScript value.
pub(crate) struct Value {
    realm: Realm,
    raw: qjs::JSValue,
}

/// A property name (QuickJS atom) that is never freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Atom(pub(super) qjs::JSAtom);

/// What a script threw.
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

// Defined in `fast_json.c`.
unsafe extern "C" {
    fn airlock_bytes_of(value: qjs::JSValue, length: *mut usize) -> *const u8;
    fn airlock_bytes_of_atom(context: *mut qjs::JSContext, atom: qjs::JSAtom, length: *mut usize) -> *const u8;
    fn airlock_is_plain(value: qjs::JSValue) -> bool;
    fn airlock_next_property(
        context: *mut qjs::JSContext,
        value: qjs::JSValue,
        from: u32,
        atom: *mut qjs::JSAtom,
        member: *mut qjs::JSValue,
    ) -> u32;
}

impl Value {
    pub(super) fn from_raw(realm: Realm, raw: qjs::JSValue) -> Self {
        Self { realm, raw }
    }

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

    /// Whether QuickJS ran out of memory while it created the value.
    pub(crate) fn is_missing(&self) -> bool {
        self.raw == qjs::JS_UNINITIALIZED
    }

    /// A number that identifies a live object.
    pub(crate) fn identity(&self) -> u64 {
        self.raw
    }

    /// Whether it can be called.
    pub(crate) fn is_function(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsFunction(self.realm.raw(), self.raw) }
    }

    /// Whether it is an array, or a proxy of one.
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

    /// The property `name`; may call getters and proxies.
    pub(crate) fn get(&self, name: Atom) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm.result(unsafe { qjs::JS_GetProperty(self.realm.raw(), self.raw, name.0) })
    }

    /// The element at `index`.
    pub(crate) fn at(&self, index: u32) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm.result(unsafe { qjs::JS_GetPropertyUint32(self.realm.raw(), self.raw, index) })
    }

    /// The property `name` if it is an own data property; runs no script.
    pub(crate) fn own_plain(&self, name: Atom) -> Option<Value> {
        if self.primitive() != Primitive::Object || self.is_proxy() {
            return None;
        }
        let undefined = qjs::JS_UNDEFINED;
        let mut found = qjs::JSPropertyDescriptor { flags: 0, value: undefined, getter: undefined, setter: undefined };
        // SAFETY: the value is live; the three values of the descriptor are ours if something was found.
        let present = unsafe { qjs::JS_GetOwnProperty(self.realm.raw(), &raw mut found, self.raw, name.0) };
        if present <= 0 {
            return None;
        }
        drop((self.realm.own(found.getter), self.realm.own(found.setter)));
        Some(self.realm.own(found.value))
    }

    /// The same for the element at `index`.
    pub(crate) fn own_plain_at(&self, index: u32) -> Option<Value> {
        // SAFETY: creates an atom that is freed below.
        let name = Atom(unsafe { qjs::JS_NewAtomUInt32(self.realm.raw(), index) });
        let element = self.own_plain(name);
        // SAFETY: created above.
        unsafe { qjs::JS_FreeAtom(self.realm.raw(), name.0) };
        element
    }

    fn is_proxy(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsProxy(self.raw) }
    }

    /// Sets the property `name`.
    pub(crate) fn set(&self, name: Atom, value: Value) -> Result<(), Thrown> {
        // SAFETY: the value is live; the call takes over the reference of the other.
        let status = unsafe { qjs::JS_SetProperty(self.realm.raw(), self.raw, name.0, value.into_raw()) };
        if status < 0 { Err(self.realm.thrown()) } else { Ok(()) }
    }

    /// If the object has the default prototype of its class in one of `realms`, gives it the one of `realm`. False if it
    /// has another prototype, or already has that one.
    pub(crate) fn move_to_realm(&self, realms: &[Realm], realm: Realm) -> bool {
        if self.is_proxy() {
            return false;
        }
        // SAFETY: the value is live, and no proxy, so nothing runs.
        let prototype = self.realm.own(unsafe { qjs::JS_GetPrototype(self.realm.raw(), self.raw) });
        let target = self.class_prototype(realm);
        let is_foreign = |other: &Realm| self.class_prototype(*other).raw == prototype.raw;
        if prototype.raw == target.raw || !realms.iter().any(is_foreign) {
            return false;
        }
        // SAFETY: both values are live.
        let status = unsafe { qjs::JS_SetPrototype(self.realm.raw(), self.raw, target.raw) };
        if status < 0 {
            // Frozen; ignore the exception.
            drop(self.realm.thrown());
        }
        status > 0
    }

    /// The default prototype of its class in `realm`.
    fn class_prototype(&self, realm: Realm) -> Value {
        // SAFETY: the class of a live value is a class of the one runtime.
        realm.own(unsafe { qjs::JS_GetClassProto(realm.raw(), self.class()) })
    }

    /// Defines the property `name`: writable, configurable, not enumerable.
    pub(crate) fn define(&self, name: Atom, value: Value) -> Result<(), Thrown> {
        let flags = (qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_WRITABLE) as c_int;
        // SAFETY: the value is live; the call takes over the reference of the other.
        let status =
            unsafe { qjs::JS_DefinePropertyValue(self.realm.raw(), self.raw, name.0, value.into_raw(), flags) };
        if status < 0 { Err(self.realm.thrown()) } else { Ok(()) }
    }

    /// Removes the property `name`.
    pub(crate) fn delete(&self, name: Atom) -> Result<(), Thrown> {
        // SAFETY: the value is live.
        let status = unsafe { qjs::JS_DeleteProperty(self.realm.raw(), self.raw, name.0, 0) };
        if status < 0 { Err(self.realm.thrown()) } else { Ok(()) }
    }

    /// The `length` of an array or array-like.
    pub(crate) fn length(&self) -> Result<i64, Thrown> {
        let mut length = 0;
        // SAFETY: the value is live.
        let status = unsafe { qjs::JS_GetLength(self.realm.raw(), self.raw, &raw mut length) };
        if status < 0 { Err(self.realm.thrown()) } else { Ok(length) }
    }

    pub(crate) fn call<const N: usize>(&self, this: &Value, arguments: [&Value; N]) -> Result<Value, Thrown> {
        let mut raw = arguments.map(|argument| argument.raw);
        // SAFETY: function, receiver and arguments are live until the call is over.
        let returned = unsafe { qjs::JS_Call(self.realm.raw(), self.raw, this.raw, N as c_int, raw.as_mut_ptr()) };
        self.realm.result(returned)
    }

    /// The names of the own enumerable properties, in order.
    pub(crate) fn keys(&self) -> Result<Keys, Thrown> {
        let mut keys = Keys { realm: self.realm, table: ptr::null_mut(), length: 0 };
        let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as c_int;
        // SAFETY: the value is live; the table is ours once the call has succeeded.
        let status = unsafe {
            qjs::JS_GetOwnPropertyNames(self.realm.raw(), &raw mut keys.table, &raw mut keys.length, self.raw, flags)
        };
        if status < 0 { Err(self.realm.thrown()) } else { Ok(keys) }
    }

    /// The characters of a string that is stored as Latin-1.
    pub(crate) fn characters(&self) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: the value is live; its bytes stay where they are as long as it is, since no script runs meanwhile.
        unsafe { slice(airlock_bytes_of(self.raw, &raw mut length), length) }
    }

    /// Whether [`Value::next_property`] returns the properties of this object in the order of `Object.keys`.
    pub(crate) fn is_plain(&self) -> bool {
        // SAFETY: an object, and live.
        self.primitive() == Primitive::Object && unsafe { airlock_is_plain(self.raw) }
    }

    /// The first enumerable property of a plain object at index `from` or later, and the index to continue with.
    pub(crate) fn next_property(&self, from: u32) -> Option<(u32, Atom, Value)> {
        let (mut atom, mut member) = (0, qjs::JS_UNDEFINED);
        // SAFETY: the value is live, and an object; the member comes with a reference of its own.
        let next = unsafe { airlock_next_property(self.realm.raw(), self.raw, from, &raw mut atom, &raw mut member) };
        (next != 0).then(|| (next, Atom(atom), self.realm.own(member)))
    }

    /// Converts to a string; may run script.
    pub(crate) fn text(&self) -> Result<Text, Thrown> {
        let mut length = 0;
        // SAFETY: the value is live.
        let start = unsafe { qjs::JS_ToCStringLen2(self.realm.raw(), &raw mut length, self.raw, false) };
        Text::new(self.realm, start, length as usize)
    }

    /// Converts to a number; may run script.
    pub(crate) fn to_number(&self) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm.result(unsafe { qjs::JS_ToNumber(self.realm.raw(), self.raw) })
    }

    /// Converts to a string value; may run script.
    pub(crate) fn to_text(&self) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm.result(unsafe { qjs::JS_ToString(self.realm.raw(), self.raw) })
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
    /// Whether it is the interruption of a script that used up its fuel.
    pub(crate) fn is_interruption(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsUncatchableError(self.0.raw) }
    }
}

/// The property names of an object.
pub(crate) struct Keys {
    realm: Realm,
    table: *mut qjs::JSPropertyEnum,
    length: u32,
}

impl Keys {
    /// The names, valid as long as `self`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Atom> + '_ {
        let length = if self.table.is_null() { 0 } else { self.length as usize };
        // SAFETY: QuickJS filled the table with `length` entries.
        (0..length).map(|index| Atom(unsafe { (*self.table.add(index)).atom }))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: the table is ours.
        unsafe { qjs::JS_FreePropertyEnum(self.realm.raw(), self.table, self.length) };
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
