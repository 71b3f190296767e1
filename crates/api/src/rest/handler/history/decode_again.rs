//! Bodies about stored uplinks that are decoded again, which v2 did not have.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::{DevId, Timestamp};

use super::super::{super::json::is_default, HandlerApplication, RefusedMessages};

/// Which stored uplinks to decode again, with which functions, and what to do with what comes out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeAgain {
    /// The device; all if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "Option<DevId>")]
    pub dev_id: String,
    /// Recorded at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Recorded before this time; now if it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The LoRaWAN port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// Only those whose functions failed, or whose validator refused them.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: bool,
    /// Text in the fields, the failure, the logs or the warnings, as JSON has it.
    #[serde(skip_serializing_if = "is_default")]
    pub text: String,
    /// A condition on a field, such as `fields.temperature > 30`.
    #[serde(skip_serializing_if = "is_default")]
    pub field: String,
    /// Where to go on: `next` of the last report.
    #[serde(skip_serializing_if = "is_default")]
    pub after: String,
    /// The functions to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<HandlerApplication>,
    /// The version whose functions run, if `functions` is omitted; the one that is live if this is, too.
    #[serde(skip_serializing_if = "is_default")]
    pub version: u32,
    /// True if each uplink runs with the functions that it ran with when it came: then all must be equal, with the
    /// same logs, warnings and fuel.
    #[serde(skip_serializing_if = "is_default")]
    pub verify: bool,
    /// True if the functions run on each uplink within the limits that it had when it came, and not within those of
    /// now. The results are compared with the originals then, and not with corrections. With `verify`, both are always
    /// so.
    #[serde(skip_serializing_if = "is_default")]
    pub recorded_limits: bool,
    /// True to compare with the results of the live functions, and not with the stored ones.
    #[serde(skip_serializing_if = "is_default")]
    pub compare_live: bool,
    /// Number of uplinks of each device, from the newest on; all if it is omitted. At most 100,000 of the newest
    /// million uplinks are decoded then.
    #[serde(skip_serializing_if = "is_default")]
    pub per_device: u32,
    /// True if what has changed is kept as a revision beside the original.
    #[serde(skip_serializing_if = "is_default")]
    pub write: bool,
    /// True if what has changed is published, with `revision` and `corrects`. Needs `write`.
    #[serde(skip_serializing_if = "is_default")]
    pub publish: bool,
    /// Maximum number of messages to publish each second; 200 if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    pub publish_per_s: u32,
    /// Time after which it ends with its next report, in seconds; without end if it is omitted.
    #[serde(skip_serializing_if = "is_default")]
    pub seconds_max: u32,
}

/// Maximum number of places and reasons told apart in a sum of reports.
const PLACES_MAX: usize = 1000;
/// Maximum number of days that are told apart.
const DAYS_MAX: usize = 400;

/// Verdicts on the uplinks since the report before.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DecodeReport {
    /// Number of uplinks that were looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub examined: u64,
    /// Verdicts on them.
    #[serde(flatten)]
    pub verdicts: Verdicts,
    /// With `verify` or `recorded_limits`: how many did not run, because their functions or limits are no longer known,
    /// or a limit is lower now; with `verify` also those on which no functions ran.
    #[serde(skip_serializing_if = "is_default")]
    pub not_repeatable: u64,
    /// Number of these that did not run because a limit is lower now.
    #[serde(skip_serializing_if = "is_default")]
    pub limited: u64,
    /// The limits that are lower now than when these came, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lower_limits: BTreeMap<String, LowerLimit>,
    /// Number of corrections that were kept.
    #[serde(skip_serializing_if = "is_default")]
    pub written: u64,
    /// Number of those that all who want them have taken, into their queues.
    #[serde(skip_serializing_if = "is_default")]
    pub published: u64,
    /// Number of those that somebody did not take: see `receivers`. Others may have.
    #[serde(skip_serializing_if = "is_default")]
    pub refused: u64,
    /// Number of those that nobody wants: there is no subscriber, and no output for them.
    #[serde(skip_serializing_if = "is_default")]
    pub unwanted: u64,
    /// Who refused corrections, such as `webhook my-hook`: at most 200. MQTT sessions are named by a hash.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub receivers: BTreeMap<String, RefusedMessages>,
    /// Number of those that were not published, because their device is gone.
    #[serde(skip_serializing_if = "is_default")]
    pub not_published: u64,
    /// The fuel that they used before.
    #[serde(skip_serializing_if = "is_default")]
    pub fuel_before: u64,
    /// The fuel that they use now.
    #[serde(skip_serializing_if = "is_default")]
    pub fuel_after: u64,
    /// The places that have changed, such as `fields.history[].time`: at most 200.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, ChangedField>,
    /// Reasons of those that newly fail: at most 200.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, NewFailure>,
    /// Verdicts on the uplinks of each day, by the date on which they were recorded: at most 400 days.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<String, Verdicts>,
    /// Files of history that could not be read, so that their uplinks are missing: at most 200.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unreadable_files: BTreeSet<String>,
    /// Files that were read although they have no checksums, each with the number of such rows in it: at most 200. Changed
    /// bytes of them are not noticed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unchecked_files: BTreeMap<String, u64>,
    /// With `per_device` or `seconds_max`, in the last report: whether there may be further uplinks, at which nobody
    /// looked.
    #[serde(skip_serializing_if = "is_default")]
    pub is_cut: bool,
    /// Where to go on after this report; omitted in the last one.
    #[serde(skip_serializing_if = "is_default")]
    pub next: String,
    /// True if this is the last report. If none says so, the last `next` says where to go on.
    #[serde(skip_serializing_if = "is_default")]
    pub done: bool,
    /// The reason why it ended too early.
    #[serde(skip_serializing_if = "is_default")]
    pub error: String,
    /// With `error`: whether it may go on if it is asked for again, such as when the disk was slow.
    #[serde(skip_serializing_if = "is_default")]
    pub temporary: bool,
}

impl DecodeReport {
    /// Maximum number of places, and of reasons, that one report names. A report with that many may leave out others.
    pub const NAMED_MAX: usize = 200;
    /// Maximum number of changed places of one uplink that are told apart. A report with that many may leave out others.
    pub const NAMED_OF_UPLINK_MAX: usize = 100;

    /// Adds what was found later.
    pub fn add(&mut self, later: Self) {
        for (total, more) in [
            (&mut self.examined, later.examined),
            (&mut self.not_repeatable, later.not_repeatable),
            (&mut self.limited, later.limited),
            (&mut self.written, later.written),
            (&mut self.published, later.published),
            (&mut self.refused, later.refused),
            (&mut self.unwanted, later.unwanted),
            (&mut self.not_published, later.not_published),
            (&mut self.fuel_before, later.fuel_before),
            (&mut self.fuel_after, later.fuel_after),
        ] {
            *total += more;
        }
        self.verdicts.add(&later.verdicts);
        for (name, limit) in later.lower_limits {
            add_counted(&mut self.lower_limits, name, limit, LowerLimit::add);
        }
        for (path, field) in later.fields {
            add_counted(&mut self.fields, path, field, |total, field| total.count += field.count);
        }
        for (reason, failure) in later.failures {
            add_counted(&mut self.failures, reason, failure, |total, failure| total.count += failure.count);
        }
        for (receiver, refused) in later.receivers {
            RefusedMessages::add_to(&mut self.receivers, receiver, refused);
        }
        for (date, verdicts) in later.days {
            self.add_day(date, &verdicts);
        }
        self.unreadable_files.extend(later.unreadable_files);
        self.unchecked_files.extend(later.unchecked_files);
        self.is_cut |= later.is_cut;
        self.done |= later.done;
    }

    /// Adds what came of uplinks of a day; another day only while there is room.
    pub fn add_day(&mut self, date: String, verdicts: &Verdicts) {
        if self.days.len() < DAYS_MAX || self.days.contains_key(&date) {
            self.days.entry(date).or_default().add(verdicts);
        }
    }
}

/// Adds to the entry with this name; a new one only while there is room.
fn add_counted<T>(entries: &mut BTreeMap<String, T>, name: String, new: T, add: impl Fn(&mut T, &T)) {
    let has_room = entries.len() < PLACES_MAX;
    match entries.get_mut(&name) {
        Some(entry) => add(entry, &new),
        None if has_room => _ = entries.insert(name, new),
        None => {}
    }
}

/// Number of uplinks with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Verdicts {
    /// Number of those with the same fields as before.
    #[serde(skip_serializing_if = "is_default")]
    pub equal: u64,
    /// Number of those with the same fields as their newest correction, which an earlier run has kept.
    #[serde(skip_serializing_if = "is_default")]
    pub already_corrected: u64,
    /// Number of those with other fields.
    #[serde(skip_serializing_if = "is_default")]
    pub changed: u64,
    /// Number of those that were decoded before, and fail now or are refused by the validator.
    #[serde(skip_serializing_if = "is_default")]
    pub newly_failing: u64,
    /// Number of those that were not decoded before, and are now.
    #[serde(skip_serializing_if = "is_default")]
    pub newly_decoded: u64,
    /// Number of those that fail as before.
    #[serde(skip_serializing_if = "is_default")]
    pub still_failing: u64,
}

impl Verdicts {
    /// Adds those of other uplinks.
    pub fn add(&mut self, other: &Self) {
        self.equal += other.equal;
        self.already_corrected += other.already_corrected;
        self.changed += other.changed;
        self.newly_failing += other.newly_failing;
        self.newly_decoded += other.newly_decoded;
        self.still_failing += other.still_failing;
    }
}

/// A limit that is lower now than when uplinks came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LowerLimit {
    /// Number of uplinks that did not run because of it.
    pub count: u64,
    /// The limit when they came; the highest, if it was not the same for all.
    pub then: u64,
    /// The limit now.
    pub now: u64,
}

impl LowerLimit {
    fn add(&mut self, later: &Self) {
        self.count += later.count;
        self.then = self.then.max(later.then);
    }
}

/// A place that has changed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedField {
    /// In how many uplinks.
    pub count: u64,
    /// One of them.
    pub example: FieldExample,
}

/// An uplink in which a place has changed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldExample {
    /// The id of its record.
    pub id: String,
    /// Its device.
    pub dev_id: String,
    /// The value before; omitted for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub before: Option<Box<RawValue>>,
    /// The value now; omitted for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub after: Option<Box<RawValue>>,
}

/// The reason why uplinks fail that were decoded before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewFailure {
    /// Number of uplinks.
    pub count: u64,
    /// The id of the record of one of them.
    pub id: String,
    /// Its device.
    pub dev_id: String,
}
