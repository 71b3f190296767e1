//! The globals `payload`, `fields` and `port`, which TTN v2 set before it ran a function.

use crate::call::Call;
use crate::dialect::Function;
use crate::failure::Failure;
use crate::guest::Guest;
use crate::js::{Atom, Realm, Thrown, Value};
use crate::wire::Slot;

/// Which of the globals a call sets: those that the source does not define itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct Untouched {
    payload: bool,
    fields: bool,
    port: bool,
}

/// The placeholder globals of one source while it is evaluated.
pub(crate) struct Globals {
    realm: Realm,
    payload: Value,
    fields: Value,
    port: Value,
}

impl Globals {
    /// Defines placeholders, so that the source finds the globals while it is evaluated.
    pub(crate) fn define(guest: &Guest, realm: Realm) -> Result<Self, Thrown> {
        let (payload, fields, port) = (realm.byte_array(&[])?, realm.object()?, realm.number(0.0));
        let placed = Self { realm, payload, fields, port };
        for (name, value) in placed.named(guest) {
            realm.global().set(name, value.share(realm))?;
        }
        Ok(placed)
    }

    /// Returns the globals that the source left untouched. Removes them unless `is_v2`, in which case calls set them.
    pub(crate) fn settle(&self, guest: &Guest, is_v2: bool) -> Result<Untouched, Thrown> {
        let global = self.realm.global();
        let mut untouched = [false; 3];
        for (untouched, (name, value)) in untouched.iter_mut().zip(self.named(guest)) {
            *untouched = global.get(name)?.identity() == value.identity();
            if *untouched && !is_v2 {
                global.delete(name)?;
            }
        }
        let [payload, fields, port] = untouched;
        Ok(if is_v2 { Untouched { payload, fields, port } } else { Untouched::default() })
    }

    fn named(&self, guest: &Guest) -> [(Atom, &Value); 3] {
        let names = &guest.names;
        [(names.payload, &self.payload), (names.fields, &self.fields), (names.port, &self.port)]
    }
}

impl Untouched {
    /// Whether `function` reads its input from a global.
    pub(crate) fn subject(self, function: &Function) -> bool {
        match function.slot {
            Slot::Decoder | Slot::Encoder => self.payload,
            Slot::Converter | Slot::Validator => self.fields,
        }
    }
}

/// Sets the globals that `function` may read.
pub(crate) fn set(call: &Call<'_>, function: &Function, subject: &Value) -> Result<(), Failure> {
    let (realm, names) = (function.realm(), &call.guest.names);
    if function.globals.subject(function) {
        let name = match function.slot {
            Slot::Decoder | Slot::Encoder => names.payload,
            Slot::Converter | Slot::Validator => names.fields,
        };
        call.made(function, realm.global().set(name, subject.share(realm)))?;
    }
    if function.globals.port {
        call.made(function, realm.global().set(names.port, call.port(realm)))?;
    }
    Ok(())
}
