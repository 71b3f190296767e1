//! The report of a shadow run: for each codec the counts of agreement, differences with likely causes, and the cost.

mod cause;
mod html;
mod text;

use std::collections::BTreeMap;

use bridge::{Observation, ObservedResult};
use serde::Serialize;
use serde_json::Value;
use types::Timestamp;
use workbench::{differences, truncate};

use self::html::html;

/// Maximum number of codecs in a report; messages of further ones are counted in the totals only.
const CODECS_MAX: usize = 10_000;
/// Maximum length of a codec's id, in bytes; messages of longer ones are counted in the totals only.
const ID_BYTES_MAX: usize = 512;
/// Maximum number of examples of differences and failures of a codec.
const EXAMPLES_MAX: usize = 8;
/// Number of a codec's last messages that its median covers: 2 KiB for time and fuel of each codec.
const SAMPLES_MAX: usize = 128;

/// A report, complete at any time.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Start of the run.
    pub(crate) started: Timestamp,
    /// Time of the report.
    pub(crate) ended: Timestamp,
    /// The fuel that a message may use.
    pub(crate) fuel_max: u64,
    /// All codecs together.
    pub(crate) totals: Counts,
    /// Each codec, by the id of its device profile.
    pub(crate) codecs: BTreeMap<String, Codec>,
}

/// Number of messages by result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    /// Both have the same object.
    pub(crate) equal: u64,
    /// Both have an object, and they differ.
    pub(crate) different: u64,
    /// ChirpStack's run failed, ours did not.
    pub(crate) failed_there: u64,
    /// Our run failed, ChirpStack's did not.
    pub(crate) failed_here: u64,
    /// Both failed.
    pub(crate) failed_both: u64,
    /// ChirpStack did not decode it and reported no failure, for example because its codec is switched off.
    pub(crate) only_here: u64,
    /// Nobody decodes it.
    pub(crate) without_codec: u64,
}

/// Findings about one codec.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Codec {
    /// The name of the device profile.
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Time in the sandbox, in microseconds.
    pub(crate) microseconds: Cost,
    /// Fuel.
    pub(crate) fuel: Cost,
    /// Number of differences and failures, by likely cause.
    pub(crate) causes: BTreeMap<&'static str, u64>,
    /// The first differences and failures.
    pub(crate) examples: Vec<Example>,
}

/// The cost of a codec's messages.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Cost {
    /// Of the last messages.
    pub(crate) median: u64,
    pub(crate) max: u64,
    #[serde(skip)]
    samples: Vec<u64>,
    #[serde(skip)]
    next: usize,
}

/// A difference or a failure.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Example {
    pub(crate) cause: &'static str,
    /// Path at which the objects differ; empty for a failure.
    pub(crate) path: String,
    /// ChirpStack's value there, or the reason of its failure.
    pub(crate) there: Option<String>,
    /// Our value there, or the reason of our failure.
    pub(crate) here: Option<String>,
}

impl Report {
    pub(crate) fn new(started: Timestamp, fuel_max: u64) -> Self {
        Self { started, ended: started, fuel_max, totals: Counts::default(), codecs: BTreeMap::new() }
    }

    /// Adds the results of an uplink.
    pub(crate) fn add(&mut self, observation: &Observation) {
        let (counts, found) = judge(&observation.theirs, &observation.ours);
        self.totals.add(&counts);
        let id = &observation.profile_id;
        let is_full = self.codecs.len() >= CODECS_MAX && !self.codecs.contains_key(id);
        if is_full || id.len() > ID_BYTES_MAX {
            return;
        }
        let codec = self.codecs.entry(id.clone()).or_default();
        codec.name.clone_from(&observation.profile_name);
        codec.counts.add(&counts);
        if matches!(observation.ours, ObservedResult::Object(_)) {
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
    pub(crate) fn finish(&mut self, now: Timestamp) {
        self.ended = now;
        for codec in self.codecs.values_mut() {
            codec.microseconds.finish();
            codec.fuel.finish();
        }
    }

    /// The codecs, in the order in which they are looked at.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Codec> {
        text::listed(self).into_iter().map(|(_, codec)| codec)
    }

    /// The counts in one line.
    pub(crate) fn line(&self) -> String {
        text::line(&self.totals)
    }

    /// The report as a web page.
    pub(crate) fn html(&self) -> askama::Result<String> {
        html(self)
    }

    /// The report for a terminal.
    pub(crate) fn text(&self) -> String {
        text::text(self)
    }
}

impl Codec {
    /// Its counts in one line.
    pub(crate) fn line(&self) -> String {
        text::line(&self.counts)
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
fn judge(theirs: &ObservedResult, ours: &ObservedResult) -> (Counts, Vec<Example>) {
    let mut counts = Counts { messages: 1, ..Counts::default() };
    let found = match (theirs, ours) {
        (ObservedResult::Object(there), ObservedResult::Object(here)) => {
            let parse = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
            let (there, here) = (parse(there.get()), parse(here.get()));
            let found: Vec<_> = differences(&there, &here, false).into_iter().map(Example::difference).collect();
            *(if found.is_empty() { &mut counts.equal } else { &mut counts.different }) = 1;
            found
        }
        (ObservedResult::Failed(there), ObservedResult::Failed(here)) => {
            counts.failed_both = 1;
            vec![Example::failure("fails in both", Some(there), Some(here))]
        }
        (ObservedResult::Failed(there), _) => {
            counts.failed_there = 1;
            vec![Example::failure(cause::of_failure_there(there), Some(there), None)]
        }
        (_, ObservedResult::Failed(here)) => {
            counts.failed_here = 1;
            vec![Example::failure("fails here only", None, Some(here))]
        }
        (ObservedResult::Nothing, ObservedResult::Object(_)) => {
            counts.only_here = 1;
            Vec::new()
        }
        (ObservedResult::Object(there), ObservedResult::Nothing) => {
            counts.different = 1;
            vec![Example::failure("decoded there only", Some(there.get()), None)]
        }
        (ObservedResult::Nothing, ObservedResult::Nothing) => {
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

    use bridge::ObservedApplication;
    use serde_json::value::RawValue;

    use super::*;

    fn object(text: &str) -> ObservedResult {
        ObservedResult::Object(RawValue::from_string(text.to_owned()).unwrap())
    }

    fn failed(text: &str) -> ObservedResult {
        ObservedResult::Failed(text.to_owned())
    }

    fn observation(theirs: ObservedResult, ours: ObservedResult) -> Observation {
        let (profile_id, profile_name) = ("p1".to_owned(), "Profile <1>".to_owned());
        let application = ObservedApplication::default();
        let elapsed = Duration::from_micros(7);
        Observation { application, profile_id, profile_name, theirs, ours, fuel: 1000, elapsed }
    }

    #[test]
    fn a_codec_whose_id_is_too_long_is_in_the_totals_only() {
        let mut report = Report::new(Timestamp::default(), 100_000);
        for length in [ID_BYTES_MAX, ID_BYTES_MAX + 1] {
            let profile_id = "p".repeat(length);
            report.add(&Observation { profile_id, ..observation(object("{}"), object("{}")) });
        }
        assert_eq!((report.totals.equal, report.codecs.len()), (2, 1));
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
            (ObservedResult::Nothing, object("{}")),
            (ObservedResult::Nothing, ObservedResult::Nothing),
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
        let page = html(&report).unwrap();
        assert!(page.contains("Profile &#60;1&#62;") && !page.contains("Profile <1>"), "{page}");
        let label = "1 equal, 1 different, 1 failed there only, 1 failed here only, 3 other";
        assert!(page.contains(label) && page.contains("1000 (1.0%)"), "{page}");
    }
}
