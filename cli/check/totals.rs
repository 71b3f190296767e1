//! What came of all codecs together.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{
    cost::Cost,
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

impl Totals {
    /// Counts what is in `reports`.
    pub fn of(reports: &[CodecReport]) -> Self {
        let mut totals = Self { codecs: reports.len(), ..Self::default() };
        totals.codecs_failed = reports.iter().filter(|report| report.has_failed()).count();
        for example in reports.iter().flat_map(|report| &report.examples) {
            totals.examples += 1;
            match example.outcome {
                Outcome::Passed => totals.passed += 1,
                Outcome::Shown { .. } => totals.shown += 1,
                Outcome::Failed(_) => totals.failed += 1,
                Outcome::Excluded { reason } => *totals.excluded.entry(reason).or_default() += 1,
            }
        }
        totals.cost = Cost::of(reports.iter().flat_map(|report| &report.examples));
        totals
    }

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
