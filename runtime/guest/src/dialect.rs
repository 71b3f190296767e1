//! The calling conventions: which names a text may define, and how each is called.

use crate::failure::Failure;
use crate::globals::Untouched;
use crate::guest::Guest;
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::wire::{self, Dialect, Kind, Slot};
use std::ffi::CStr;

/// A function that a text defines.
pub(crate) struct Function {
    pub(crate) slot: Slot,
    pub(crate) dialect: Dialect,
    code: Value,
    /// `undefined`, which every function gets as its `this`.
    receiver: Value,
    /// Which globals of TTN v2 it finds set.
    pub(crate) globals: Untouched,
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

/// The names of a function; where a text defines several, the first counts.
fn candidates(which: wire::Function) -> &'static [Candidate] {
    use wire::Function::{Converter, DecodeDownlink, Decoder, Encoder, NormalizeUplink, Validator};
    const DECODER: &[Candidate] = candidates!(Ts013 "decodeUplink", V2 "Decoder", ChirpStack3 "Decode");
    const CONVERTER: &[Candidate] = candidates!(V2 "Converter");
    const VALIDATOR: &[Candidate] = candidates!(V2 "Validator");
    const ENCODER: &[Candidate] = candidates!(Ts013 "encodeDownlink", V2 "Encoder", ChirpStack3 "Encode");
    const DECODE_DOWNLINK: &[Candidate] = candidates!(Ts013 "decodeDownlink");
    const NORMALIZE_UPLINK: &[Candidate] = candidates!(Ts013 "normalizeUplink");
    match which {
        Decoder => DECODER,
        Converter => CONVERTER,
        Validator => VALIDATOR,
        Encoder => ENCODER,
        DecodeDownlink => DECODE_DOWNLINK,
        NormalizeUplink => NORMALIZE_UPLINK,
    }
}

impl Function {
    /// Finds a function in the text that was evaluated in `realm`, of `dialect` if one is named.
    pub(crate) fn find(realm: Realm, which: wire::Function, dialect: Option<Dialect>) -> Result<Option<Self>, Thrown> {
        for (candidate, _, expression) in candidates(which) {
            if dialect.is_none_or(|dialect| fits(dialect, *candidate, which)) {
                let code = realm.value_of(expression)?;
                if code.is_function() {
                    let (slot, receiver) = (Self::slot_of(which), realm.undefined());
                    return Ok(Some(Self { slot, dialect: *candidate, code, receiver, globals: Untouched::default() }));
                }
            }
        }
        Ok(None)
    }

    /// The slot that is blamed for what a function does.
    pub(crate) fn slot_of(which: wire::Function) -> Slot {
        use wire::Function::{Converter, DecodeDownlink, Decoder, Encoder, NormalizeUplink, Validator};
        match which {
            Decoder | NormalizeUplink => Slot::Decoder,
            Converter => Slot::Converter,
            Validator => Slot::Validator,
            Encoder | DecodeDownlink => Slot::Encoder,
        }
    }

    /// What a text should have defined, in words.
    pub(crate) fn expected(any_of: &[wire::Function], dialect: Option<Dialect>) -> String {
        let names: Vec<String> = any_of
            .iter()
            .flat_map(|which| candidates(*which).iter().map(move |candidate| (*which, candidate)))
            .filter(|(which, candidate)| dialect.is_none_or(|dialect| fits(dialect, candidate.0, *which)))
            .map(|(_, candidate)| format!("`{}`", candidate.1))
            .collect();
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

/// Whether a function of dialect `candidate` serves where `dialect` was chosen. Converters and validators combine with
/// any decoder.
fn fits(dialect: Dialect, candidate: Dialect, which: wire::Function) -> bool {
    dialect == candidate || matches!(which, wire::Function::Converter | wire::Function::Validator)
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
