//! Colours in reports for people. Streams of `anstream` leave them out where they are not shown: in a pipe, or when
//! `NO_COLOR` is set.

use clap::builder::styling::{AnsiColor, Style};
use workbench::{BadInput, CodecReport, Reporter, Totals};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// A report for people with colours.
pub(in crate::commands::functions) struct Coloured(pub(in crate::commands::functions) Box<dyn Reporter>);

impl Reporter for Coloured {
    fn codec(&mut self, report: &CodecReport) -> String {
        coloured(&self.0.codec(report))
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        coloured(&self.0.end(totals, problems))
    }
}

/// A report with its verdicts, and the carets below source lines, in colours.
pub(in crate::commands::functions) fn coloured(report: &str) -> String {
    report.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let word = text.split([' ', '\n']).next().unwrap_or_default();
    let style = match (line.len() - text.len(), word) {
        (0, "ok" | "PASSED") | (2, "yes") => GOOD,
        (0, "FAIL" | "FAILED" | "INVALID") | (2, "no") => BAD,
        _ if text.strip_prefix('|').is_some_and(|rest| rest.trim() == "^") => {
            return line.replacen('^', &format!("{BAD}^{BAD:#}"), 1);
        }
        _ => return line.to_owned(),
    };
    line.replacen(word, &format!("{style}{word}{style:#}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verdicts_and_carets_have_colours() {
        for (plain, shown) in [
            ("FAIL  ok  1 failed\n", "\u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m  ok  1 failed\n"),
            ("ok    FAIL\n", "\u{1b}[1m\u{1b}[32mok\u{1b}[0m    FAIL\n"),
            ("  no   actility\n", "  \u{1b}[1m\u{1b}[31mno\u{1b}[0m   actility\n"),
            ("        4 |   ^\n          | ^\n", "        4 |   ^\n          | \u{1b}[1m\u{1b}[31m^\u{1b}[0m\n"),
            ("      FAIL  a\nokay\n  no\u{fffd}\n\n", "      FAIL  a\nokay\n  no\u{fffd}\n\n"),
        ] {
            assert_eq!(coloured(plain), shown);
        }
    }
}
