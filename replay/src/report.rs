//! Findings of a replay, counted by field, by failure and by day, with examples. Everything in it is bounded.

mod counts;
mod limits;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};
use types::Timestamp;
use workbench::{Difference, truncate};

pub use self::counts::{Counts, UpdateCounts};
use self::limits::{DAMAGES_MAX, DAYS_MAX, EXAMPLES_MAX, FAILURES_MAX, FIELDS_MAX, PROFILES_MAX};
use crate::{
    Name, RecordedUplink,
    check::{Checked, Verdict},
};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// A report, complete at any time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// All uplinks that ran.
    #[serde(flatten)]
    pub counts: Counts,
    /// Uplinks that were not wanted.
    pub left_out: u64,
    /// Uplinks that were corrected later: only the newest revision runs.
    pub outdated: u64,
    /// Uplinks for whose profile there is no codec.
    pub without_codec: u64,
    /// These profiles, each with its number of uplinks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles_without_codec: BTreeMap<String, u64>,
    /// The profiles of all uplinks, each with its number of uplinks; none unless codecs were given for profiles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, u64>,
    /// Messages that are no uplinks, such as joins.
    pub others: u64,
    /// Messages that cannot be used.
    pub damaged: u64,
    /// The statements of SQL.
    #[serde(skip_serializing_if = "UpdateCounts::is_empty")]
    pub updates: UpdateCounts,
    /// The most fuel that an uplink used.
    pub fuel_max: u64,
    /// The places in which results differ, without the numbers of elements; uplinks in further ones are counted only.
    pub fields: BTreeMap<String, Field>,
    /// Failures of uplinks that were decoded before, by reason, each with its first uplink.
    pub newly_failing_by: BTreeMap<String, Field>,
    /// Failures of uplinks that were not decoded before either, by reason.
    pub still_failing_by: BTreeMap<String, Field>,
    /// The first that are decoded now.
    pub newly_decoded_examples: Vec<Example>,
    /// The first that cannot be used.
    pub damage: Vec<Damage>,
    /// The days on which uplinks were received.
    pub days: BTreeMap<Day, Counts>,
}

/// A field that differs, or a failure.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// Number of uplinks.
    pub uplinks: u64,
    /// The first of them.
    pub example: Example,
}

/// One uplink.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// Its place in the source.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// The device; empty if it is not known.
    pub device: String,
    /// Time at which it was received.
    pub time: Option<Timestamp>,
    /// The port.
    pub port: u8,
    /// The payload, in hexadecimal, possibly truncated.
    pub payload: String,
    /// The stored object as JSON, possibly truncated; `None` if there was none.
    pub old: Option<String>,
    /// The object that comes out now, likewise.
    pub new: Option<String>,
}

/// Something that cannot be used.
#[derive(Clone, Debug, Serialize)]
pub struct Damage {
    /// Its place in the source.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// The reason, for people.
    pub reason: String,
}

/// A number in a source, such as `line 7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The unit of the number, such as `line`.
    pub unit: &'static str,
    /// The number, from 1.
    pub number: u64,
}

/// A day, by its number since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Report {
    pub(crate) fn add(&mut self, place: Place, uplink: &RecordedUplink, checked: Checked) {
        let Checked { verdict, object, fuel } = checked;
        let counts = Counts::of(&verdict);
        self.counts.add(&counts);
        self.fuel_max = self.fuel_max.max(fuel);
        if let Some(time) = uplink.time {
            self.add_day(Day(time.as_millis().div_euclid(DAY_MS)), &counts);
        }
        let example = |old: Option<&str>, new: Option<&str>| Example::new(place, uplink, old, new);
        let old = uplink.object.as_ref().map(|object| object.get());
        match verdict {
            Verdict::Equal => {}
            Verdict::Changed(differences) => self.add_differences(differences, &example),
            Verdict::NewlyDecoded if self.newly_decoded_examples.len() < EXAMPLES_MAX => {
                self.newly_decoded_examples.push(example(None, object.as_ref().map(|object| object.get())));
            }
            Verdict::NewlyDecoded => {}
            Verdict::NewlyFailing(failure) => {
                count(&mut self.newly_failing_by, &failure, FAILURES_MAX, 1, || example(old, None));
            }
            Verdict::StillFailing(failure) => {
                count(&mut self.still_failing_by, &failure, FAILURES_MAX, 1, || example(None, None));
            }
        }
    }

    /// Counts each field of an uplink once.
    fn add_differences(
        &mut self,
        differences: Vec<Difference>,
        example: &dyn Fn(Option<&str>, Option<&str>) -> Example,
    ) {
        let mut first: BTreeMap<String, Difference> = BTreeMap::new();
        for difference in differences {
            first.entry(without_numbers(&difference.path).into_owned()).or_insert(difference);
        }
        for (path, Difference { expected, got, .. }) in first {
            count(&mut self.fields, &path, FIELDS_MAX, 1, || example(expected.as_deref(), got.as_deref()));
        }
    }

    pub(crate) fn add_without_codec(&mut self, profile: &Name) {
        self.without_codec += 1;
        count_profile(&mut self.profiles_without_codec, shown_name(profile), 1);
    }

    pub(crate) fn add_profile(&mut self, profile: &Name) {
        count_profile(&mut self.profiles, shown_name(profile), 1);
    }

    pub(crate) fn add_damage(&mut self, place: Place, reason: &str) {
        self.damaged += 1;
        if self.damage.len() < DAMAGES_MAX {
            self.damage.push(Damage { place, reason: truncate(reason) });
        }
    }

    fn add_day(&mut self, day: Day, counts: &Counts) {
        if self.days.len() < DAYS_MAX || self.days.contains_key(&day) {
            self.days.entry(day).or_default().add(counts);
        }
    }

    /// Adds what comes after this in the source.
    pub fn merge(&mut self, next: Self) {
        self.counts.add(&next.counts);
        self.left_out += next.left_out;
        self.outdated += next.outdated;
        self.without_codec += next.without_codec;
        self.others += next.others;
        self.damaged += next.damaged;
        self.updates.add(next.updates);
        self.fuel_max = self.fuel_max.max(next.fuel_max);
        for (all, part, max) in [
            (&mut self.fields, next.fields, FIELDS_MAX),
            (&mut self.newly_failing_by, next.newly_failing_by, FAILURES_MAX),
            (&mut self.still_failing_by, next.still_failing_by, FAILURES_MAX),
        ] {
            for (name, Field { uplinks, example }) in part {
                count(all, &name, max, uplinks, || example);
            }
        }
        for (all, part) in
            [(&mut self.profiles_without_codec, next.profiles_without_codec), (&mut self.profiles, next.profiles)]
        {
            part.into_iter().for_each(|(name, uplinks)| count_profile(all, name, uplinks));
        }
        let examples = EXAMPLES_MAX - self.newly_decoded_examples.len();
        self.newly_decoded_examples.extend(next.newly_decoded_examples.into_iter().take(examples));
        let damages = DAMAGES_MAX - self.damage.len();
        self.damage.extend(next.damage.into_iter().take(damages));
        for (day, counts) in next.days {
            self.add_day(day, &counts);
        }
    }
}

/// Counts uplinks by the name of their profile.
fn count_profile(profiles: &mut BTreeMap<String, u64>, name: String, uplinks: u64) {
    if profiles.len() < PROFILES_MAX || profiles.contains_key(&name) {
        *profiles.entry(name).or_default() += uplinks;
    }
}

/// The name of a profile for people.
fn shown_name(profile: &Name) -> String {
    truncate(if profile.other.is_empty() { &profile.id } else { &profile.other })
}

/// Counts uplinks by a name, of which there are at most `max`.
fn count(
    fields: &mut BTreeMap<String, Field>,
    name: &str,
    max: usize,
    uplinks: u64,
    example: impl FnOnce() -> Example,
) {
    let name = truncate(name);
    if let Some(field) = fields.get_mut(&name) {
        field.uplinks += uplinks;
    } else if fields.len() < max {
        fields.insert(name, Field { uplinks, example: example() });
    }
}

/// A path in which all elements of a list are one field: `history[].time`.
fn without_numbers(path: &str) -> Cow<'_, str> {
    if !path.contains('[') {
        return Cow::Borrowed(path);
    }
    let mut plain = String::new();
    let mut parts = path.split('[');
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push('[');
        plain.push_str(part.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    Cow::Owned(plain)
}

impl Example {
    fn new(place: Place, uplink: &RecordedUplink, old: Option<&str>, new: Option<&str>) -> Self {
        Self {
            place,
            device: truncate(&uplink.device.id),
            time: uplink.time,
            port: uplink.port,
            payload: truncate(&hex::encode(&uplink.payload)),
            old: old.map(truncate),
            new: new.map(truncate),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.unit, self.number)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Timestamp::from_millis(self.0.saturating_mul(DAY_MS)).to_rfc3339();
        out.write_str(text.split('T').next().unwrap_or_default())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn as_text<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}
