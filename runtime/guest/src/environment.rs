//! What scripts find beside the language: `console`, a clock, random numbers, and the built-ins that codecs expect.

pub(crate) mod builtins;
pub(crate) mod clock;
mod console;

use crate::js::{Realm, Thrown, Value};
use std::ffi::CStr;

/// Installs what every script needs and removes what none may have.
pub(crate) fn prepare(realm: Realm) -> Result<(), Thrown> {
    console::install(realm)?;
    let math = realm.value_of(c"Math")?;
    math.define(realm.atom("random"), realm.function(c"random", random, 0)?)?;
    let module = realm.object()?;
    let exports = realm.object()?;
    module.set(realm.atom("exports"), exports.share(realm))?;
    realm.global().define(realm.atom("module"), module)?;
    realm.global().define(realm.atom("exports"), exports)?;
    builtins::apply_fixes(realm)?;
    realm.value_of(WARM)?;
    Ok(())
}

/// QuickJS creates built-ins on first use. This touches every one, so that all of them are part of the image.
const WARM: &CStr = c"(function () {
    const seen = new Set();
    const look = (object) => {
        if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object)) return;
        seen.add(object);
        for (const key of Reflect.ownKeys(object)) {
            const property = Reflect.getOwnPropertyDescriptor(object, key);
            look(property.value);
            look(property.get);
            look(property.set);
        }
        look(Reflect.getPrototypeOf(object));
    };
    look(globalThis);
    delete globalThis.SharedArrayBuffer;
    delete globalThis.Atomics;
})()";

fn random(realm: Realm, _: &[Value], _: i32) -> Result<Value, Thrown> {
    Ok(realm.number(clock::random()))
}
