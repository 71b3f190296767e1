//! Which lines and branches of a script ran.

use std::collections::BTreeMap;

use runtime::{Recording, Slot};
use serde::Serialize;

/// How many lines and branches of a source ran.
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
    /// The coverage of the source in `slot`.
    pub fn of(recording: &Recording, slot: Slot) -> Self {
        let mut lines: BTreeMap<u32, bool> = BTreeMap::new();
        let mut all = Self::default();
        for function in recording.steps.functions().iter().filter(|function| function.slot == slot) {
            for index in function.steps.clone() {
                let (step, cost) = (&recording.steps.all()[index], &recording.costs[index]);
                *lines.entry(step.line).or_default() |= cost.runs > 0;
                if step.is_branch {
                    let ways = usize::from(cost.jumps > 0) + usize::from(cost.runs > cost.jumps);
                    all.branches += 2;
                    all.branches_run += ways;
                    if ways == 1 && all.missed_branches.last() != Some(&step.line) {
                        all.missed_branches.push(step.line);
                    }
                }
            }
        }
        all.missed_branches.sort_unstable();
        all.missed_branches.dedup();
        all.lines = lines.len();
        all.missed_lines = lines.iter().filter(|(_, has_run)| !**has_run).map(|(line, _)| *line).collect();
        all.lines_run = all.lines - all.missed_lines.len();
        all
    }
}
