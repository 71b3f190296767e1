//! Calls of one function, and the checks of what it returns.

use crate::failure::Failure;
use crate::guest::{Function, Guest};
use crate::js::{Primitive, Thrown, Value};
use crate::wire::FailureKind;

impl Function {
    pub(crate) fn call<const N: usize>(&self, guest: &Guest, arguments: [&Value; N]) -> Result<Value, Failure> {
        arguments.iter().for_each(|argument| argument.leak());
        guest.enter(self.slot);
        let returned = self.code.call(&self.receiver, arguments).map_err(|thrown| self.threw(guest, &thrown))?;
        if returned.is_promise() {
            return Err(Failure::output(self.slot, "must return a value, not a promise"));
        }
        Ok(returned)
    }

    pub(crate) fn threw(&self, guest: &Guest, thrown: &Thrown) -> Failure {
        Failure::thrown(guest, self.slot, FailureKind::Thrown, thrown)
    }

    /// Rejects anything but plain objects: arrays, functions, promises and primitives.
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
