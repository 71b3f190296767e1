//! What came of all codecs together.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{
    cost::{Cost, Costs},
    report::{CodecReport, Outcome},
};

/// What came of all codecs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Codecs that were checked.
    pub codecs: usize,
    /// Codecs with a failure, or that cannot be loaded.
    pub codecs_failed: usize,
    /// Examples, excluded ones included.
    pub examples: usize,
    /// Examples that came out as expected.
    pub passed: usize,
    /// Examples that did not.
    pub failed: usize,
    /// Examples without an expectation.
    pub shown: usize,
    /// Examples that were left out, by reason.
    pub excluded: BTreeMap<&'static str, usize>,
    /// What all examples cost; absent when none was run.
    pub cost: Option<Cost>,
}

/// Totals on their way: reports are counted and then dropped.
#[derive(Default)]
pub(super) struct Tally {
    totals: Totals,
    costs: Costs,
}

impl Tally {
    pub(super) fn add(&mut self, report: &CodecReport) {
        let Self { totals, costs } = self;
        totals.codecs += 1;
        totals.codecs_failed += usize::from(report.has_failed());
        totals.examples += report.examples.len();
        for example in &report.examples {
            match example.outcome {
                Outcome::Passed => totals.passed += 1,
                Outcome::Shown { .. } => totals.shown += 1,
                Outcome::Failed(_) => totals.failed += 1,
                Outcome::Excluded { reason } => *totals.excluded.entry(reason).or_default() += 1,
            }
        }
        costs.add(&report.examples);
    }

    pub(super) fn totals(self) -> Totals {
        Totals { cost: self.costs.cost(), ..self.totals }
    }
}

impl Totals {
    /// Whether everything that was run came out as expected.
    pub fn is_clean(&self) -> bool {
        self.codecs_failed == 0
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { codecs, codecs_failed, examples, passed, failed, shown, .. } = self;
        writeln!(f, "codecs: {codecs}, with failures: {codecs_failed}")?;
        write!(f, "examples: {examples}, passed: {passed}, failed: {failed}")?;
        if *shown > 0 {
            write!(f, ", shown: {shown}")?;
        }
        let excluded: Vec<_> = self.excluded.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        if !excluded.is_empty() {
            write!(f, ", excluded: {} ({})", self.excluded.values().sum::<usize>(), excluded.join(", "))?;
        }
        if let Some(cost) = &self.cost {
            write!(f, "\nof an example: {cost}")?;
        }
        Ok(())
    }
}
