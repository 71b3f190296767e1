//! Renders the verdicts on codecs.

mod github;
mod human;
mod json;
mod markdown;
mod sarif;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    LintReport,
    finding::{Finding, Rule},
    target::Target,
};
use crate::layout::BadInput;

/// A format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LintFormat {
    /// For a terminal.
    Human,
    /// An object per codec, then the totals.
    Json,
    /// The matrix, for pull requests.
    Markdown,
    /// Annotations of GitHub Actions.
    Github,
    /// For code scanning.
    Sarif,
}

/// Writes a report, as far as possible while the codecs are judged.
pub trait LintReporter {
    /// The text for a codec.
    fn codec(&mut self, report: &LintReport) -> String;

    /// The text at the end. `problems` are files and lines that could not be read.
    fn end(&mut self, totals: &LintTotals, problems: &[BadInput]) -> String;
}

impl LintFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Human, Self::Json, Self::Markdown, Self::Github, Self::Sarif];

    /// The name in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Github => "github",
            Self::Sarif => "sarif",
        }
    }

    /// Returns the reporter for this format.
    pub fn reporter(self) -> Box<dyn LintReporter> {
        match self {
            Self::Human => Box::new(human::Human),
            Self::Json => Box::new(json::Json),
            Self::Markdown => Box::new(markdown::Markdown::default()),
            Self::Github => Box::new(github::Github),
            Self::Sarif => Box::new(sarif::Sarif::default()),
        }
    }
}

/// Sums over all codecs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LintTotals {
    /// Judged codecs.
    pub codecs: usize,
    /// Codecs that do not run on one target or more.
    pub codecs_failed: usize,
    /// By target.
    pub targets: BTreeMap<Target, TargetTotals>,
}

/// Sums for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetTotals {
    /// Codecs that run there.
    pub runs: usize,
    /// Codecs that do not.
    pub fails: usize,
    /// Of those, by rule.
    pub rules: BTreeMap<Rule, usize>,
}

impl LintTotals {
    /// Adds a codec.
    pub fn add(&mut self, report: &LintReport) {
        self.codecs += 1;
        self.codecs_failed += usize::from(report.has_failed());
        for verdict in &report.verdicts {
            let totals = self.targets.entry(verdict.target).or_default();
            *if verdict.runs { &mut totals.runs } else { &mut totals.fails } += 1;
            let mut rules: Vec<Rule> =
                verdict.findings.iter().filter(|finding| finding.is_error()).map(|finding| finding.rule).collect();
            rules.sort();
            rules.dedup();
            rules.into_iter().for_each(|rule| *totals.rules.entry(rule).or_default() += 1);
        }
    }
}

/// Each finding of a codec once, with the targets of which it is true.
fn by_finding(report: &LintReport) -> Vec<(&Finding, Vec<Target>)> {
    let mut found: Vec<(&Finding, Vec<Target>)> = Vec::new();
    for verdict in &report.verdicts {
        for finding in &verdict.findings {
            match found.iter_mut().find(|(other, _)| *other == finding) {
                Some((_, targets)) => targets.push(verdict.target),
                None => found.push((finding, vec![verdict.target])),
            }
        }
    }
    found.sort_by_key(|(finding, _)| finding.line);
    found
}

/// The names of targets, separated by commas.
fn names(targets: &[Target]) -> String {
    targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
}

/// The file and line of a finding.
fn site(report: &LintReport, finding: &Finding) -> Option<(String, usize)> {
    let file = report.file.as_ref()?;
    Some((file.display().to_string(), finding.line.unwrap_or(1) as usize))
}

/// A level as GitHub and SARIF spell it.
const fn level(finding: &Finding) -> &'static str {
    match finding.level {
        super::finding::Level::Error => "error",
        super::finding::Level::Warning => "warning",
    }
}
