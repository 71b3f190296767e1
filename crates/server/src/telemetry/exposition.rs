//! Metrics that the crate `metrics` cannot keep: counters with fractions, and series that end.

use std::fmt::{Display, Write};

/// Metrics in the text format of Prometheus.
#[derive(Default)]
pub struct Exposition(String);

/// A counter or a gauge.
#[derive(Clone, Copy)]
pub enum MetricKind {
    /// It rises until the process ends.
    Counter,
    /// It rises and falls.
    Gauge,
}

impl Exposition {
    /// Adds a metric with its samples, each with labels and a value; nothing if there are no samples.
    pub fn add<'a, L, V>(
        &mut self,
        (kind, name): (MetricKind, &str),
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) where
        L: AsRef<[(&'a str, &'a str)]>,
        V: Display,
    {
        let Self(text) = self;
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a string cannot fail.
        _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<_> =
                labels.as_ref().iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            _ = writeln!(text, "{name}{labels} {value}");
        }
        text.push('\n');
    }

    /// Ends the exposition.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// The value of a label as the format demands it.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_metrics_without_samples_are_left_out() {
        let mut text = Exposition::default();
        let samples = [([("network", "a\\b\"\nc"), ("result", "taken")], 1.5)];
        text.add((MetricKind::Counter, "one_total"), "Help", samples);
        text.add((MetricKind::Gauge, "two"), "Help", None::<([(&str, &str); 0], u64)>);
        let line = r#"one_total{network="a\\b\"\nc",result="taken"} 1.5"#;
        assert_eq!(text.into_text(), format!("# HELP one_total Help\n# TYPE one_total counter\n{line}\n\n"));
    }
}
