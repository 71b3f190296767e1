//! Runs the examples of one codec, each in a fresh sandbox.

use std::{sync::Arc, time::Instant};

use runtime::{CallOutcome, Dialect, Engine, Failure, FailureKind, Function, Functions, Sandbox, Sources};
use serde_json::{Map, Value};

use super::fault::{Fault, examiner::Examiner};
use crate::{
    codec::{
        Codec, Example, Expected, Tolerance,
        call::{call, dialect},
        compare::{Rules, compare, settled::Settled, truncate, unlisted},
        takes_bytes,
    },
    report::{CodecReport, ExampleOutcome, ExampleReport, Loaded, Mismatch, describe, log_line, microseconds},
    text::surrogates::mark,
};

/// Loads a codec and runs its examples.
pub(crate) fn run(engine: &Arc<Engine>, sandbox: &mut Sandbox, codec: &Codec, rules: Rules) -> CodecReport {
    let sources = codec.sources();
    let start = Instant::now();
    let functions = match engine.load(&sources, engine.limits()) {
        Ok(functions) => functions,
        Err(failure) => return CodecReport::unloadable(codec, describe(&failure, &sources), failure.line),
    };
    let loaded = Loaded {
        microseconds: microseconds(start.elapsed()),
        fuel: functions.load_fuel(),
        idle_bytes: functions.idle_bytes(),
    };
    let mut runner = Runner { sandbox, functions: &functions, sources: &sources, rules };
    runner.warm_up(codec);
    let examples = codec.examples.iter().enumerate().map(|(index, example)| runner.example(index + 1, example));
    CodecReport::new(codec, loaded, examples.collect())
}

/// A loaded codec and the sandbox that runs it.
struct Runner<'a> {
    sandbox: &'a mut Sandbox,
    functions: &'a Functions,
    sources: &'a Sources,
    rules: Rules,
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
            report.outcome = ExampleOutcome::Excluded { reason: excluded.name() };
            return report;
        }
        let run = self.run(example);
        let faults = if matches!(example.expected, Expected::Valid) { self.faults(example) } else { Vec::new() };
        report.fuel = run.fuel;
        report.microseconds = microseconds(run.elapsed);
        report.warnings.clone_from(&run.warnings);
        report.logs = run.logs.iter().map(log_line).collect();
        report.line = run.result.as_ref().err().and_then(|failure| failure.line);
        let returned = match &run.result {
            Ok(runtime::Value::Returned { json: Some(json) }) => Some(json.get().to_owned()),
            _ => None,
        };
        let is_whole = !example.wrapped || self.dialect(example.function) == Some(Dialect::Ts013);
        report.result = returned.clone().filter(|_| is_whole);
        report.outcome = match (&example.expected, faults.first()) {
            (Expected::Valid, None) => ExampleOutcome::Passed,
            (Expected::Valid, Some(fault)) => {
                ExampleOutcome::Failed(Mismatch::failure(example.expected.describe(), fault.message.clone()))
            }
            _ => self.outcome(example, run),
        };
        if matches!(report.outcome, ExampleOutcome::Failed(_) | ExampleOutcome::Shown { .. }) {
            report.settled = returned.and_then(|got| self.settled(example, &got));
        }
        report
    }

    /// Returns the faults that `functions fuzz` would find.
    fn faults(&mut self, example: &Example) -> Vec<Fault> {
        let call = call(self.functions, example);
        Examiner::new(self.sandbox, self.functions, self.sources).all(&call)
    }

    fn run(&mut self, example: &Example) -> CallOutcome {
        self.sandbox.call(self.functions, &call(self.functions, example))
    }

    /// Returns the value that the function itself must return, if it is not what the example states: functions of other
    /// dialects than TS013 return no object around their fields, some packages return none either, and a normalizer may
    /// return one measurement instead of a list.
    fn expected(&self, example: &Example, got: &Value) -> Option<Value> {
        let Expected::Value(Value::Object(members)) = &example.expected else { return None };
        if example.function == Function::NormalizeUplink {
            let [only] = members.get("data")?.as_array()?.as_slice() else { return None };
            let is_one = got.get("data").is_some_and(Value::is_object);
            return is_one.then(|| Value::Object(Map::from_iter([("data".to_owned(), only.clone())])));
        }
        members.get(self.inner(example, got)?).cloned()
    }

    /// The member of the object that the example states which the function returns itself, if it does.
    fn inner(&self, example: &Example, got: &Value) -> Option<&'static str> {
        if example.function == Function::NormalizeUplink {
            return None;
        }
        let is_bare =
            example.tolerance == Tolerance::Package && got.get("data").is_none() && got.get("errors").is_none();
        let is_ts013 = self.dialect(example.function) == Some(Dialect::Ts013);
        let takes_bytes = takes_bytes(example.function);
        let is_whole = !example.wrapped || is_ts013 && !(is_bare && takes_bytes);
        (!is_whole).then_some(if takes_bytes { "data" } else { "bytes" })
    }

    /// Returns the expectation of the example after an update, for a function that returned `got`.
    fn settled(&self, example: &Example, got: &str) -> Option<Settled> {
        let got: Value = serde_json::from_str(&mark(got)).ok()?;
        let got = match self.inner(example, &got) {
            None => got,
            // All else that the example states stays, because the function says nothing of it.
            Some(name) => {
                let stated =
                    if let Expected::Value(Value::Object(stated)) = &example.expected { Some(stated) } else { None };
                let mut whole = stated.cloned().unwrap_or_default();
                whole.insert(name.to_owned(), got);
                Value::Object(whole)
            }
        };
        Some(Settled::new(&example.expected, got, example.tolerance, self.rules))
    }

    fn dialect(&self, function: Function) -> Option<Dialect> {
        dialect(self.functions, function)
    }

    fn outcome(&self, example: &Example, run: CallOutcome) -> ExampleOutcome {
        let got = match run.result {
            Ok(runtime::Value::Returned { json }) => json.map(|json| json.get().to_owned()),
            Ok(_) => return ExampleOutcome::Failed(Mismatch::got(example.expected.describe(), "no value".to_owned())),
            Err(failure) => return failed(example, &failure, self.sources),
        };
        let got_text = got.as_deref().map_or_else(|| "undefined".to_owned(), truncate);
        match (&example.expected, got) {
            (Expected::Unknown, got) => ExampleOutcome::Shown { result: got.unwrap_or_else(|| "undefined".to_owned()) },
            (Expected::Undefined, None) => ExampleOutcome::Passed,
            (Expected::Value(_) | Expected::Listed(_), Some(got)) => self.compare(example, &got),
            (expected, _) => ExampleOutcome::Failed(Mismatch::got(expected.describe(), got_text)),
        }
    }

    fn compare(&self, example: &Example, got: &str) -> ExampleOutcome {
        let value: Value = match serde_json::from_str(&mark(got)) {
            Ok(value) => value,
            Err(error) => {
                let got = format!("{}, where {error}", truncate(got));
                return ExampleOutcome::Failed(Mismatch::got(example.expected.describe(), got));
            }
        };
        let differences = match (&example.expected, self.expected(example, &value)) {
            (Expected::Listed(names), _) => unlisted(names, &value, self.rules),
            (Expected::Value(_), Some(inner)) => compare(&inner, &value, example.tolerance, self.rules),
            (Expected::Value(expected), None) => compare(expected, &value, example.tolerance, self.rules),
            _ => Vec::new(),
        };
        match differences.is_empty() {
            true => ExampleOutcome::Passed,
            false => {
                let mismatch = Mismatch::got(example.expected.describe(), truncate(got));
                ExampleOutcome::Failed(Mismatch { differences, ..mismatch })
            }
        }
    }
}

fn failed(example: &Example, failure: &Failure, sources: &Sources) -> ExampleOutcome {
    let is_expected = match example.expected {
        Expected::Throws => matches!(failure.kind, FailureKind::Thrown | FailureKind::Stack),
        Expected::Timeout => matches!(failure.kind, FailureKind::Fuel | FailureKind::Time),
        _ => false,
    };
    match is_expected {
        true => ExampleOutcome::Passed,
        false => ExampleOutcome::Failed(Mismatch::failure(example.expected.describe(), describe(failure, sources))),
    }
}
