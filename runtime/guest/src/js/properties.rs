//! The properties of objects.

use super::realm::{Atom, Realm};
use super::value::{Primitive, Thrown, Value};
use rquickjs_sys as qjs;
use std::ffi::c_int;
use std::ptr;

// Defined in `fast_json.c`.
unsafe extern "C" {
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
    /// The property `name`; may call getters and proxies.
    pub(crate) fn get(&self, name: Atom) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm().result(unsafe { qjs::JS_GetProperty(self.realm().raw(), self.raw(), name.0) })
    }

    /// The element at `index`.
    pub(crate) fn at(&self, index: u32) -> Result<Value, Thrown> {
        // SAFETY: the value is live.
        self.realm().result(unsafe { qjs::JS_GetPropertyUint32(self.realm().raw(), self.raw(), index) })
    }

    /// The property `name` if it is an own data property; runs no script.
    pub(crate) fn own_plain(&self, name: Atom) -> Option<Value> {
        if self.primitive() != Primitive::Object || self.is_proxy() {
            return None;
        }
        let undefined = qjs::JS_UNDEFINED;
        let mut found = qjs::JSPropertyDescriptor { flags: 0, value: undefined, getter: undefined, setter: undefined };
        // SAFETY: the value is live; the three values of the descriptor are ours if something was found.
        let present = unsafe { qjs::JS_GetOwnProperty(self.realm().raw(), &raw mut found, self.raw(), name.0) };
        if present <= 0 {
            return None;
        }
        drop((self.realm().own(found.getter), self.realm().own(found.setter)));
        Some(self.realm().own(found.value))
    }

    /// The same for the element at `index`.
    pub(crate) fn own_plain_at(&self, index: u32) -> Option<Value> {
        // SAFETY: creates an atom that is freed below.
        let name = Atom(unsafe { qjs::JS_NewAtomUInt32(self.realm().raw(), index) });
        let element = self.own_plain(name);
        // SAFETY: created above.
        unsafe { qjs::JS_FreeAtom(self.realm().raw(), name.0) };
        element
    }

    fn is_proxy(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsProxy(self.raw()) }
    }

    /// Sets the property `name`.
    pub(crate) fn set(&self, name: Atom, value: Value) -> Result<(), Thrown> {
        // SAFETY: the value is live; the call takes over the reference of the other.
        let status = unsafe { qjs::JS_SetProperty(self.realm().raw(), self.raw(), name.0, value.into_raw()) };
        if status < 0 { Err(self.realm().thrown()) } else { Ok(()) }
    }

    /// If the object has the default prototype of its class in one of `realms`, gives it the one of `realm`. False if it
    /// has another prototype, or already has that one.
    pub(crate) fn move_to_realm(&self, realms: &[Realm], realm: Realm) -> bool {
        if self.is_proxy() {
            return false;
        }
        // SAFETY: the value is live, and no proxy, so nothing runs.
        let prototype = self.realm().own(unsafe { qjs::JS_GetPrototype(self.realm().raw(), self.raw()) });
        let target = self.class_prototype(realm);
        let is_foreign = |other: &Realm| self.class_prototype(*other).raw() == prototype.raw();
        if prototype.raw() == target.raw() || !realms.iter().any(is_foreign) {
            return false;
        }
        // SAFETY: both values are live.
        let status = unsafe { qjs::JS_SetPrototype(self.realm().raw(), self.raw(), target.raw()) };
        if status < 0 {
            // Frozen; ignore the exception.
            drop(self.realm().thrown());
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
            unsafe { qjs::JS_DefinePropertyValue(self.realm().raw(), self.raw(), name.0, value.into_raw(), flags) };
        if status < 0 { Err(self.realm().thrown()) } else { Ok(()) }
    }

    /// Removes the property `name`.
    pub(crate) fn delete(&self, name: Atom) -> Result<(), Thrown> {
        // SAFETY: the value is live.
        let status = unsafe { qjs::JS_DeleteProperty(self.realm().raw(), self.raw(), name.0, 0) };
        if status < 0 { Err(self.realm().thrown()) } else { Ok(()) }
    }

    /// The `length` of an array or array-like.
    pub(crate) fn length(&self) -> Result<i64, Thrown> {
        let mut length = 0;
        // SAFETY: the value is live.
        let status = unsafe { qjs::JS_GetLength(self.realm().raw(), self.raw(), &raw mut length) };
        if status < 0 { Err(self.realm().thrown()) } else { Ok(length) }
    }

    /// The names of the own enumerable properties, in order.
    pub(crate) fn keys(&self) -> Result<Keys, Thrown> {
        let mut keys = Keys { realm: self.realm(), table: ptr::null_mut(), length: 0 };
        let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as c_int;
        // SAFETY: the value is live; the table is ours once the call has succeeded.
        let status = unsafe {
            qjs::JS_GetOwnPropertyNames(
                self.realm().raw(),
                &raw mut keys.table,
                &raw mut keys.length,
                self.raw(),
                flags,
            )
        };
        if status < 0 { Err(self.realm().thrown()) } else { Ok(keys) }
    }

    /// True if [`Value::next_property`] returns the properties of this object in the order of `Object.keys`.
    pub(crate) fn is_plain(&self) -> bool {
        // SAFETY: an object, and live.
        self.primitive() == Primitive::Object && unsafe { airlock_is_plain(self.raw()) }
    }

    /// The first enumerable property of a plain object at index `from` or later, and the index to continue with.
    pub(crate) fn next_property(&self, from: u32) -> Option<(u32, Atom, Value)> {
        let (mut atom, mut member) = (0, qjs::JS_UNDEFINED);
        // SAFETY: the value is live, and an object; the member comes with a reference of its own.
        let next =
            unsafe { airlock_next_property(self.realm().raw(), self.raw(), from, &raw mut atom, &raw mut member) };
        (next != 0).then(|| (next, Atom(atom), self.realm().own(member)))
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
