//! Sums over all checked codecs.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{
    CodecReport, ExampleOutcome,
    cost::{Cost, Costs},
    counted,
    coverage::{ScriptCoverage, Scripts, TotalCoverage},
    profile::coverage::shown,
};

/// The result of checking all codecs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Checked codecs.
    pub codecs: usize,
    /// Codecs with a failed example, or that cannot be loaded.
    pub codecs_failed: usize,
    /// Codecs that cannot be loaded; all their examples count as failed.
    pub codecs_not_loaded: usize,
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
    /// Coverage of the scripts by the examples, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<TotalCoverage>,
    /// Minimum coverage of lines, and of branches, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage_min: Option<f64>,
}

/// Adds up reports, which need not be kept.
#[derive(Default)]
pub(crate) struct Tally {
    totals: Totals,
    costs: Costs,
    scripts: Scripts,
}

impl Tally {
    pub(crate) fn add(&mut self, report: &CodecReport) {
        let Self { totals, costs, scripts } = self;
        totals.codecs += 1;
        totals.codecs_failed += usize::from(report.has_failed());
        totals.codecs_not_loaded += usize::from(report.failure.is_some());
        totals.examples += report.examples.len();
        for example in &report.examples {
            match example.outcome {
                ExampleOutcome::Passed => totals.passed += 1,
                ExampleOutcome::Shown { .. } => totals.shown += 1,
                ExampleOutcome::Failed(_) => totals.failed += 1,
                ExampleOutcome::Excluded { reason } => *totals.excluded.entry(reason).or_default() += 1,
            }
        }
        report.add_to(costs);
        scripts.add(report);
    }

    pub(crate) fn totals(self) -> Totals {
        Totals { cost: self.costs.cost(), coverage: self.scripts.coverage(), ..self.totals }
    }
}

impl Totals {
    /// Returns the reason why the coverage is not enough, if a minimum was asked for.
    pub fn lack_of_coverage(&self) -> Option<String> {
        let min = self.coverage_min?;
        let Some(coverage) = &self.coverage else { return Some("the coverage could not be counted".to_owned()) };
        let TotalCoverage { lines_percent: lines, branches_percent: branches, uncounted, .. } = coverage;
        match uncounted {
            0 if *lines >= min && *branches >= min => None,
            0 => Some(format!(
                "examples reach {} of lines and {} of branches, less than {min}%",
                shown(*lines),
                shown(*branches)
            )),
            _ => Some(format!("the coverage of {} could not be counted", counted(*uncounted, "codec"))),
        }
    }

    /// The coverage of each script, if that was asked for.
    pub(crate) fn scripts(&self) -> &[ScriptCoverage] {
        self.coverage.as_ref().map(|coverage| coverage.scripts.as_slice()).unwrap_or_default()
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
        if *examples == 0 && *codecs > 0 {
            write!(f, "\n{} without examples", counted(*codecs, "script"))?;
        }
        let excluded: Vec<_> = self.excluded.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        if !excluded.is_empty() {
            write!(f, ", excluded: {} ({})", self.excluded.values().sum::<usize>(), excluded.join(", "))?;
        }
        if let Some(cost) = &self.cost {
            write!(f, "\nper example: {cost}")?;
        }
        if let Some(coverage) = &self.coverage {
            write!(f, "\n{coverage}")?;
        }
        Ok(())
    }
}
