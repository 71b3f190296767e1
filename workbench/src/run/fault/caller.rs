//! Calls the functions of a codec.

use runtime::{Call, CallOutcome, Dialect, Function, Functions, Sandbox, Sources, Value};

use super::{Fault, faults};
use crate::codec::call::dialect;

/// Runs the functions of one codec, and counts what that takes.
pub(crate) struct Caller<'a> {
    sandbox: &'a mut Sandbox,
    functions: &'a Functions,
    sources: &'a Sources,
    /// Calls so far.
    pub(crate) calls: u64,
    /// Fuel of all calls so far.
    pub(crate) fuel: u64,
}

impl<'a> Caller<'a> {
    pub(super) fn new(sandbox: &'a mut Sandbox, functions: &'a Functions, sources: &'a Sources) -> Self {
        Self { sandbox, functions, sources, calls: 0, fuel: 0 }
    }

    pub(crate) fn call(&mut self, call: &Call) -> CallOutcome {
        let outcome = self.sandbox.call(self.functions, call);
        self.calls += 1;
        self.fuel = self.fuel.saturating_add(outcome.fuel);
        outcome
    }

    /// Returns the faults in an outcome by itself.
    pub(super) fn judge(&self, function: Function, outcome: &CallOutcome) -> Vec<Fault> {
        faults(dialect(self.functions, function).unwrap_or(Dialect::Ts013), function, outcome, self.sources)
    }
}

/// The JSON of a result.
pub(crate) fn json(outcome: &CallOutcome) -> Option<&str> {
    match &outcome.result {
        Ok(Value::Returned { json }) => json.as_ref().map(|json| json.get()),
        _ => None,
    }
}
