//! Runs messages and looks for faults, also in what an encoder makes of the result and with other randomness.

use runtime::{Call, CallOutcome, Function, Functions, Sandbox, Sources};

use super::{
    Fault, FaultKind,
    caller::{Caller, json},
    round_trip,
};
use crate::codec::compare::truncate;

/// Examines the messages of one codec.
pub(crate) struct Examiner<'a> {
    pub(crate) caller: Caller<'a>,
}

impl<'a> Examiner<'a> {
    pub(crate) fn new(sandbox: &'a mut Sandbox, functions: &'a Functions, sources: &'a Sources) -> Self {
        Self { caller: Caller::new(sandbox, functions, sources) }
    }

    /// Runs a message, and returns its faults. The result of `decodeDownlink` is encoded and decoded again.
    pub(crate) fn examine(&mut self, call: &Call) -> (CallOutcome, Vec<Fault>) {
        let outcome = self.caller.call(call);
        let Some(function) = call.single_function else { return (outcome, Vec::new()) };
        let mut found = self.caller.judge(function, &outcome);
        if let (Function::DecodeDownlink, [], Some(json)) = (function, found.as_slice(), json(&outcome)) {
            found = round_trip::faults(&mut self.caller, call, json);
        }
        (outcome, found)
    }

    /// The fault of a message that has another result with another seed of `Math.random`.
    pub(crate) fn random(&mut self, call: &Call, outcome: &CallOutcome) -> Option<Fault> {
        let other = self.caller.call(&Call { seed: call.seed.wrapping_add(1), ..call.clone() });
        let (one, other) = (result(outcome), result(&other));
        let message = || format!("returned {}, and {} with other random numbers", truncate(&one), truncate(&other));
        (one != other).then(|| Fault {
            summary: "returns something else each time".to_owned(),
            ..Fault::new(call.single_function.unwrap_or(Function::Decoder), FaultKind::Random, "", message())
        })
    }

    /// All faults of a message.
    pub(crate) fn all(&mut self, call: &Call) -> Vec<Fault> {
        let (outcome, mut found) = self.examine(call);
        found.extend(self.random(call, &outcome));
        found
    }

    /// The fault like `fault` that a message has.
    pub(crate) fn same(&mut self, call: &Call, fault: &Fault) -> Option<Fault> {
        let (outcome, found) = self.examine(call);
        match fault.kind {
            FaultKind::Random => self.random(call, &outcome),
            _ => found.into_iter().find(|other| other.is(fault)),
        }
    }

    /// Returns true if the codec has such a function.
    pub(crate) fn defines(&mut self, function: Function, call: &Call) -> bool {
        let outcome = self.caller.call(&Call { single_function: Some(function), ..call.clone() });
        !matches!(outcome.result, Err(failure) if failure.kind == runtime::FailureKind::Syntax)
    }
}

/// A result or failure as a text that is the same for the same result.
pub(crate) fn result(outcome: &CallOutcome) -> String {
    match &outcome.result {
        Ok(_) => json(outcome).unwrap_or("undefined").to_owned(),
        Err(failure) => failure.to_string(),
    }
}
