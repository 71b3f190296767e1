//! The globals `payload`, `fields` and `port` of TTN v2 while a source is evaluated.

use crate::guest::{Guest, Untouched};
use crate::js::{Atom, Realm, Thrown, Value};

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
