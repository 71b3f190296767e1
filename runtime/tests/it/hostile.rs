//! Hostile functions: the cases in `README.md`, which names the tests of each.
//!
//! Functions misbehave on a message with payload 1. Whatever happens, the next message of the same application and one
//! of another application must give the correct result for the same fuel as before.

mod cpu;
mod guest;
mod inputs;
mod isolation;
mod list;
mod logs;
mod memory;
mod outputs;

use airlock_runtime::{Call, CallOutcome, EntryPoint, Failure, FailureKind, Functions, Limits, Slot, Sources, Value};

use crate::harness::{Harness, call, fields};

const ALL: &[Slot] = &Slot::ALL;
const DECODER: &[Slot] = &[Slot::Decoder];
const ENCODER: &[Slot] = &[Slot::Encoder];
/// The functions that return an object.
const MAKERS: &[Slot] = &[Slot::Decoder, Slot::Converter];
const VALIDATOR: &[Slot] = &[Slot::Validator];

/// The listed case, the functions that misbehave, their body, and the expected verdict.
type Act = (&'static str, &'static [Slot], &'static str, Verdict);

/// The expected result of an act.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// The function fails with this kind.
    Fails(FailureKind),
    /// It fails with one of these kinds, depending on the limit that it hits first.
    FailsAs(&'static [FailureKind]),
    /// The message gets these fields.
    Gives(&'static str),
    /// Either is correct; only isolation matters.
    FailsOrGives(FailureKind, &'static str),
}
use Verdict::{Fails, FailsAs, FailsOrGives, Gives};

/// Runs hostile functions next to a harmless application.
struct HostileHarness {
    harness: Harness,
    innocent: Functions,
    innocent_fuel: u64,
}

impl HostileHarness {
    fn new() -> Self {
        Self::with_limits(|_| {})
    }

    fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        let mut harness = Harness::with_limits(change);
        let innocent = harness.load(&sources(Slot::Converter, "fields.port = port; return fields;"));
        let innocent_fuel = harness.decode(&innocent, &[1]).fuel;
        Self { harness, innocent, innocent_fuel }
    }

    /// Checks the verdict of each act, and that nothing else is affected.
    fn judge(&mut self, acts: &[Act]) {
        for (case, slots, body, verdict) in acts {
            for slot in *slots {
                self.judge_one(&format!("{case}, {}: {body}", slot.name()), *slot, body, *verdict);
            }
        }
    }

    fn judge_one(&mut self, what: &str, slot: Slot, body: &str, verdict: Verdict) {
        let functions = self.harness.load(&sources(slot, body));
        let outcome = self.run(slot, &functions, 1);
        match (&outcome.result, verdict) {
            (Err(failure), Fails(kind) | FailsOrGives(kind, _)) => {
                assert!(is(failure, slot, kind), "{what}: {failure}");
            }
            (Ok(_), Gives(expected) | FailsOrGives(_, expected)) => assert_eq!(fields(&outcome), expected, "{what}"),
            (Err(failure), FailsAs(kinds)) => {
                assert!(kinds.iter().any(|kind| is(failure, slot, *kind)), "{what}: {failure}");
            }
            (result, _) => panic!("{what}: expected {verdict:?}, got {result:?}"),
        }
        self.check_next(what, slot, &functions);
        self.check_innocent(what);
    }

    /// Checks the next message of the same application.
    fn check_next(&mut self, what: &str, slot: Slot, functions: &Functions) {
        let outcome = self.run(slot, functions, 2);
        match &outcome.result {
            Ok(Value::Fields { json, .. }) => assert_eq!(json.get(), r#"{"n":2}"#, "after {what}"),
            Ok(Value::Bytes { bytes, .. }) => assert_eq!(bytes, &[2], "after {what}"),
            other => panic!("after {what}: {other:?}"),
        }
    }

    /// Checks the result and fuel of a message of the other application.
    fn check_innocent(&mut self, what: &str) {
        let outcome = self.harness.decode(&self.innocent, &[1]);
        assert_eq!(fields(&outcome), r#"{"n":1,"port":7}"#, "after {what}");
        assert_eq!(outcome.fuel, self.innocent_fuel, "after {what}");
    }

    /// Sends the number `n` through the functions.
    fn run(&mut self, slot: Slot, functions: &Functions, n: u8) -> CallOutcome {
        self.harness.sandbox.call(functions, &message(slot, n))
    }

    /// The outcome of a decoder with this body.
    fn decode(&mut self, body: &str) -> CallOutcome {
        let functions = self.harness.load(&sources(Slot::Decoder, body));
        self.run(Slot::Decoder, &functions, 1)
    }

    /// The failure of a decoder with this body.
    fn failure(&mut self, body: &str) -> Failure {
        self.decode(body).result.expect_err(body)
    }
}

/// Functions of which the one in `slot` runs `body` on a message with payload 1. Unless `slot` is the decoder, a
/// decoder before it returns the payload as `n`.
fn sources(slot: Slot, body: &str) -> Sources {
    let decoder = "function Decoder(bytes) { return { n: bytes[0] }; }".to_owned();
    match slot {
        Slot::Decoder => Sources {
            decoder: format!(
                "function Decoder(bytes, port) {{ if (bytes[0] !== 1) return {{ n: bytes[0] }}; {body}\n}}"
            ),
            ..Sources::default()
        },
        Slot::Converter => Sources {
            converter: format!("function Converter(fields, port) {{ if (fields.n !== 1) return fields; {body}\n}}"),
            decoder,
            ..Sources::default()
        },
        Slot::Validator => Sources {
            validator: format!("function Validator(fields, port) {{ if (fields.n !== 1) return true; {body}\n}}"),
            decoder,
            ..Sources::default()
        },
        Slot::Encoder => Sources {
            encoder: format!("function Encoder(fields, port) {{ if (fields.n !== 1) return [fields.n]; {body}\n}}"),
            ..Sources::default()
        },
    }
}

/// The number `n` on its way to the function in `slot`.
fn message(slot: Slot, n: u8) -> Call {
    if slot == Slot::Encoder {
        call(EntryPoint::EncodeDownlink, format!(r#"{{"n":{n}}}"#).as_bytes())
    } else {
        call(EntryPoint::Uplink, &[n])
    }
}

fn is(failure: &Failure, slot: Slot, kind: FailureKind) -> bool {
    (failure.slot, failure.kind) == (slot, kind)
}
