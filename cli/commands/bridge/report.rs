//! The report of a shadow run: for each codec the counts of agreement, differences with likely causes, and the cost.

mod cause;
mod html;
mod text;

use std::collections::BTreeMap;

use bridge::{Observation, Verdict};
use serde::Serialize;
use serde_json::Value;
use types::Timestamp;
use workbench::{differences, truncate};

use self::html::html;

/// Maximum number of codecs in a report; messages of further ones are counted in the totals only.
const CODECS_MAX: usize = 10_000;
/// Maximum number of examples of differences and failures of a codec.
const EXAMPLES_MAX: usize = 8;
/// Number of a codec's last messages that its median covers.
const SAMPLES_MAX: usize = 1024;

/// A report, complete at any time.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Start of the run.
    pub(super) started: Timestamp,
    /// Time of the report.
    pub(super) ended: Timestamp,
    /// The fuel that a message may use.
    pub(super) fuel_max: u64,
    /// All codecs together.
    pub(super) totals: Counts,
    /// Each codec, by the id of its device profile.
    pub(super) codecs: BTreeMap<String, Codec>,
}

/// Number of messages by result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) messages: u64,
    /// Both have the same object.
    pub(super) equal: u64,
    /// Both have an object, and they differ.
    pub(super) different: u64,
    /// ChirpStack's run failed, ours did not.
    pub(super) failed_there: u64,
    /// Our run failed, ChirpStack's did not.
    pub(super) failed_here: u64,
    /// Both failed.
    pub(super) failed_both: u64,
    /// ChirpStack did not decode it and reported no failure, for example because its codec is switched off.
    pub(super) only_here: u64,
    /// Nobody decodes it.
    pub(super) without_codec: u64,
}

/// Findings about one codec.
#[derive(Debug, Default, Serialize)]
pub(super) struct Codec {
    /// The name of the device profile.
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// Time in the sandbox, in microseconds.
    pub(super) microseconds: Cost,
    /// Fuel.
    pub(super) fuel: Cost,
    /// Number of differences and failures, by likely cause.
    pub(super) causes: BTreeMap<&'static str, u64>,
    /// The first differences and failures.
    pub(super) examples: Vec<Example>,
}

/// The cost of a codec's messages.
#[derive(Debug, Default, Serialize)]
pub(super) struct Cost {
    /// Of the last messages.
    pub(super) median: u64,
    pub(super) max: u64,
    #[serde(skip)]
    samples: Vec<u64>,
    #[serde(skip)]
    next: usize,
}

/// A difference or a failure.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Example {
    pub(super) cause: &'static str,
    /// Path at which the objects differ; empty for a failure.
    pub(super) path: String,
    /// ChirpStack's value there, or the reason of its failure.
    pub(super) there: Option<String>,
    /// Our value there, or the reason of our failure.
    pub(super) here: Option<String>,
}

impl Report {
    pub(super) fn new(started: Timestamp, fuel_max: u64) -> Self {
        Self { started, ended: started, fuel_max, totals: Counts::default(), codecs: BTreeMap::new() }
    }

    /// Adds the results of an uplink.
    pub(super) fn add(&mut self, observation: &Observation) {
        let (counts, found) = judge(&observation.theirs, &observation.ours);
        self.totals.add(&counts);
        if self.codecs.len() >= CODECS_MAX && !self.codecs.contains_key(&observation.profile_id) {
            return;
        }
        let codec = self.codecs.entry(observation.profile_id.clone()).or_default();
        codec.name.clone_from(&observation.profile_name);
        codec.counts.add(&counts);
        if matches!(observation.ours, Verdict::Object(_)) {
            codec.microseconds.add(u64::try_from(observation.elapsed.as_micros()).unwrap_or(u64::MAX));
            codec.fuel.add(observation.fuel);
        }
        for example in found {
            *codec.causes.entry(example.cause).or_default() += 1;
            if codec.examples.len() < EXAMPLES_MAX && !codec.examples.contains(&example) {
                codec.examples.push(example);
            }
        }
    }

    /// Completes the report; more can be added afterwards.
    pub(super) fn finish(&mut self, now: Timestamp) {
        self.ended = now;
        for codec in self.codecs.values_mut() {
            codec.microseconds.finish();
            codec.fuel.finish();
        }
    }

    /// The counts in one line.
    pub(super) fn line(&self) -> String {
        text::line(&self.totals)
    }

    /// The report as a web page.
    pub(super) fn html(&self) -> String {
        html(self)
    }

    /// The report for a terminal.
    pub(super) fn text(&self) -> String {
        text::text(self)
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.equal += other.equal;
        self.different += other.different;
        self.failed_there += other.failed_there;
        self.failed_here += other.failed_here;
        self.failed_both += other.failed_both;
        self.only_here += other.only_here;
        self.without_codec += other.without_codec;
    }
}

impl Cost {
    fn add(&mut self, value: u64) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(value);
        } else {
            self.samples[self.next] = value;
        }
        self.next = (self.next + 1) % SAMPLES_MAX;
        self.max = self.max.max(value);
    }

    fn finish(&mut self) {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        self.median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    }
}

/// Compares two verdicts; returns what to count, and the differences.
fn judge(theirs: &Verdict, ours: &Verdict) -> (Counts, Vec<Example>) {
    let mut counts = Counts { messages: 1, ..Counts::default() };
    let found = match (theirs, ours) {
        (Verdict::Object(there), Verdict::Object(here)) => {
            let parse = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
            let (there, here) = (parse(there.get()), parse(here.get()));
            let found: Vec<_> = differences(&there, &here, false).into_iter().map(Example::difference).collect();
            *(if found.is_empty() { &mut counts.equal } else { &mut counts.different }) = 1;
            found
        }
        (Verdict::Failed(there), Verdict::Failed(here)) => {
            counts.failed_both = 1;
            vec![Example::failure("fails in both", Some(there), Some(here))]
        }
        (Verdict::Failed(there), _) => {
            counts.failed_there = 1;
            vec![Example::failure(cause::of_failure_there(there), Some(there), None)]
        }
        (_, Verdict::Failed(here)) => {
            counts.failed_here = 1;
            vec![Example::failure("fails here only", None, Some(here))]
        }
        (Verdict::Nothing, Verdict::Object(_)) => {
            counts.only_here = 1;
            Vec::new()
        }
        (Verdict::Object(there), Verdict::Nothing) => {
            counts.different = 1;
            vec![Example::failure("decoded there only", Some(there.get()), None)]
        }
        (Verdict::Nothing, Verdict::Nothing) => {
            counts.without_codec = 1;
            Vec::new()
        }
    };
    (counts, found)
}

impl Example {
    fn difference(difference: workbench::Difference) -> Self {
        let cause = cause::of_difference(difference.expected.as_deref(), difference.got.as_deref());
        Self { cause, path: difference.path, there: difference.expected, here: difference.got }
    }

    fn failure(cause: &'static str, there: Option<&str>, here: Option<&str>) -> Self {
        Self { cause, path: String::new(), there: there.map(truncate), here: here.map(truncate) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::RawValue;

    use super::*;

    fn object(text: &str) -> Verdict {
        Verdict::Object(RawValue::from_string(text.to_owned()).unwrap())
    }

    fn failed(text: &str) -> Verdict {
        Verdict::Failed(text.to_owned())
    }

    fn observation(theirs: Verdict, ours: Verdict) -> Observation {
        let (profile_id, profile_name) = ("p1".to_owned(), "Profile <1>".to_owned());
        Observation { profile_id, profile_name, theirs, ours, fuel: 1000, elapsed: Duration::from_micros(7) }
    }

    #[test]
    fn every_pair_of_verdicts_is_counted_once() {
        let mut report = Report::new(Timestamp::default(), 100_000);
        for (theirs, ours) in [
            (object(r#"{"b":1.0,"a":[2]}"#), object(r#"{"a":[2.0],"b":1}"#)),
            (object(r#"{"a":1}"#), object(r#"{"a":2}"#)),
            (failed("JS error: Error: interrupted"), object("{}")),
            (object("{}"), failed("the decoder used up its fuel")),
            (failed("a"), failed("b")),
            (Verdict::Nothing, object("{}")),
            (Verdict::Nothing, Verdict::Nothing),
        ] {
            report.add(&observation(theirs, ours));
        }
        let expected = Counts {
            messages: 7,
            equal: 1,
            different: 1,
            failed_there: 1,
            failed_here: 1,
            failed_both: 1,
            only_here: 1,
            without_codec: 1,
        };
        report.finish(Timestamp::default());
        let codec = &report.codecs["p1"];
        assert_eq!((&report.totals, &codec.counts), (&expected, &expected));
        assert_eq!((codec.microseconds.median, codec.fuel.max), (7, 1000));
        assert_eq!(codec.causes["time-out there"], 1);
        assert_eq!(codec.examples[0].path, "a");
        assert!(report.text().contains("Profile <1>"));
        let page = html(&report);
        assert!(page.contains("Profile &lt;1&gt;") && !page.contains("Profile <1>"), "{page}");
    }
}
