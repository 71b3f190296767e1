//! The calling conventions: which names a text may define, and how each is called.

use crate::failure::Failure;
use crate::guest::Guest;
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::wire::{Dialect, Kind, Slot};
use std::ffi::CStr;

/// Where `decodeDownlink` is kept among the functions.
pub(crate) const DECODE_DOWNLINK: usize = 4;

/// A function that a text defines.
pub(crate) struct Function {
    pub(crate) slot: Slot,
    pub(crate) dialect: Dialect,
    code: Value,
    /// `undefined`, which every function gets as its `this`.
    receiver: Value,
    /// Whether the text left the globals of TTN v2 as it found them: the first, and `port`.
    pub(crate) globals: (bool, bool),
}

/// An expression that gives a function if the text defines one of this name, in whichever way.
macro_rules! candidates {
    ($($dialect:ident $name:literal),*) => {
        &[$((
            Dialect::$dialect,
            $name,
            match CStr::from_bytes_with_nul(concat!("typeof ", $name, "==='function'?", $name, ":null\0").as_bytes()) {
                Ok(expression) => expression,
                Err(_) => c"null",
            },
        )),*]
    };
}

type Candidate = (Dialect, &'static str, &'static CStr);

/// The names looked for in `slot`; where a text defines several, the first counts.
fn candidates(slot: Slot) -> &'static [Candidate] {
    const DECODER: &[Candidate] = candidates!(Ts013 "decodeUplink", V2 "Decoder", ChirpStack3 "Decode");
    const CONVERTER: &[Candidate] = candidates!(V2 "Converter");
    const VALIDATOR: &[Candidate] = candidates!(V2 "Validator");
    const ENCODER: &[Candidate] = candidates!(Ts013 "encodeDownlink", V2 "Encoder", ChirpStack3 "Encode");
    match slot {
        Slot::Decoder => DECODER,
        Slot::Converter => CONVERTER,
        Slot::Validator => VALIDATOR,
        Slot::Encoder => ENCODER,
    }
}

impl Function {
    /// Finds the function that the text of `slot` defines, of `dialect` if one is named.
    pub(crate) fn find(guest: &Guest, slot: Slot, dialect: Option<Dialect>) -> Result<Option<Self>, Thrown> {
        let realm = guest.realm(slot);
        for (candidate, _, expression) in candidates(slot) {
            if dialect.is_none_or(|dialect| dialect == *candidate)
                && let Some(function) = Self::look_up(realm, slot, *candidate, expression)?
            {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    /// Finds `decodeDownlink` in the text of `slot`.
    pub(crate) fn find_decode_downlink(guest: &Guest, slot: Slot) -> Result<Option<Self>, Thrown> {
        const NAME: &[Candidate] = candidates!(Ts013 "decodeDownlink");
        Self::look_up(guest.realm(slot), slot, Dialect::Ts013, NAME[0].2)
    }

    fn look_up(realm: Realm, slot: Slot, dialect: Dialect, expression: &CStr) -> Result<Option<Self>, Thrown> {
        let code = realm.value_of(expression)?;
        let receiver = realm.undefined();
        Ok(code.is_function().then_some(Self { slot, dialect, code, receiver, globals: (false, false) }))
    }

    /// What a text in `slot` should have defined, in words.
    pub(crate) fn expected(slot: Slot, dialect: Option<Dialect>) -> String {
        let fits = |candidate: &&Candidate| dialect.is_none_or(|dialect| dialect == candidate.0);
        let names: Vec<String> = candidates(slot).iter().filter(fits).map(|(_, name, _)| format!("`{name}`")).collect();
        let names = if names.is_empty() { "any function of that dialect".to_owned() } else { names.join(", ") };
        format!("defines no function that fits; expected one named {names}")
    }

    /// The realm that the function belongs to.
    pub(crate) fn realm(&self) -> Realm {
        self.code.realm()
    }

    /// Calls it, and takes what it returns or throws.
    pub(crate) fn call<const N: usize>(&self, guest: &Guest, arguments: [&Value; N]) -> Result<Value, Failure> {
        guest.enter(self.slot);
        let returned = self.code.call(&self.receiver, arguments).map_err(|thrown| self.threw(guest, &thrown))?;
        if returned.is_promise() {
            return Err(Failure::output(self.slot, "must return a value, not a promise"));
        }
        Ok(returned)
    }

    /// The failure for something thrown on behalf of this function.
    pub(crate) fn threw(&self, guest: &Guest, thrown: &Thrown) -> Failure {
        Failure::thrown(guest, self.slot, Kind::Thrown, thrown)
    }

    /// Refuses a result that is no object: arrays, functions, promises and primitives.
    pub(crate) fn require_object(&self, value: &Value, what: &str) -> Result<(), Failure> {
        match describe(value) {
            "an object" => Ok(()),
            found => Err(Failure::output(self.slot, format!("{what}, got {found}"))),
        }
    }
}

/// The type of a value, for messages.
pub(crate) fn describe(value: &Value) -> &'static str {
    match value.primitive() {
        Primitive::Undefined => "undefined",
        Primitive::Null => "null",
        Primitive::Bool(_) => "a boolean",
        Primitive::Int(_) | Primitive::Float(_) => "a number",
        Primitive::Text => "a string",
        Primitive::Symbol => "a symbol",
        Primitive::BigInt => "a BigInt",
        Primitive::Object if value.is_array() => "an array",
        Primitive::Object if value.is_function() => "a function",
        Primitive::Object if value.is_promise() => "a promise",
        Primitive::Object => "an object",
    }
}
