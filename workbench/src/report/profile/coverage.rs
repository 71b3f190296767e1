//! Coverage of a script's lines and branches.

use std::collections::BTreeMap;

use runtime::{Recording, Slot};
use serde::Serialize;

/// Number of lines and branches of a script that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Lines with code in a function. What runs only while the source is evaluated does not count.
    pub lines: usize,
    /// Those that ran.
    pub lines_run: usize,
    /// The ways to go on at all conditions: two at each, also at those within an expression.
    pub branches: usize,
    /// Those that were taken.
    pub branches_run: usize,
    /// The lines that did not run.
    pub missed_lines: Vec<u32>,
    /// The lines with a condition that always went the same way; only lines that ran.
    pub missed_branches: Vec<u32>,
}

impl Coverage {
    /// Returns the lines that ran, in percent. Without lines, 100.
    pub fn lines_percent(&self) -> f64 {
        percent(self.lines_run, self.lines)
    }

    /// Returns the branches that were taken, in percent. Without branches, 100.
    pub fn branches_percent(&self) -> f64 {
        percent(self.branches_run, self.branches)
    }
}

/// Returns `part` in percent of `all`; 100 if `all` is zero.
pub(crate) fn percent(part: usize, all: usize) -> f64 {
    if all == 0 { 100.0 } else { 100.0 * part as f64 / all as f64 }
}

/// A percentage with one decimal, rounded down: 100.0% is all, and what is shown is never more than there is.
pub(crate) fn shown(percent: f64) -> String {
    // 64.1 is a little less in binary, and must stay that.
    format!("{:.1}%", (percent * 10.0 + 1e-9).floor() / 10.0)
}

/// The lines and conditions of a script that messages have reached. Those of several messages can be added, also if the
/// script was loaded again for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// True for a line that ran.
    lines: BTreeMap<u32, bool>,
    /// True if a condition went on at the next step, and true if it went on elsewhere.
    conditions: BTreeMap<Condition, [bool; 2]>,
}

/// Place of a condition among the steps of a function, which is known by the place where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    line: u32,
    function: (u32, u32),
    step: usize,
}

impl Reached {
    /// Returns the lines and conditions that the messages of a recording have reached in the source of `slot`.
    pub(crate) fn of(recording: &Recording, slot: Slot) -> Self {
        let mut reached = Self::default();
        let all = recording.steps.all();
        for function in recording.steps.functions().iter().filter(|function| function.slot == slot) {
            let begins = all.get(function.steps.start).map_or((0, 0), |step| (step.line, step.column));
            for (index, place) in function.steps.clone().enumerate() {
                let (step, cost) = (&all[place], &recording.costs[place]);
                *reached.lines.entry(step.line).or_default() |= cost.runs > 0;
                if step.is_branch {
                    let condition = Condition { line: step.line, function: begins, step: index };
                    reached.take(condition, [cost.runs > cost.jumps, cost.jumps > 0]);
                }
            }
        }
        reached
    }

    /// Adds what other messages have reached.
    pub(crate) fn add(&mut self, other: &Self) {
        other.lines.iter().for_each(|(line, has_run)| *self.lines.entry(*line).or_default() |= has_run);
        other.conditions.iter().for_each(|(condition, ways)| self.take(*condition, *ways));
    }

    fn take(&mut self, condition: Condition, [next, elsewhere]: [bool; 2]) {
        let ways = self.conditions.entry(condition).or_default();
        *ways = [ways[0] | next, ways[1] | elsewhere];
    }

    /// The figures.
    pub fn coverage(&self) -> Coverage {
        let missed_lines: Vec<u32> =
            self.lines.iter().filter(|(_, has_run)| !**has_run).map(|(line, _)| *line).collect();
        let ways = || self.conditions.values().flatten();
        // Ordered by line.
        let one_way = self.conditions.iter().filter(|(_, [next, elsewhere])| next != elsewhere);
        let mut missed_branches: Vec<u32> = one_way.map(|(condition, _)| condition.line).collect();
        missed_branches.dedup();
        Coverage {
            lines: self.lines.len(),
            lines_run: self.lines.len() - missed_lines.len(),
            branches: ways().count(),
            branches_run: ways().filter(|way| **way).count(),
            missed_lines,
            missed_branches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_down() {
        for (part, all, expected) in [
            (9999, 10_000, "99.9%"),
            (2, 3, "66.6%"),
            (641, 1000, "64.1%"),
            (0, 0, "100.0%"),
            (0, 7, "0.0%"),
            (7, 7, "100.0%"),
        ] {
            assert_eq!(shown(percent(part, all)), expected, "{part} of {all}");
        }
    }
}
