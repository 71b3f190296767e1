//! The rows of the table of devices: when each was last seen, its battery, and its frames that are missing.
//!
//! A page asks once for its devices, and once for the newest uplinks of all of them.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use api::{
    device::{FoundDevices, NewestUplinks, NewestUplinksRequest},
    handler::{Device, device::Device as Network},
    history::Record,
};
use client::handler::HandlerClient;
use types::Timestamp;

use super::{battery::battery, find::dev_eui};
use crate::site::{
    page::{Time, shown},
    viewer::InApplication,
};

/// Number of the newest uplinks of each device that are looked at.
pub(super) const UPLINKS: u32 = 20;

/// A device in the table.
pub(super) struct Row {
    pub(super) dev_id: String,
    pub(super) dev_eui: String,
    pub(super) description: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) last_seen: Option<Time>,
    /// False if it may have been seen later.
    is_known: bool,
    /// True if its uplinks were not found in time.
    pub(super) is_late: bool,
    /// The time for which it has been silent, if that is too long.
    pub(super) silence: Option<String>,
    pub(super) battery: Option<String>,
    pub(super) missing: Option<Missing>,
    pub(super) is_chosen: bool,
}

/// Frames that did not arrive, among those that a device has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) missing: u64,
    pub(super) sent: u64,
}

/// The rows of these devices; `first` names those whose uplinks are looked for before others. Without history, they lack
/// what uplinks say.
pub(super) async fn rows(
    request: &InApplication,
    handler: &HandlerClient,
    found: FoundDevices,
    first: &HashSet<&str>,
) -> Vec<Row> {
    let newest = newest(request, handler, ids(&found.devices, first)).await;
    completed(found, newest)
}

/// The rows with what uplinks say; none if those cannot be read.
fn completed(found: FoundDevices, newest: Option<NewestUplinks>) -> Vec<Row> {
    let FoundDevices { devices, is_partial, .. } = found;
    let is_read = newest.is_some();
    let NewestUplinks { uplinks, unknown } = newest.unwrap_or_default();
    let late: HashSet<&str> = unknown.iter().map(String::as_str).collect();
    let mut of_device: HashMap<&str, Vec<&Record>> = HashMap::new();
    for record in &uplinks {
        of_device.entry(&record.dev_id).or_default().push(record);
    }
    let row = |device: Device| {
        let uplinks = of_device.get(device.dev_id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let is_late = late.contains(device.dev_id.as_str());
        let row = Row { is_known: is_read && !is_partial && !is_late, is_late, ..Row::of(device) };
        row.completed(uplinks)
    };
    devices.into_iter().map(row).collect()
}

impl Row {
    fn of(device: Device) -> Self {
        let attributes = device.attributes.iter().map(|(key, value)| (shown(key), shown(value)));
        let mut attributes: Vec<_> = attributes.collect();
        attributes.sort();
        let seen = match &device.device {
            Some(Network::LorawanDevice(lorawan)) => lorawan.last_seen,
            None => 0,
        };
        Self {
            dev_eui: dev_eui(&device),
            last_seen: (seen > 0).then_some(Time(seen)),
            dev_id: device.dev_id,
            description: shown(&device.description),
            attributes,
            is_known: true,
            is_late: false,
            silence: None,
            battery: None,
            missing: None,
            is_chosen: false,
        }
    }

    /// Adds what the newest uplinks of the device say, the newest first. Simulated uplinks and those of bridges are seen
    /// only there.
    fn completed(self, uplinks: &[&Record]) -> Self {
        let newest = uplinks.first().map(|record| Time(record.time));
        // Simulated uplinks have no counters, and no metadata.
        let counted = uplinks.iter().filter(|record| !record.is_retry && !record.metadata.is_empty());
        Self {
            last_seen: self.last_seen.into_iter().chain(newest).max_by_key(|time| time.0),
            battery: uplinks.iter().find_map(|record| battery(&record.fields)),
            missing: Missing::among(counted.map(|record| record.counter)),
            ..self
        }
    }

    /// The words in place of the time when it was last seen.
    pub(super) fn unseen(&self) -> &'static str {
        match self.is_known {
            true => "never",
            false if self.is_late => "not yet",
            false => "not known",
        }
    }

    /// Says for how long it has been silent, if it was not seen since a time.
    pub(super) fn note_silence(&mut self, since: Timestamp, now: Timestamp) {
        let seen = self.last_seen.map(|Time(nanos)| Timestamp::from_nanos(nanos));
        self.silence = seen.filter(|seen| *seen < since).map(|seen| format!("silent for {}", span(seen, now)));
    }
}

impl Missing {
    /// Compares the counters of a session, from the newest back to where they begin again; none if there is only one.
    fn among(counters: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut counters = counters.into_iter();
        let newest = counters.next()?;
        let (mut oldest, mut arrived) = (newest, 1_u64);
        for counter in counters {
            match counter.cmp(&oldest) {
                Ordering::Less => (oldest, arrived) = (counter, arrived + 1),
                // The same frame once more, as its sender has tried again.
                Ordering::Equal => {}
                Ordering::Greater => break,
            }
        }
        let sent = u64::from(newest - oldest) + 1;
        (arrived > 1).then_some(Self { missing: sent - arrived, sent })
    }
}

/// The ids of devices in the order in which their uplinks are looked for.
fn ids(devices: &[Device], first: &HashSet<&str>) -> Vec<String> {
    let ids = devices.iter().map(|device| device.dev_id.clone());
    let (first, others): (Vec<_>, Vec<_>) = ids.partition(|dev_id| first.contains(dev_id.as_str()));
    [first, others].concat()
}

/// The newest uplinks of devices; none if they cannot be read.
async fn newest(request: &InApplication, handler: &HandlerClient, dev_ids: Vec<String>) -> Option<NewestUplinks> {
    if dev_ids.is_empty() {
        return Some(NewestUplinks::default());
    }
    let newest = NewestUplinksRequest { app_id: request.app_id().to_string(), dev_ids, limit: UPLINKS };
    handler.list_newest_uplinks(newest).await.ok()
}

/// The time between, in its largest unit.
fn span(from: Timestamp, to: Timestamp) -> String {
    let minutes = to.as_millis().saturating_sub(from.as_millis()).max(0) / 60_000;
    match minutes {
        0..60 => format!("{minutes} min"),
        60..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_were_late_are_looked_for_first() {
        let devices = ["a", "b", "c", "d"].map(|id| Device { dev_id: id.to_owned(), ..Device::default() });
        assert_eq!(ids(&devices, &HashSet::from(["d", "b", "other"])), ["b", "d", "a", "c"]);
        assert_eq!(ids(&devices, &HashSet::new()), ["a", "b", "c", "d"]);
    }

    #[test]
    fn frames_that_did_not_arrive_are_counted_within_a_session() {
        let among = |counters: &[u32]| {
            let missing = Missing::among(counters.iter().copied());
            missing.map(|Missing { missing, sent }| (missing, sent))
        };
        assert_eq!(among(&[9, 8, 5, 4]), Some((2, 6)));
        assert_eq!(among(&[3, 2, 1]), Some((0, 3)));
        assert_eq!(among(&[9, 9, 7, 7, 6]), Some((1, 4)), "a frame that is there twice is one");
        assert_eq!(among(&[2, 1, 900, 899, 500]), Some((0, 2)), "it has joined again since");
        assert_eq!(among(&[u32::MAX, 0]), Some(((1 << 32) - 2, 1 << 32)));
        for counters in [&[][..], &[7], &[0, 0, 0]] {
            assert_eq!(among(counters), None, "{counters:?}");
        }
    }

    fn device(dev_id: &str, last_seen: i64) -> Device {
        let lorawan = api::lorawan::Device { last_seen, ..Default::default() };
        Device { dev_id: dev_id.to_owned(), device: Some(Network::LorawanDevice(lorawan)), ..Device::default() }
    }

    #[test]
    fn a_device_of_which_nobody_knows_is_not_called_one_that_was_never_seen() {
        let now = Timestamp::from_millis(3_600_000);
        let silence = |last_seen: i64, is_partial: bool, newest: Option<NewestUplinks>| {
            let found = FoundDevices { devices: vec![device("dev-1", last_seen)], is_partial, ..Default::default() };
            let mut row = completed(found, newest).remove(0);
            row.note_silence(now, now);
            row.silence.clone().unwrap_or_else(|| row.unseen().to_owned())
        };
        let none = || Some(NewestUplinks::default());
        let late = NewestUplinks { unknown: vec!["dev-1".to_owned()], ..NewestUplinks::default() };
        assert_eq!(silence(0, false, none()), "never");
        assert_eq!(silence(0, true, none()), "not known", "history may lack uplinks");
        assert_eq!(silence(0, false, None), "not known", "uplinks cannot be read");
        assert_eq!(silence(0, false, Some(late)), "not yet");
        assert_eq!(silence(1, true, None), "silent for 1 h");
    }

    #[test]
    fn each_device_has_what_its_own_uplinks_say() {
        let uplink = |dev_id: &str, time, counter, fields: &str| Record {
            dev_id: dev_id.to_owned(),
            time,
            counter,
            fields: fields.to_owned(),
            metadata: "{}".to_owned(),
            ..Record::default()
        };
        let simulated = Record { metadata: String::new(), ..uplink("dev-1", 85, 0, "") };
        let uplinks = vec![
            uplink("dev-1", 90, 9, ""),
            simulated,
            uplink("dev-1", 80, 6, r#"{"battery": 7}"#),
            uplink("dev-2", 70, 1, r#"{"battery": 8}"#),
        ];
        let devices = vec![device("dev-1", 100), device("dev-2", 60), device("dev-3", 50)];
        let newest = NewestUplinks { uplinks, unknown: Vec::new() };
        let rows = completed(FoundDevices { devices, ..Default::default() }, Some(newest));
        let shown = rows.iter().map(|row| {
            let missing = row.missing.map(|Missing { missing, sent }| (missing, sent));
            (row.last_seen.map(|Time(nanos)| nanos), row.battery.as_deref(), missing)
        });
        let expected = [(Some(100), Some("7"), Some((2, 4))), (Some(70), Some("8"), None), (Some(50), None, None)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn silence_is_told_in_its_largest_unit() {
        let now = Timestamp::from_millis(30 * 24 * 3_600_000);
        let minutes = |minutes: i64| span(Timestamp::from_millis(now.as_millis() - minutes * 60_000), now);
        assert_eq!([0, 59, 60, 2879, 2880].map(minutes), ["0 min", "59 min", "1 h", "47 h", "2 days"]);
        assert_eq!(span(now, Timestamp::from_millis(0)), "0 min", "of a device whose clock is ahead");
    }
}
