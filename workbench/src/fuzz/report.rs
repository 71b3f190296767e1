//! Renders a report for people.

use runtime::sanitize;

use super::{FuzzFinding, FuzzReport, Unread};
use crate::codec::{compare::truncate, kind_name};

impl FuzzReport {
    /// The report as text: a line for a codec without faults, and more for the others.
    pub fn text(&self) -> String {
        let mut text =
            format!("{}  {}: {}\n", if self.has_failed() { "FAIL" } else { "ok  " }, sanitize(&self.id), self.head());
        for line in self.failure.iter().flat_map(|failure| failure.lines()) {
            text += &format!("      {}\n", sanitize(line));
        }
        self.findings.iter().for_each(|finding| text += &finding.text());
        self.unread.iter().for_each(|unread| text += &format!("  note        {}\n", unread.text()));
        text
    }

    fn head(&self) -> String {
        let seed = self.seed;
        match (self.failure.is_some(), self.has_targets, self.ended_after, self.calls) {
            (true, ..) => "it cannot be loaded".to_owned(),
            (_, false, ..) => "it has no function that takes a payload".to_owned(),
            (_, _, None, calls) => format!("{calls} calls, seed {seed}"),
            (_, _, Some(messages), calls) => {
                format!("{calls} calls, seed {seed}; ended after {messages} messages, which needed much fuel")
            }
        }
    }
}

impl FuzzFinding {
    fn text(&self) -> String {
        let bytes = if self.bytes.is_empty() { "no bytes" } else { &self.bytes };
        let example = self.example.map(|example| format!(" (example {example})")).unwrap_or_default();
        let (kind, function) = (self.kind.name(), kind_name(self.function));
        let mut text = format!("  {kind:<10}  {function}, port {}, {}{example}\n", self.port, truncate(bytes));
        if let Some(input) = &self.input {
            text += &format!("              {}\n", sanitize(&truncate(input.get())));
        }
        for line in self.message.lines() {
            text += &format!("              {}\n", sanitize(line));
        }
        text
    }
}

impl Unread {
    fn text(&self) -> String {
        let Self { function, port, example, length, positions, tries } = self;
        let (noun, pronoun) = if positions.len() == 1 { ("byte", "it") } else { ("bytes", "them") };
        format!(
            "{function}, port {port}, {length} bytes (example {example}): {noun} {} made no difference in {tries} changes \
             of {pronoun}",
            ranges(positions)
        )
    }
}

/// Positions as text: `0, 3 to 5`.
fn ranges(positions: &[usize]) -> String {
    let runs = positions.chunk_by(|one, next| one + 1 == *next);
    let texts = runs.filter_map(|run| match run {
        [] => None,
        [only] => Some(only.to_string()),
        [first, second] => Some(format!("{first}, {second}")),
        [first, .., last] => Some(format!("{first} to {last}")),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        for (positions, text) in [(vec![3], "3"), (vec![0, 1], "0, 1"), (vec![0, 3, 4, 5, 9], "0, 3 to 5, 9")] {
            assert_eq!(ranges(&positions), text);
        }
    }
}
