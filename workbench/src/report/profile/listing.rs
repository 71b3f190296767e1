//! Renders a profile as an annotated listing.

use std::fmt::Write as _;

use runtime::sanitize;

use super::{LineProfile, Profile, SourceProfile};

/// Lines shown before and after one that ran.
const CONTEXT_LINES: usize = 2;
/// Characters of a line that are shown; minified sources have lines of many thousands.
const WIDTH_CHARS: usize = 100;

impl Profile {
    /// The lines with what they cost, then the functions. Lines far from any that ran are left out, unless all are asked
    /// for.
    pub fn listing(&self, all_lines: bool) -> String {
        let mut text = String::new();
        for source in &self.sources {
            self.push_source(&mut text, source, all_lines);
        }
        self.push_functions(&mut text);
        text
    }

    fn push_source(&self, text: &mut String, source: &SourceProfile, all_lines: bool) {
        _ = writeln!(text, "{:>12} {:>6} {:>8}   {}", "fuel", "%", "runs", source.name);
        let mut was_left_out = false;
        for (index, line) in source.lines.iter().enumerate() {
            let nearby = index.saturating_sub(CONTEXT_LINES)..=index + CONTEXT_LINES;
            let is_near = |index: usize| source.lines.get(index).is_some_and(LineProfile::has_run);
            if all_lines || nearby.into_iter().any(is_near) {
                self.push_line(text, line);
                was_left_out = false;
            } else if !was_left_out {
                text.push_str("           …\n");
                was_left_out = true;
            }
        }
        let coverage = &source.coverage;
        _ = writeln!(
            text,
            "{} of {} lines and {} of {} branches ran\n",
            coverage.lines_run, coverage.lines, coverage.branches_run, coverage.branches
        );
    }

    fn push_line(&self, text: &mut String, line: &LineProfile) {
        let code = shown(&line.text);
        let annotated = match line.runs {
            Some(runs) if runs > 0 => {
                format!("{:>12} {:>6.1} {runs:>8} {:>5} | {code}", line.fuel, self.percent(line.fuel), line.line)
            }
            Some(_) => format!("{:>12} {:>6} {:>8} {:>5} | {code}", "", "", "-", line.line),
            None => format!("{:>28} {:>5} | {code}", "", line.line),
        };
        text.push_str(annotated.trim_end());
        text.push('\n');
    }

    fn push_functions(&self, text: &mut String) {
        _ = writeln!(text, "{:>12} {:>6} {:>12} {:>8}   function", "own fuel", "%", "with callees", "calls");
        for function in &self.functions {
            let (name, percent) = (sanitize(&function.name), self.percent(function.own));
            _ = writeln!(
                text,
                "{:>12} {percent:>6.1} {:>12} {:>8}   {name} ({}:{})",
                function.own, function.total, function.calls, function.source, function.line
            );
        }
        let percent = self.percent(self.outside);
        _ = writeln!(text, "{:>12} {percent:>6.1} {:>21}   the sandbox: payload in, result out", self.outside, "");
        _ = writeln!(text, "{:>12} {:>6.1} {:>21}   in total", self.fuel, 100.0, "");
    }
}

impl LineProfile {
    fn has_run(&self) -> bool {
        self.runs.is_some_and(|runs| runs > 0)
    }
}

/// The start of a line, without what would steer a terminal.
fn shown(line: &str) -> String {
    let start: String = line.chars().take(WIDTH_CHARS).collect();
    let rest = if start.len() < line.len() { "…" } else { "" };
    format!("{}{rest}", sanitize(&start.replace('\t', "    ")))
}
