//! Reads metrics in the text format of Prometheus: those of this process, which others collect in the same form.

use std::collections::BTreeMap;

/// All values of the metrics.
pub(super) struct Samples<'a>(Vec<Sample<'a>>);

/// A value of a metric.
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    labels: Vec<(&'a str, String)>,
}

impl<'a> Samples<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(Sample::parse).collect())
    }

    /// The values of a metric, one for each combination of labels.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &Sample<'a>> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The sum of a metric; none if it has no values yet.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|sample| sample.value).reduce(|sum, value| sum + value)
    }

    /// The sums of a metric by a label.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<&str, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.of(name) {
            *sums.entry(sample.label(label)).or_default() += sample.value;
        }
        sums
    }
}

impl<'a> Sample<'a> {
    /// Reads a line such as `name{label="value"} 1.5`.
    fn parse(line: &'a str) -> Option<Self> {
        let (head, value) = line.rsplit_once(' ')?;
        let (name, labels) = head.split_once('{').unwrap_or((head, ""));
        Some(Self { name, value: value.parse().ok()?, labels: parse_labels(labels) })
    }

    /// The value of a label; empty if there is none.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str())
    }
}

fn parse_labels(mut text: &str) -> Vec<(&str, String)> {
    let mut labels = Vec::new();
    while let Some((name, quoted)) = text.split_once("=\"") {
        let (value, rest) = unquoted(quoted);
        labels.push((name.trim_start_matches(','), value));
        text = rest;
    }
    labels
}

/// A value up to its closing quote, and what follows. In it, backslashes stand before themselves, quotes, and the `n` of
/// line feeds.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped })),
            plain => value.push(plain),
        }
    }
    (value, characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_labels() {
        let text = "# HELP a_total Things\n# TYPE a_total counter\na_total{kind=\"x\",name=\"one\"} 2\n\
                    a_total{kind=\"x\",name=\"two\"} 3.5\na_total{kind=\"y\",name=\"\"} 1\n\nb 7\nc{le=\"+Inf\"} 4\nbroken\n";
        let samples = Samples::parse(text);
        assert_eq!(samples.by("a_total", "kind"), BTreeMap::from([("x", 5.5), ("y", 1.0)]));
        assert_eq!((samples.sum("a_total"), samples.sum("b"), samples.sum("none")), (Some(6.5), Some(7.0), None));
        assert_eq!(samples.of("c").next().map(|sample| sample.label("le")), Some("+Inf"));
        assert_eq!(samples.of("b").next().map(|sample| sample.label("le")), Some(""));
    }

    #[test]
    fn names_that_operators_chose_may_have_any_characters() {
        let samples = Samples::parse("a{name=\"a \\\"b\\\\\\n}, c=\\\"\",other=\"d\"} 1");
        let sample = samples.of("a").next().unwrap();
        assert_eq!((sample.label("name"), sample.label("other")), ("a \"b\\\n}, c=\"", "d"));
    }
}
