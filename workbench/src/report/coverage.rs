//! Coverage of each script by the examples, and of all together.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use runtime::sanitize;
use serde::Serialize;

use super::{
    CodecReport, counted,
    profile::coverage::{Coverage, Reached, percent, shown},
};

/// Maximum number of lines, or ranges of lines, that a report names.
const RANGES_MAX: usize = 24;

/// The coverage of all scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TotalCoverage {
    /// Lines that ran, in percent of all lines.
    pub lines_percent: f64,
    /// Branches that were taken, in percent of all branches.
    pub branches_percent: f64,
    /// Lines with code in a function.
    pub lines: usize,
    /// Those that ran.
    pub lines_run: usize,
    /// The ways to go on at all conditions.
    pub branches: usize,
    /// Those that were taken.
    pub branches_run: usize,
    /// Codecs of which it could not be counted.
    pub uncounted: usize,
    /// Each script, in the order of the names.
    pub scripts: Vec<ScriptCoverage>,
}

/// The coverage of one script, which several codecs may share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScriptCoverage {
    /// Its file, as far as there is one.
    pub file: Option<PathBuf>,
    /// The codec that has it, or one of them.
    pub id: String,
    /// Counts of lines and branches.
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// Adds up what codecs reach, by script.
#[derive(Default)]
pub(super) struct Scripts {
    /// The codec that has a script, or one of them, and what all of them reach.
    reached: BTreeMap<(Option<PathBuf>, String), (String, Reached)>,
    uncounted: usize,
}

impl Scripts {
    pub(super) fn add(&mut self, report: &CodecReport) {
        let Some(reached) = &report.reached else {
            self.uncounted += usize::from(report.loaded.is_some());
            return;
        };
        // A script without a file of its own belongs to one codec.
        let id = if report.file.is_some() { String::new() } else { report.id.clone() };
        let own = self.reached.entry((report.file.clone(), id));
        let own = own.or_insert_with(|| (report.id.clone(), Reached::default()));
        own.1.add(reached);
    }

    pub(super) fn coverage(self) -> Option<TotalCoverage> {
        let script = |((file, _), (id, reached)): (_, (String, Reached))| {
            let coverage = reached.coverage();
            ScriptCoverage { file, id, coverage }
        };
        let scripts: Vec<ScriptCoverage> = self.reached.into_iter().map(script).collect();
        let total = |figure: fn(&Coverage) -> usize| scripts.iter().map(|script| figure(&script.coverage)).sum();
        let (lines, lines_run) = (total(|coverage| coverage.lines), total(|coverage| coverage.lines_run));
        let (branches, branches_run) = (total(|coverage| coverage.branches), total(|coverage| coverage.branches_run));
        let (lines_percent, branches_percent) = (percent(lines_run, lines), percent(branches_run, branches));
        (!scripts.is_empty()).then_some(TotalCoverage {
            lines_percent,
            branches_percent,
            lines,
            lines_run,
            branches,
            branches_run,
            uncounted: self.uncounted,
            scripts,
        })
    }
}

impl ScriptCoverage {
    /// Its file or else its codec, without control characters.
    pub(super) fn name(&self) -> String {
        sanitize(&self.file.as_ref().map_or_else(|| self.id.clone(), |file| file.display().to_string()))
    }

    /// Describes the percentages of lines and branches.
    pub(super) fn percents(&self) -> String {
        let (lines, branches) = (self.coverage.lines_percent(), self.coverage.branches_percent());
        format!("{} of lines, {} of branches", shown(lines), shown(branches))
    }

    /// Describes the lines and branches that no example reaches.
    pub(super) fn missed(&self) -> Vec<String> {
        let Coverage { missed_lines, missed_branches, .. } = &self.coverage;
        let told = [("lines not reached", missed_lines), ("branches not taken", missed_branches)];
        let told = told.into_iter().filter(|(_, lines)| !lines.is_empty());
        told.map(|(what, lines)| format!("{what}: {}", ranges(lines))).collect()
    }

    /// The file and the first line that something is missing in.
    pub(super) fn site(&self) -> Option<(String, usize)> {
        let Coverage { missed_lines, missed_branches, .. } = &self.coverage;
        let first = missed_lines.iter().chain(missed_branches).min()?;
        Some((self.file.as_ref()?.display().to_string(), *first as usize))
    }
}

impl fmt::Display for TotalCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, lines_run, branches, branches_run, uncounted, .. } = self;
        let (of_lines, of_branches) = (shown(self.lines_percent), shown(self.branches_percent));
        write!(
            f,
            "coverage: {of_lines} of lines ({lines_run} of {lines}), {of_branches} of branches ({branches_run} of {branches})"
        )?;
        if *uncounted > 0 { write!(f, ", not counted for {}", counted(*uncounted, "codec")) } else { Ok(()) }
    }
}

/// Numbers in order, as in `3, 7–9`.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut().filter(|(_, last)| last + 1 == *number) {
            Some((_, last)) => *last = *number,
            None => ranges.push((*number, *number)),
        }
    }
    let more = if ranges.len() > RANGES_MAX { ", …" } else { "" };
    let shown = ranges.iter().take(RANGES_MAX).map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}–{last}"),
    });
    shown.collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_follow_each_other_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1–3, 5, 7–8");
        let many: Vec<u32> = (0..60).map(|number| 2 * number).collect();
        assert!(ranges(&many).ends_with(", 46, …"), "{}", ranges(&many));
    }
}
