//! Runs the examples of one codec, each in a fresh sandbox.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use runtime::{
    Call, CallOutcome, Dialect, Engine, EntryPoint, Failure, FailureKind, Function, Functions, Sandbox, Slot, Sources,
};
use serde_json::{Map, Value};

use super::{
    codec::{Codec, Example, Expected, Input},
    compare::{differences, to_short_json, truncate},
    report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome},
    surrogates::{mark, to_json},
    text::log_line,
};
use crate::terminal::sanitize;

/// The seed of `Math.random` in every example.
const SEED: u64 = 1;

/// Loads a codec and runs its examples.
pub(super) fn check(engine: &Arc<Engine>, sandbox: &mut Sandbox, codec: &Codec) -> CodecReport {
    let sources = Sources { dialect: codec.dialect, ..Sources::single_file(&codec.script) };
    let start = Instant::now();
    let functions = match engine.load(&sources, engine.limits()) {
        Ok(functions) => functions,
        Err(failure) => return CodecReport::unloadable(codec, describe(&failure, &sources)),
    };
    let loaded = Loaded {
        microseconds: microseconds(start.elapsed()),
        fuel: functions.load_fuel(),
        idle_bytes: functions.idle_bytes(),
    };
    let mut runner = Runner { sandbox, functions: &functions, sources: &sources };
    runner.warm_up(codec);
    let examples = codec.examples.iter().enumerate().map(|(index, example)| runner.example(index + 1, example));
    CodecReport::new(codec, loaded, examples.collect())
}

/// A loaded codec and the sandbox that runs it.
struct Runner<'a> {
    sandbox: &'a mut Sandbox,
    functions: &'a Functions,
    sources: &'a Sources,
}

impl Runner<'_> {
    /// Runs one message untimed: only the first one has to map memory.
    fn warm_up(&mut self, codec: &Codec) {
        let is_suitable =
            |example: &&Example| example.excluded.is_none() && !matches!(example.expected, Expected::Timeout);
        if let Some(example) = codec.examples.iter().find(is_suitable) {
            drop(self.run(example));
        }
    }

    fn example(&mut self, number: usize, example: &Example) -> ExampleReport {
        let mut report = ExampleReport::new(number, example);
        if let Some(excluded) = example.excluded {
            report.outcome = Outcome::Excluded { reason: excluded.name() };
            return report;
        }
        let run = self.run(example);
        report.fuel = run.fuel;
        report.microseconds = microseconds(run.elapsed);
        report.warnings.clone_from(&run.warnings);
        report.logs = run.logs.iter().map(log_line).collect();
        report.outcome = outcome(example, run, self.sources);
        report
    }

    fn run(&mut self, example: &Example) -> CallOutcome {
        let (payload, extra) = self.arguments(example);
        let (port, time_ms) = (example.port, example.time_ms);
        let call = Call {
            entry_point: EntryPoint::SingleFunction,
            port,
            time_ms,
            seed: SEED,
            payload,
            extra: to_json(&Value::Object(extra)),
            single_function: Some(example.function),
        };
        self.sandbox.call(self.functions, &call)
    }

    /// The payload, and what the function gets besides it: the members of the input object other than `data`, or for
    /// ChirpStack 3 the variables.
    fn arguments(&self, example: &Example) -> (Vec<u8>, Map<String, Value>) {
        let mut extra = example.extra.clone();
        let dialect = self.dialect(example.function);
        let payload = match &example.input {
            Input::Bytes(bytes) => bytes.clone(),
            Input::Json(Value::Object(input)) if dialect == Some(Dialect::Ts013) => {
                let mut input = input.clone();
                let fields = input.shift_remove("data").unwrap_or_default();
                extra.extend(input);
                to_json(&fields).into_bytes()
            }
            Input::Json(value) => to_json(value).into_bytes(),
        };
        (payload, extra)
    }

    fn dialect(&self, function: Function) -> Option<Dialect> {
        let slot = match function {
            Function::Decoder => Slot::Decoder,
            Function::Converter => Slot::Converter,
            Function::Validator => Slot::Validator,
            Function::Encoder => Slot::Encoder,
            Function::DecodeDownlink | Function::NormalizeUplink => return Some(Dialect::Ts013),
        };
        self.functions.dialect(slot)
    }
}

fn outcome(example: &Example, run: CallOutcome, sources: &Sources) -> Outcome {
    let got = match run.result {
        Ok(runtime::Value::Returned { json }) => json.map(|json| json.get().to_owned()),
        Ok(_) => return Outcome::Failed(Mismatch::got(example.expected.describe(), "no value".to_owned())),
        Err(failure) => return failed(example, &failure, sources),
    };
    let got_text = got.as_deref().map_or_else(|| "undefined".to_owned(), truncate);
    match (&example.expected, got) {
        (Expected::Unknown, got) => Outcome::Shown { result: got.unwrap_or_else(|| "undefined".to_owned()) },
        (Expected::Undefined, None) => Outcome::Passed,
        (Expected::Value(expected), Some(got)) => compare(expected, &got, example.ignores_empty),
        (expected, _) => Outcome::Failed(Mismatch::got(expected.describe(), got_text)),
    }
}

fn failed(example: &Example, failure: &Failure, sources: &Sources) -> Outcome {
    let is_expected = match example.expected {
        Expected::Throws => matches!(failure.kind, FailureKind::Thrown | FailureKind::Stack),
        Expected::Timeout => matches!(failure.kind, FailureKind::Fuel | FailureKind::Time),
        _ => false,
    };
    match is_expected {
        true => Outcome::Passed,
        false => Outcome::Failed(Mismatch::failure(example.expected.describe(), describe(failure, sources))),
    }
}

fn compare(expected: &Value, got: &str, ignores_empty: bool) -> Outcome {
    let value: Value = match serde_json::from_str(&mark(got)) {
        Ok(value) => value,
        Err(error) => {
            return Outcome::Failed(Mismatch::got(
                to_short_json(expected),
                format!("{}, where {error}", truncate(got)),
            ));
        }
    };
    let differences = differences(expected, &value, ignores_empty);
    match differences.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Failed(Mismatch { differences, ..Mismatch::got(to_short_json(expected), truncate(got)) }),
    }
}

impl Expected {
    fn describe(&self) -> String {
        match self {
            Self::Value(value) => to_short_json(value),
            Self::Undefined => "undefined".to_owned(),
            Self::Throws => "an exception".to_owned(),
            Self::Timeout => "a limit that ends it".to_owned(),
            Self::Unknown => "any result".to_owned(),
        }
    }
}

/// A failure for people: a sentence, then the source line if it is known.
pub(crate) fn describe(failure: &Failure, sources: &Sources) -> String {
    // A thrown text may have several lines, which could be mistaken for ours.
    let sentence = sanitize(&failure.to_string());
    match failure.excerpt(sources) {
        Some(excerpt) => format!("{sentence}\n{excerpt}"),
        None => sentence,
    }
}

/// A duration in microseconds, exact to the nanosecond.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}
