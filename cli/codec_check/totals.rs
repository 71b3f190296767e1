//! Sums over all checked codecs, and what examples cost.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::report::{CodecReport, ExampleReport, Outcome};

/// The result of checking all codecs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Checked codecs.
    pub codecs: usize,
    /// Codecs with a failed example, or that cannot be loaded.
    pub codecs_failed: usize,
    /// Examples, including excluded ones.
    pub examples: usize,
    /// Examples that returned what was expected.
    pub passed: usize,
    /// Examples that did not.
    pub failed: usize,
    /// Examples without an expectation.
    pub shown: usize,
    /// Examples that were not run, by reason.
    pub excluded: BTreeMap<&'static str, usize>,
    /// Cost over all examples; absent when none was run.
    pub cost: Option<Cost>,
}

/// The cost of examples, except those that are meant to exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Median time in the sandbox, in microseconds.
    pub microseconds_median: f64,
    /// Median fuel.
    pub fuel_median: u64,
    /// Fuel of the most expensive example.
    pub fuel_max: u64,
}

/// Adds up reports, which need not be kept.
#[derive(Default)]
pub(super) struct Tally {
    totals: Totals,
    costs: Costs,
}

/// The costs of single examples: a median needs all of them.
#[derive(Default)]
pub(super) struct Costs {
    microseconds: Vec<f64>,
    fuel: Vec<u64>,
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

impl Costs {
    pub(super) fn add(&mut self, examples: &[ExampleReport]) {
        for example in examples.iter().filter(|example| example.has_typical_cost()) {
            self.microseconds.push(example.microseconds);
            self.fuel.push(example.fuel);
        }
    }

    pub(super) fn cost(mut self) -> Option<Cost> {
        self.microseconds.sort_by(f64::total_cmp);
        self.fuel.sort_unstable();
        let middle = self.fuel.len() / 2;
        Some(Cost {
            microseconds_median: *self.microseconds.get(middle)?,
            fuel_median: *self.fuel.get(middle)?,
            fuel_max: *self.fuel.last()?,
        })
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
            write!(f, "\nper example: {cost}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { microseconds_median, fuel_median, fuel_max } = self;
        write!(f, "median {microseconds_median:.0} µs, fuel {fuel_median}, at most {fuel_max}")
    }
}
