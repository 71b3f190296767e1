//! Targets of fuzzing: the functions of a codec that take a payload, by port, with the messages to begin with.

use runtime::{Call, EntryPoint, Function, Functions};

use super::{FuzzPlan, random::Random};
use crate::{
    codec::{Codec, DEFAULT_TIME_MS, Example, Input, call::call, takes_bytes},
    run::fault::{Returned, caller::json, examiner::Examiner},
};

/// The port where neither examples nor the plan name any.
const PORT: u8 = 1;
/// Maximum number of messages that are kept to be changed further.
const KEPT_MAX: usize = 256;

/// A function and a port.
pub(super) struct Target {
    pub(super) function: Function,
    pub(super) port: u8,
    /// The messages of examples, with the numbers of those.
    pub(super) seeds: Vec<(usize, Call)>,
    /// Messages to change: those of examples, and those that took another path through the function.
    pub(super) kept: Vec<Call>,
}

/// The targets of a codec, in the order of its examples.
pub(super) fn targets(
    examiner: &mut Examiner<'_>,
    functions: &Functions,
    codec: &Codec,
    plan: &FuzzPlan,
) -> Vec<Target> {
    let mut targets = Vec::new();
    for function in [Function::Decoder, Function::DecodeDownlink] {
        let empty = empty(function, plan);
        if !examiner.defines(function, &empty) {
            continue;
        }
        let seeds = seeds(examiner, functions, codec, function, plan);
        let mut own: Vec<Target> = Vec::new();
        let ports = seeds.iter().map(|(_, call)| call.port).chain(plan.ports.iter().copied());
        for port in ports {
            if !own.iter().any(|target| target.port == port) {
                own.push(Target { function, port, seeds: Vec::new(), kept: Vec::new() });
            }
        }
        if own.is_empty() {
            own.push(Target { function, port: PORT, seeds: Vec::new(), kept: Vec::new() });
        }
        own.iter_mut().for_each(|target| target.begin(&seeds, &empty));
        targets.extend(own);
    }
    targets
}

fn empty(function: Function, plan: &FuzzPlan) -> Call {
    Call {
        entry_point: EntryPoint::SingleFunction,
        port: PORT,
        time_ms: plan.time_ms.unwrap_or(DEFAULT_TIME_MS),
        seed: 1,
        payload: Vec::new(),
        extra: String::new(),
        single_function: Some(function),
    }
}

/// The messages of examples for `function`, with their numbers; for `decodeDownlink` also what the encoder makes of its
/// examples.
fn seeds(
    examiner: &mut Examiner<'_>,
    functions: &Functions,
    codec: &Codec,
    function: Function,
    plan: &FuzzPlan,
) -> Vec<(usize, Call)> {
    let mut seeds = Vec::new();
    for (index, example) in codec.examples.iter().enumerate() {
        let message = Call { time_ms: plan.time_ms.unwrap_or(example.time_ms), ..call(functions, example) };
        let is_encoded = function == Function::DecodeDownlink && example.function == Function::Encoder;
        let message = match &example.input {
            Input::Bytes(_) if example.function == function && takes_bytes(function) => Some(message),
            Input::Json(_) if is_encoded => encoded(examiner, example, message),
            _ => None,
        };
        seeds.extend(message.filter(|call| call.payload.len() <= plan.length_max).map(|call| (index + 1, call)));
    }
    seeds
}

fn encoded(examiner: &mut Examiner<'_>, example: &Example, message: Call) -> Option<Call> {
    let outcome = examiner.caller.call(&message);
    let (payload, port) = json(&outcome).and_then(Returned::read)?.payload()?;
    let port = port.unwrap_or(example.port);
    Some(Call { payload, port, single_function: Some(Function::DecodeDownlink), ..message })
}

impl Target {
    /// Takes its own messages, and those of other ports if it has none.
    fn begin(&mut self, seeds: &[(usize, Call)], empty: &Call) {
        self.seeds = seeds.iter().filter(|(_, call)| call.port == self.port).cloned().collect();
        let mut first: Vec<Call> = self.seeds.iter().map(|(_, call)| call.clone()).collect();
        if first.is_empty() {
            first = seeds.iter().map(|(_, call)| Call { port: self.port, ..call.clone() }).collect();
        }
        first.push(Call { port: self.port, ..first.first().unwrap_or(empty).clone() });
        first.last_mut().into_iter().for_each(|call| call.payload.clear());
        self.kept = first;
    }

    /// Keeps a message; from some number on in place of another one that is of no example.
    pub(super) fn keep(&mut self, call: Call, random: &mut Random) {
        let first = self.seeds.len();
        if self.kept.len() < KEPT_MAX + first {
            self.kept.push(call);
        } else if let Some(old) = self.kept.get_mut(first + random.below(KEPT_MAX)) {
            *old = call;
        }
    }
}
