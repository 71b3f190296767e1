//! Judges whether a codec runs on networks: from its text, and from running its examples by each network's rules.

pub(crate) mod finding;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod source;
pub(crate) mod target;
pub(crate) mod trial;

use std::{path::PathBuf, sync::Arc};

use oxc::allocator::Allocator;
use runtime::{Engine, Sandbox};
use serde::Serialize;

use self::{
    finding::{Finding, Rule},
    rules::Parsed,
    target::Target,
    trial::{Native, Runner, sandbox::without_directives},
};
use crate::{codec::Codec, run::worker_pool};

/// Ends of the sandbox's errors for variables that are read before they are set, and for imports.
const NOT_INITIALIZED: &str = "is not initialized";
const NO_IMPORT: &str = "only 'buffer' can be imported";

/// Verdicts on a codec, one per network.
#[derive(Clone, Debug, Serialize)]
pub struct LintReport {
    /// The codec's id.
    pub id: String,
    /// The file of its script, as far as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Number of its examples.
    pub examples: usize,
    /// Number of examples that fail with the text as it is, wherever it runs: they say nothing about networks.
    #[serde(skip_serializing_if = "is_zero")]
    pub examples_failed: usize,
    /// For each target, in the order of the arguments.
    pub verdicts: Vec<Verdict>,
}

/// Verdict on a codec for one network.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The network.
    pub target: Target,
    /// True if no finding is an error.
    pub runs: bool,
    /// Number of examples that have run by its rules; without any, the verdict is from the text alone.
    pub examples: usize,
    /// Reasons why it does not run there, or may not.
    pub findings: Vec<Finding>,
}

impl LintReport {
    /// Returns true if there is a target on which it does not run.
    pub fn has_failed(&self) -> bool {
        self.verdicts.iter().any(|verdict| !verdict.runs)
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Judges `codecs` for `targets` on `jobs` threads, and calls `report` for each in order, as early as possible.
///
/// An error of `report` ends the run.
pub fn lint<E>(
    engine: &Arc<Engine>,
    codecs: &[Codec],
    targets: &[Target],
    jobs: usize,
    mut report: impl FnMut(&LintReport) -> Result<(), E>,
) -> Result<(), E> {
    let worker = || {
        let mut sandbox = engine.sandbox();
        move |codec: &Codec| judge(engine, &mut sandbox, codec, targets)
    };
    worker_pool::map_in_order(codecs, jobs, worker, |codec, result| {
        report(&result.unwrap_or_else(|| unjudged(codec, targets, "Airlock panicked; please report this bug", None)))
    })
}

fn judge(engine: &Arc<Engine>, sandbox: &mut Sandbox, codec: &Codec, targets: &[Target]) -> LintReport {
    let mut runner = Runner { engine, sandbox };
    let native = runner.native(codec);
    // The sandbox has bounds for nested texts, and the parser has none.
    if let Err((message, line)) = &native.functions
        && !is_of_own_rules(message)
        && !runner.loads(&without_directives(&codec.script))
    {
        return unjudged(codec, targets, message, *line);
    }
    let allocator = Allocator::default();
    let parsed = Parsed::new(&allocator, &codec.script);
    let verdicts = targets.iter().map(|target| verdict(&mut runner, codec, &native, &parsed, *target));
    LintReport { examples_failed: native.failed, ..report(codec, verdicts.collect()) }
}

fn verdict(runner: &mut Runner<'_>, codec: &Codec, native: &Native, parsed: &Parsed<'_>, target: Target) -> Verdict {
    let trial = runner.trial(codec, native, &codec.script, target);
    let mut findings = parsed.judge(target, trial.has_loaded);
    let is_told = |finding: &Finding, told: &[Finding]| {
        let has_errors = told.iter().any(Finding::is_error);
        match finding.rule {
            // The text says more than the sandbox, which knows only that it cannot be loaded.
            Rule::CannotLoad => has_errors || is_other_engine(parsed, target, &finding.message),
            _ => told.iter().any(|told| told.is_error() && finding.line.is_some() && told.line == finding.line),
        }
    };
    let from_examples: Vec<Finding> =
        trial.findings.into_iter().filter(|finding| !is_told(finding, &findings)).collect();
    findings.extend(from_examples);
    Verdict { target, runs: !findings.iter().any(Finding::is_error), examples: trial.examples, findings }
}

/// Returns true if a text that our sandbox cannot load may be loaded by the rules of a network: scripts share a scope
/// with the globals of the language, where a module may have a `let NaN` of its own, and a text that finds `module` may
/// expect `require`, too.
fn is_of_own_rules(message: &str) -> bool {
    let is_shared = |name: &&str| message.ends_with(&format!("redeclaration of '{name}'"));
    let is_later = ["require is not defined", NOT_INITIALIZED, NO_IMPORT].iter().any(|end| message.ends_with(end));
    is_later || ["NaN", "Infinity", "undefined"].iter().any(is_shared)
}

/// Returns true if our engine cannot load the text, but the target's may: of a block with a function, only ours has
/// that function outside of it, where a `let` of that name may follow; and there may be more modules.
fn is_other_engine(parsed: &Parsed<'_>, target: Target, message: &str) -> bool {
    let before = message.strip_suffix(NOT_INITIALIZED).map(str::trim_end);
    let name = before.and_then(|before| before.rsplit(' ').next());
    let is_block_function = name.is_some_and(|name| parsed.source(target).has_block_function(name));
    let has_module = |name: &&str| message.contains(&format!("cannot import '{name}'"));
    is_block_function && target.engine() != target::engine::Engine::QuickJs
        || message.ends_with(NO_IMPORT) && target.modules().iter().any(has_module)
}

/// The report on a codec that runs nowhere, or made us fail.
fn unjudged(codec: &Codec, targets: &[Target], message: &str, line: Option<u32>) -> LintReport {
    let finding = Finding { line, ..Finding::new(Rule::CannotLoad, format!("cannot be loaded: {message}")) };
    let verdict =
        |target: &Target| Verdict { target: *target, runs: false, examples: 0, findings: vec![finding.clone()] };
    report(codec, targets.iter().map(verdict).collect())
}

fn report(codec: &Codec, verdicts: Vec<Verdict>) -> LintReport {
    let file = codec.script_file.clone();
    LintReport { id: codec.id.clone(), file, examples: codec.examples.len(), examples_failed: 0, verdicts }
}
