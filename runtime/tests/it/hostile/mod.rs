//! What hostile functions do, and what must become of it: the cases of `README.md`, which says where each is tested.
//!
//! Every act is done to a message whose payload is 1. Whatever becomes of it, the next message of the same application
//! and one of another application must come out right, for the same fuel as ever.

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

/// Which functions do it.
const ALL: &[Slot] = &Slot::ALL;
const DECODER: &[Slot] = &[Slot::Decoder];
const ENCODER: &[Slot] = &[Slot::Encoder];
/// Those that return an object.
const MAKERS: &[Slot] = &[Slot::Decoder, Slot::Converter];
const VALIDATOR: &[Slot] = &[Slot::Validator];

/// The case in the list, the functions that do it, what each of them does, and what must become of it.
type Act = (&'static str, &'static [Slot], &'static str, Verdict);

/// What must become of an act.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// The function fails in this way.
    Fails(FailureKind),
    /// It fails in one of these ways: which limit it meets first is not the point.
    FailsAs(&'static [FailureKind]),
    /// The message gets these fields.
    Gives(&'static str),
    /// Either is right: what counts is that nobody else is harmed.
    FailsOrGives(FailureKind, &'static str),
}
use Verdict::{Fails, FailsAs, FailsOrGives, Gives};

/// An application with hostile functions beside one that means well.
struct Court {
    harness: Harness,
    innocent: Functions,
    innocent_fuel: u64,
}

impl Court {
    fn new() -> Self {
        Self::with_limits(|_| {})
    }

    fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        let mut harness = Harness::with_limits(change);
        let innocent = harness.load(&sources(Slot::Converter, "fields.port = port; return fields;"));
        let innocent_fuel = harness.decode(&innocent, &[1]).fuel;
        Self { harness, innocent, innocent_fuel }
    }

    /// Sees that each act comes to its verdict, and nothing else to any harm.
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

    /// The next message of the same application comes out right.
    fn check_next(&mut self, what: &str, slot: Slot, functions: &Functions) {
        let outcome = self.run(slot, functions, 2);
        match &outcome.result {
            Ok(Value::Fields { json, .. }) => assert_eq!(json.get(), r#"{"n":2}"#, "after {what}"),
            Ok(Value::Bytes { bytes, .. }) => assert_eq!(bytes, &[2], "after {what}"),
            other => panic!("after {what}: {other:?}"),
        }
    }

    /// A message of the other application comes out right, and costs what it cost before.
    fn check_innocent(&mut self, what: &str) {
        let outcome = self.harness.decode(&self.innocent, &[1]);
        assert_eq!(fields(&outcome), r#"{"n":1,"port":7}"#, "after {what}");
        assert_eq!(outcome.fuel, self.innocent_fuel, "after {what}");
    }

    /// Sends the number `n` through the functions.
    fn run(&mut self, slot: Slot, functions: &Functions, n: u8) -> CallOutcome {
        self.harness.sandbox.call(functions, &message(slot, n))
    }

    /// The outcome of a decoder that does `body`.
    fn decode(&mut self, body: &str) -> CallOutcome {
        let functions = self.harness.load(&sources(Slot::Decoder, body));
        self.run(Slot::Decoder, &functions, 1)
    }

    /// The failure of a decoder that does `body`.
    fn failure(&mut self, body: &str) -> Failure {
        self.decode(body).result.expect_err(body)
    }
}

/// Functions of which the one in `slot` does `body` to a message whose payload is 1; without a `Decoder` of its own it
/// comes after one that gives the payload as `n`.
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
