//! Runs the examples of one codec, each in a sandbox of its own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use runtime::{
    Call, Dialect, Engine, Entry, Failure, Function, Functions, Kind, Report, Sandbox, Slot, Sources, Trial,
};
use serde_json::{Map, Value};

use super::{
    codec::{Codec, Example, Expected, Input},
    compare::{cut, differences, shown},
    report::{CodecReport, ExampleReport, Loaded, Mismatch, Outcome},
    surrogates::mended,
    text::log_line,
};
use crate::terminal::inert;

/// Where `Math.random` starts in every example.
const SEED: u64 = 1;

/// Loads a codec once and runs what its examples say.
pub(super) fn check(engine: &Arc<Engine>, sandbox: &mut Sandbox, codec: &Codec) -> CodecReport {
    let sources = Sources { dialect: codec.dialect, ..Sources::whole(&codec.script) };
    let start = Instant::now();
    let functions = match engine.load(&sources, engine.limits()) {
        Ok(functions) => functions,
        Err(failure) => return CodecReport::unloadable(codec, told(&failure, &sources)),
    };
    let loaded = Loaded {
        microseconds: microseconds(start.elapsed()),
        fuel: functions.load_fuel(),
        idle_bytes: functions.kept_bytes(),
    };
    let mut rig = Rig { sandbox, functions: &functions, sources: &sources };
    rig.warm_up(codec);
    let examples = codec.examples.iter().enumerate().map(|(index, example)| rig.example(index + 1, example));
    CodecReport::new(codec, loaded, examples.collect())
}

/// A codec in its sandbox.
struct Rig<'a> {
    sandbox: &'a mut Sandbox,
    functions: &'a Functions,
    sources: &'a Sources,
}

impl Rig<'_> {
    /// The first message maps memory, which later ones do not have to: it is not timed.
    fn warm_up(&mut self, codec: &Codec) {
        let wanted = |example: &&Example| example.excluded.is_none() && !matches!(example.expected, Expected::Timeout);
        if let Some(example) = codec.examples.iter().find(wanted) {
            drop(self.run(example));
        }
    }

    fn example(&mut self, number: usize, example: &Example) -> ExampleReport {
        let mut report = ExampleReport::of(number, example);
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

    fn run(&mut self, example: &Example) -> Report {
        let (payload, extra) = self.arguments(example);
        let trial = Trial { function: example.function, extra: Value::Object(extra).to_string() };
        let (port, time_ms) = (example.port, example.time_ms);
        let call = Call { entry: Entry::Trial, port, time_ms, seed: SEED, payload, trial: Some(trial) };
        self.sandbox.call(self.functions, &call)
    }

    /// What the function gets, and what goes beside it: for ChirpStack 3 the variables alone, for TS013 everything of
    /// its input but `data`.
    fn arguments(&self, example: &Example) -> (Vec<u8>, Map<String, Value>) {
        let mut extra = example.extra.clone();
        let dialect = self.dialect(example.function);
        if dialect == Some(Dialect::ChirpStack3) {
            extra = extra.get("variables").and_then(Value::as_object).cloned().unwrap_or_default();
        }
        let payload = match &example.input {
            Input::Bytes(bytes) => bytes.clone(),
            Input::Json(Value::Object(input)) if dialect == Some(Dialect::Ts013) => {
                let mut input = input.clone();
                let fields = input.shift_remove("data").unwrap_or_default();
                extra.extend(input);
                fields.to_string().into_bytes()
            }
            Input::Json(value) => value.to_string().into_bytes(),
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

fn outcome(example: &Example, run: Report, sources: &Sources) -> Outcome {
    let got = match run.result {
        Ok(runtime::Value::Returned { json }) => json.map(|json| json.get().to_owned()),
        Ok(_) => return Outcome::Failed(Mismatch::got(example.expected.words(), "no value".to_owned())),
        Err(failure) => return failed(example, &failure, sources),
    };
    let got_text = got.as_deref().map_or_else(|| "undefined".to_owned(), cut);
    match (&example.expected, got) {
        (Expected::Unknown, got) => Outcome::Shown { result: got.unwrap_or_else(|| "undefined".to_owned()) },
        (Expected::Undefined, None) => Outcome::Passed,
        (Expected::Value(expected), Some(got)) => compare(expected, &got, example.ignores_empty),
        (expected, _) => Outcome::Failed(Mismatch::got(expected.words(), got_text)),
    }
}

fn failed(example: &Example, failure: &Failure, sources: &Sources) -> Outcome {
    let is_expected = match example.expected {
        Expected::Throws => matches!(failure.kind, Kind::Thrown | Kind::Stack),
        Expected::Timeout => matches!(failure.kind, Kind::Fuel | Kind::Time),
        _ => false,
    };
    match is_expected {
        true => Outcome::Passed,
        false => Outcome::Failed(Mismatch::failure(example.expected.words(), told(failure, sources))),
    }
}

fn compare(expected: &Value, got: &str, ignores_empty: bool) -> Outcome {
    let value: Value = match serde_json::from_str(&mended(got)) {
        Ok(value) => value,
        Err(error) => return Outcome::Failed(Mismatch::got(shown(expected), format!("{}, where {error}", cut(got)))),
    };
    let differences = differences(expected, &value, ignores_empty);
    match differences.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Failed(Mismatch { differences, ..Mismatch::got(shown(expected), cut(got)) }),
    }
}

impl Expected {
    fn words(&self) -> String {
        match self {
            Self::Value(value) => shown(value),
            Self::Undefined => "undefined".to_owned(),
            Self::Throws => "an exception".to_owned(),
            Self::Timeout => "a limit that ends it".to_owned(),
            Self::Unknown => "any result".to_owned(),
        }
    }
}

/// A failure as people read it: one sentence, and the place if it is known.
pub(crate) fn told(failure: &Failure, sources: &Sources) -> String {
    // What was thrown may have lines, which could pass for lines of ours.
    let sentence = inert(&failure.to_string());
    match failure.excerpt(sources) {
        Some(excerpt) => format!("{sentence}\n{excerpt}"),
        None => sentence,
    }
}

/// Microseconds with the nanoseconds behind the point.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}
