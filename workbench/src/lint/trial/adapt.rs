//! Turns an example of one dialect into the same of another.

use runtime::{Dialect, Function};
use serde_json::{Value, json};

use crate::codec::{Example, Expected, Input, Tolerance, takes_bytes};

impl Example {
    /// The example for a function of the dialect `to` in place of `from`; none if it says nothing about that one.
    pub(crate) fn adapted(&self, from: Dialect, to: Dialect) -> Option<Self> {
        let is_ts013 = self.wrapped || from == Dialect::Ts013;
        match to == Dialect::Ts013 {
            _ if from == to => Some(self.clone()),
            true if is_ts013 => Some(self.clone()),
            true => self.in_ts013(),
            false if is_ts013 => self.without_ts013(),
            false => Some(self.clone()),
        }
    }

    fn in_ts013(&self) -> Option<Self> {
        let member = if takes_bytes(self.function) { "data" } else { "bytes" };
        let expected = match &self.expected {
            Expected::Value(value) => Expected::Value(json!({ member: value })),
            // What a wrapper returns for nothing is up to its author.
            Expected::Undefined => return None,
            other => other.clone(),
        };
        let input = match &self.input {
            Input::Json(fields) => Input::Json(json!({ "data": fields, "fPort": self.port })),
            bytes @ Input::Bytes(_) => bytes.clone(),
        };
        Some(Self { expected, input, tolerance: Tolerance::Empty, ..self.clone() })
    }

    fn without_ts013(&self) -> Option<Self> {
        let member = if takes_bytes(self.function) { "data" } else { "bytes" };
        if let Expected::Value(value) = &self.expected {
            let has_errors = value.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
            if has_errors || value.get(member).is_none_or(Value::is_null) {
                return None;
            }
        }
        // The port of a downlink is part of the result in TS013, and an argument in all other dialects.
        let port = match (&self.expected, self.function) {
            (Expected::Value(value), Function::Encoder) => value.get("fPort").and_then(Value::as_u64),
            _ => None,
        };
        let port = port.and_then(|port| u8::try_from(port).ok()).unwrap_or(self.port);
        (!matches!(self.expected, Expected::Undefined)).then(|| Self { wrapped: true, port, ..self.clone() })
    }
}
