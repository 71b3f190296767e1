//! Runs a codec and its examples in our sandbox by the rules of a target.

pub(super) mod adapt;
pub(super) mod result;
pub(super) mod sandbox;

use std::{collections::BTreeMap, sync::Arc};

use runtime::{Dialect, Engine, Function, Functions, Sandbox, Sources, sanitize};
use serde_json::Value;

use self::{
    result::{FUNCTIONS, NO_FIELDS, NOTHING, NUMBERS, refused_number, wrong_result},
    sandbox::{FUNCTION, under_rules},
};
use super::{
    finding::{Finding, Level, Rule},
    target::{Entry, Shape, Target},
};
use crate::{
    codec::{Codec, Example, Expected, call::dialect, compare::Rules, takes_bytes},
    report::{ExampleOutcome, ExampleReport, Mismatch},
    run::codec,
    text::surrogates::mark,
};

/// Maximum number of findings from examples.
const FAILURES_MAX: usize = 5;

/// Result of running a codec by the rules of a target.
pub(crate) struct Trial {
    /// True if the text can be loaded.
    pub(crate) has_loaded: bool,
    /// Number of examples that have run.
    pub(crate) examples: usize,
    /// Number of examples that returned what they state.
    pub(crate) passed: usize,
    pub(crate) findings: Vec<Finding>,
}

/// A codec as it runs here, by its author's rules.
pub(crate) struct Native {
    /// The functions, or why they cannot be loaded, and the line.
    pub(crate) functions: Result<Functions, (String, Option<u32>)>,
    /// True for each example that returns what it states, in their order.
    passed: Vec<bool>,
    /// Number of examples that fail.
    pub(crate) failed: usize,
}

impl Native {
    /// The dialect of its decoder, or else of its encoder.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.functions.as_ref().ok().and_then(decoder_dialect)
    }
}

/// The dialect of a decoder, or else of the encoder.
fn decoder_dialect(functions: &Functions) -> Option<Dialect> {
    dialect(functions, Function::Decoder).or_else(|| dialect(functions, Function::Encoder))
}

/// Runs codecs by the rules of targets.
pub(crate) struct Runner<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) sandbox: &'a mut Sandbox,
}

impl Runner<'_> {
    /// Runs a codec as its author meant it.
    pub(crate) fn native(&mut self, codec: &Codec) -> Native {
        let functions = match self.load(&codec.sources()) {
            Ok(functions) => functions,
            Err(failure) => return Native { functions: Err(failure), passed: Vec::new(), failed: 0 },
        };
        let report = codec::run(self.engine, self.sandbox, codec, Rules::default());
        let passed =
            |example: &ExampleReport| matches!(example.outcome, ExampleOutcome::Passed | ExampleOutcome::Shown { .. });
        let failed = report.examples.iter().filter(|example| example.has_failed()).count();
        Native { functions: Ok(functions), passed: report.examples.iter().map(passed).collect(), failed }
    }

    /// The codec with what its own text returns in place of what its examples state. Examples that fail are left out.
    pub(crate) fn observed(&mut self, codec: &Codec) -> Codec {
        let report = codec::run(self.engine, self.sandbox, codec, Rules::default());
        let observed = codec.examples.iter().zip(&report.examples).map(|(example, report)| {
            let returned = report.result.as_deref().or(match &report.outcome {
                ExampleOutcome::Shown { result } => Some(result.as_str()),
                _ => None,
            });
            let value = returned.and_then(|text| serde_json::from_str(&mark(text)).ok());
            // Lists of fields, masked times and the like hold for the other text too.
            let expected = match (&example.expected, value) {
                (Expected::Value(_), Some(value)) if report.has_failed() => Expected::Value(value),
                (Expected::Unknown, Some(value)) => Expected::Value(value),
                (expected, _) => expected.clone(),
            };
            Example { expected, ..example.clone() }
        });
        let examples = observed.collect();
        Codec { dialect: codec.dialect, examples, ..Codec::new(codec.id.clone(), codec.script.clone(), None) }
    }

    /// Runs `script` with the examples of `codec` by the rules of a target. Examples that fail with the codec's own text
    /// say nothing about the target.
    pub(crate) fn trial(&mut self, codec: &Codec, native: &Native, script: &str, target: Target) -> Trial {
        let script = under_rules(script, target);
        let sources = Sources::single_file(&script);
        if let Err((message, line)) = self.load(&sources) {
            let finding = Finding { line, ..Finding::new(Rule::CannotLoad, format!("cannot be loaded: {message}")) };
            return Trial { has_loaded: false, examples: 0, passed: 0, findings: vec![finding] };
        }
        let (own, dialect) = self.adapted(codec, native, script, target);
        let report = codec::run(self.engine, self.sandbox, &own, Rules::default());
        let mut judged = Judged { dialect, is_other_dialect: native.dialect() != dialect, ..Judged::default() };
        for (example, result) in own.examples.iter().zip(&report.examples) {
            judged.add(example, result, target);
        }
        Trial {
            has_loaded: true,
            examples: own.examples.len(),
            passed: own.examples.len() - judged.failed,
            findings: judged.findings(target),
        }
    }

    /// The codec with those of its examples that the target can run, and the dialect in which it calls the decoder.
    fn adapted(&self, codec: &Codec, native: &Native, script: String, target: Target) -> (Codec, Option<Dialect>) {
        let wanted = target.dialect();
        let sources = Sources { dialect: wanted, ..Sources::single_file(&script) };
        let mut own = Codec { dialect: wanted, ..Codec::new(codec.id.clone(), script, None) };
        let (Ok(functions), Ok(native_functions)) = (self.load(&sources), &native.functions) else {
            return (own, None);
        };
        let has_passed = |index: usize| native.passed.get(index) == Some(&true);
        own.examples = codec
            .examples
            .iter()
            .enumerate()
            .filter(|(index, example)| has_passed(*index) && example.excluded.is_none())
            .filter_map(|(_, example)| {
                let (from, to) = (dialect(native_functions, example.function)?, dialect(&functions, example.function)?);
                let is_called = |entry: &Entry| entry.function == example.function && entry.dialect == to;
                target.entries().iter().any(is_called).then(|| example.adapted(from, to)).flatten()
            })
            .map(|example| match target.shape() {
                Shape::Measurements if takes_bytes(example.function) && returns(&example) => {
                    Example { expected: Expected::Unknown, ..example }
                }
                _ => example,
            })
            .collect();
        (own, decoder_dialect(&functions))
    }

    /// Returns true if a text can be loaded.
    pub(crate) fn loads(&self, script: &str) -> bool {
        self.load(&Sources::single_file(script)).is_ok()
    }

    fn load(&self, sources: &Sources) -> Result<Functions, (String, Option<u32>)> {
        let loaded = self.engine.load(sources, self.engine.limits());
        loaded.map_err(|failure| (sanitize(&failure.message), failure.line))
    }
}

/// Results of examples, counted by finding.
#[derive(Default)]
struct Judged {
    /// Results of decoders.
    results: usize,
    /// Those that the network does not take.
    wrong: usize,
    /// Those that fail or return something else than they state.
    failed: usize,
    /// That of the functions that have run.
    dialect: Option<Dialect>,
    /// True if the decoder is one of the codec's functions of another dialect.
    is_other_dialect: bool,
    found: Vec<(Finding, &'static str, usize)>,
    seen: BTreeMap<(Rule, Option<u32>, String), usize>,
}

impl Judged {
    fn add(&mut self, example: &Example, report: &ExampleReport, target: Target) {
        let result = result(example, report);
        self.results += usize::from(result.is_some());
        let lost = refused_number(report, target).filter(|_| example.function == Function::Decoder);
        let wrong = || match lost {
            Some(lost) => Some((format!("{lost}, so {} publishes nothing", target.title()), NUMBERS)),
            None => {
                let (text, value) = result.as_ref()?;
                wrong_result((text, value), (target, self.dialect))
            }
        };
        // Differing values are as many as examples; the first says where to look.
        let (rule, line, message, key) = match &report.outcome {
            ExampleOutcome::Failed(mismatch) => match &mismatch.failure {
                Some(failure) => (Rule::ExampleFails, report.line, first_line(failure), ""),
                None if has_only_additions(example, mismatch) => return,
                None if has_only_functions(mismatch) && wrong().is_none_or(|(_, key)| key != FUNCTIONS) => return,
                None => match wrong().filter(|(_, key)| self.is_other_dialect || *key == FUNCTIONS) {
                    Some((message, taken)) => (Rule::WrongResult, None, message, taken),
                    None => (Rule::ExampleDiffers, None, difference(mismatch), ""),
                },
            },
            _ => match wrong() {
                Some((message, taken)) => (Rule::WrongResult, None, message, taken),
                None => return,
            },
        };
        let is_wrong = rule == Rule::WrongResult;
        self.failed += usize::from(!is_wrong);
        self.wrong += usize::from(is_wrong);
        let same = if rule == Rule::ExampleFails { message.clone() } else { key.to_owned() };
        let index = *self.seen.entry((rule, line, same)).or_insert(self.found.len());
        match self.found.get_mut(index) {
            Some((.., count)) => *count += 1,
            None => {
                let message = format!("{}: {message}", report.title());
                self.found.push((Finding { line, ..Finding::new(rule, message) }, key, 1));
            }
        }
    }

    fn findings(self, target: Target) -> Vec<Finding> {
        // A codec may return nothing for some payloads on purpose, also where a network takes that for an error.
        let is_right_elsewhere = self.wrong < self.results;
        let with_count = |(finding, key, count): (Finding, &str, usize)| {
            let level = match finding.rule {
                Rule::WrongResult => match (key, target.shape()) {
                    (NO_FIELDS, _) => Level::Warning,
                    (NUMBERS | FUNCTIONS, _) => Level::Error,
                    (NOTHING, _) | (_, Shape::Fields | Shape::Measurements) if is_right_elsewhere => Level::Warning,
                    _ => Level::Error,
                },
                // The author's functions of another dialect may return something else on purpose.
                Rule::ExampleDiffers if self.is_other_dialect => Level::Warning,
                _ => finding.level,
            };
            let more = match count - 1 {
                0 => String::new(),
                1 => " (and 1 more example)".to_owned(),
                more => format!(" (and {more} more examples)"),
            };
            Finding { level, message: finding.message + &more, ..finding }
        };
        self.found.into_iter().take(FAILURES_MAX).map(with_count).collect()
    }
}

/// Returns true if a result only adds `fPort` or `warnings` of TS013 to what is expected in another dialect.
fn has_only_additions(example: &Example, mismatch: &Mismatch) -> bool {
    let is_addition = |path: &str| ["\"fPort\"", "\"warnings\"", "fPort", "warnings"].contains(&path);
    let is_adapted = matches!(&example.expected, Expected::Value(value) if value.as_object().is_some_and(|object| object.len() == 1));
    is_adapted
        && !mismatch.differences.is_empty()
        && mismatch.differences.iter().all(|difference| difference.expected.is_none() && is_addition(&difference.path))
}

/// Returns true if a result differs from what is expected only by functions, which the network does not look at.
fn has_only_functions(mismatch: &Mismatch) -> bool {
    let is_function = |got: &String| got.trim_matches('"') == FUNCTION;
    let mut differences = mismatch.differences.iter();
    !mismatch.differences.is_empty() && differences.all(|own| own.got.as_ref().is_some_and(is_function))
}

fn difference(mismatch: &Mismatch) -> String {
    mismatch.lines().into_iter().next().unwrap_or_default()
}

fn first_line(text: &str) -> String {
    sanitize(text.lines().next().unwrap_or_default())
}

/// Returns true if an example states a result, and not a failure.
fn returns(example: &Example) -> bool {
    !matches!(example.expected, Expected::Throws | Expected::Timeout)
}

/// Returns the result of a decoder, if it has returned one.
fn result<'a>(example: &Example, report: &'a ExampleReport) -> Option<(&'a str, Value)> {
    let shown = match &report.outcome {
        ExampleOutcome::Shown { result } => Some(result),
        _ => report.result.as_ref(),
    };
    let text = shown.filter(|_| example.function == Function::Decoder)?;
    match text.as_str() {
        "undefined" => Some((text, Value::Null)),
        json => Some((text, serde_json::from_str(json).ok()?)),
    }
}
