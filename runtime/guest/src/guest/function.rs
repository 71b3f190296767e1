//! The functions that sources define.

use crate::js::{Realm, Value};
use crate::wire::{Dialect, Slot};

/// A function that a source defines.
pub(crate) struct Function {
    pub(crate) slot: Slot,
    pub(crate) dialect: Dialect,
    pub(crate) code: Value,
    /// `undefined`: the `this` of every call.
    pub(crate) receiver: Value,
    /// The TTN v2 globals to set before each call.
    pub(crate) globals: Untouched,
}

/// Which of the globals `payload`, `fields` and `port` a call sets: those that the source does not define itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct Untouched {
    pub(crate) payload: bool,
    pub(crate) fields: bool,
    pub(crate) port: bool,
}

impl Function {
    /// The realm that the function belongs to.
    pub(crate) fn realm(&self) -> Realm {
        self.code.realm()
    }

    /// Returns true if the function reads its input from a global.
    pub(crate) fn reads_global(&self) -> bool {
        match self.slot {
            Slot::Decoder | Slot::Encoder => self.globals.payload,
            Slot::Converter | Slot::Validator => self.globals.fields,
        }
    }
}
