//! Ports a codec to another network: mends its text, adds the functions that are called there, and proves it.

mod edits;
mod mend;
mod wrapper;

use std::sync::Arc;

use oxc::allocator::Allocator;
use runtime::{Engine, Sandbox};

use crate::{
    codec::Codec,
    lint::{
        finding::{Finding, Rule},
        rules::Parsed,
        target::{Shape, Target},
        trial::{Native, Runner},
    },
    run::worker_pool,
};

/// A codec as another network takes it.
#[derive(Clone, Debug, Default)]
pub struct Ported {
    /// The text.
    pub text: String,
    /// The changes, a sentence for each.
    pub changes: Vec<String>,
    /// Findings that still keep it from running there. Newer syntax is not rewritten.
    pub obstacles: Vec<Finding>,
    /// Number of examples.
    pub examples: usize,
    /// Number of examples that can be run by the network's rules.
    pub compared: usize,
    /// Number of compared examples that return the same as with the original.
    pub agreed: usize,
    /// Differences of the others.
    pub differences: Vec<Finding>,
}

impl Ported {
    /// Returns true if there are no obstacles, and all compared examples agree.
    pub fn is_sound(&self) -> bool {
        self.obstacles.is_empty() && self.agreed == self.compared
    }
}

/// Ports a script to `target`. `codecs` are that script with its examples, which may be in several files.
pub fn port(engine: &Arc<Engine>, codecs: &[Codec], target: Target) -> Ported {
    let mut ported = Ported::default();
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codecs: &&[Codec]| port_with(engine, &mut sandbox, codecs, target)
    };
    let Ok(()) = worker_pool::map_in_order(&[codecs], 1, worker, |_, result| {
        let panicked = || failed("Airlock panicked; please report this bug".to_owned(), None);
        ported = result.unwrap_or_else(panicked);
        Ok::<(), std::convert::Infallible>(())
    });
    ported
}

fn port_with(engine: &Arc<Engine>, sandbox: &mut Sandbox, codecs: &[Codec], target: Target) -> Ported {
    let mut runner = Runner { engine, sandbox };
    let Some(codec) = codecs.first() else { return failed("there is no codec".to_owned(), None) };
    if target.shape() == Shape::Measurements {
        let reason = format!(
            "{} takes fields by the names that you give them there: write that decoder by hand",
            target.title()
        );
        return failed(reason, None);
    }
    let natives: Vec<Native> = codecs.iter().map(|codec| runner.native(codec)).collect();
    if let Some(Err((message, line))) = natives.first().map(|native| &native.functions) {
        return failed(format!("cannot be loaded: {message}"), *line);
    }
    let dialects: Vec<_> = natives.iter().filter_map(Native::dialect).collect();
    let mut ported = rewrite(&codec.script, &dialects, target);
    prove(&mut runner, codecs, target, &mut ported);
    ported
}

fn failed(reason: String, line: Option<u32>) -> Ported {
    let finding = Finding { line, ..Finding::new(Rule::CannotLoad, reason) };
    Ported { obstacles: vec![finding], ..Ported::default() }
}

/// The text with its changes, and without a proof.
fn rewrite(script: &str, dialects: &[runtime::Dialect], target: Target) -> Ported {
    let allocator = Allocator::default();
    let parsed = Parsed::new(&allocator, script);
    let mended = mend::mend(&parsed, target);
    let wrapped = wrapper::missing(&parsed, dialects, target);
    let mut changes = mended.changes;
    changes.extend(wrapped.changes);
    Ported { text: like(script, mended.text + &wrapped.text), changes, ..Ported::default() }
}

/// The text with the line endings of `script`, unless that mixes them.
fn like(script: &str, text: String) -> String {
    let (with_return, all) = (script.matches("\r\n").count(), script.matches('\n').count());
    match with_return > 0 && with_return == all {
        true => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => text,
    }
}

/// Runs the examples on the original and on the new text.
fn prove(runner: &mut Runner<'_>, codecs: &[Codec], target: Target, ported: &mut Ported) {
    let mut has_loaded = true;
    for codec in codecs {
        let observed = runner.observed(codec);
        let native = runner.native(&observed);
        let trial = runner.trial(&observed, &native, &ported.text, target);
        ported.examples += codec.examples.len();
        ported.compared += trial.examples;
        ported.agreed += trial.passed;
        has_loaded &= trial.has_loaded;
        // What the network does not take is no matter of the text, unless it takes nothing of it.
        let (refused, differing) = trial.findings.into_iter().partition(|finding| finding.rule == Rule::WrongResult);
        let refused: Vec<Finding> = refused;
        ported.obstacles.extend(refused.into_iter().filter(Finding::is_error));
        ported.differences.extend::<Vec<Finding>>(differing);
    }
    let allocator = Allocator::default();
    let findings = Parsed::new(&allocator, &ported.text).judge(target, has_loaded);
    ported.obstacles.extend(findings.into_iter().filter(Finding::is_error));
    if !has_loaded && ported.obstacles.is_empty() {
        ported.obstacles = std::mem::take(&mut ported.differences);
    }
}
