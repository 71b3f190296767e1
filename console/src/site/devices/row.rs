//! The rows of the table of devices: when each was last seen, its battery, and its frames that are missing.
//!
//! A page asks for each of its devices once, and once for the newest uplinks of the application, whatever it shows.

use std::{cmp::Ordering, collections::HashMap};

use api::{
    handler::{Device, device::Device as Network},
    history::{Query, Record},
};
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::{DevId, Timestamp};

use super::{battery::battery, find::dev_eui, steps::PARALLEL};
use crate::{
    Result,
    site::{
        page::{Time, shown},
        viewer::InApplication,
    },
};

/// Number of the newest uplinks of an application that are looked at.
const UPLINKS: u32 = 1000;

/// A device in the table.
pub(super) struct Row {
    pub(super) dev_id: String,
    pub(super) dev_eui: String,
    pub(super) description: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) last_seen: Option<Time>,
    /// False if the handler did not say when it was seen.
    is_known: bool,
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

/// The rows of these devices. Without history, they lack what uplinks say.
pub(super) async fn rows(request: &InApplication, handler: &HandlerClient, devices: Vec<Device>) -> Vec<Row> {
    let read = uplinks(request, handler, devices.is_empty()).await;
    let (uplinks, is_read) = (read.as_deref().unwrap_or_default(), read.is_some());
    let mut of_device: HashMap<&str, Vec<&Record>> = HashMap::new();
    for record in uplinks {
        of_device.entry(&record.dev_id).or_default().push(record);
    }
    let rows: Vec<_> =
        stream::iter(devices).map(|device| row(request, handler, device)).buffered(PARALLEL).collect().await;
    let completed = |row: Row| {
        let uplinks = of_device.get(row.dev_id.as_str()).map(Vec::as_slice).unwrap_or_default();
        row.completed(uplinks, is_read)
    };
    rows.into_iter().map(completed).collect()
}

impl Row {
    /// Adds what the newest uplinks of the device say, the newest first. Simulated uplinks and those of
    /// bridges are seen only there; if these uplinks could not be read, nobody knows when.
    fn completed(self, uplinks: &[&Record], is_read: bool) -> Self {
        let newest = uplinks.first().map(|record| Time(record.time));
        Self {
            is_known: self.is_known && (is_read || self.last_seen.is_some()),
            last_seen: self.last_seen.into_iter().chain(newest).max_by_key(|time| time.0),
            battery: uplinks.iter().find_map(|record| battery(&record.fields)),
            missing: Missing::among(uplinks.iter().filter(|record| !record.is_retry).map(|record| record.counter)),
            ..self
        }
    }

    /// Says for how long it has been silent, if it was not seen since a time.
    pub(super) fn note_silence(&mut self, since: Timestamp, now: Timestamp) {
        let seen = self.last_seen.map(|Time(nanos)| Timestamp::from_nanos(nanos));
        self.silence = match seen {
            None if !self.is_known => Some("not known".to_owned()),
            None => Some("never seen".to_owned()),
            Some(seen) if seen < since => Some(format!("silent for {}", span(seen, now))),
            Some(_) => None,
        };
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

/// The newest uplinks; none if they cannot be read.
async fn uplinks(request: &InApplication, handler: &HandlerClient, is_empty: bool) -> Option<Vec<Record>> {
    if is_empty {
        return Some(Vec::new());
    }
    let (app_id, kind) = (request.app_id().to_string(), "up".to_owned());
    let query = Query { app_id, kind, limit: UPLINKS, ..Query::default() };
    handler.list_records(query).await.map(|list| list.records).ok()
}

async fn row(request: &InApplication, handler: &HandlerClient, device: Device) -> Row {
    let attributes = device.attributes.iter().map(|(key, value)| (shown(key), shown(value)));
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort();
    let seen = last_seen(request, handler, &device.dev_id).await;
    Row {
        dev_eui: dev_eui(&device),
        is_known: seen.is_ok(),
        last_seen: seen.unwrap_or_default(),
        dev_id: device.dev_id,
        description: shown(&device.description),
        attributes,
        silence: None,
        battery: None,
        missing: None,
        is_chosen: false,
    }
}

/// Lists leave it out.
async fn last_seen(request: &InApplication, handler: &HandlerClient, dev_id: &str) -> Result<Option<Time>> {
    let dev_id: DevId = dev_id.parse()?;
    let device = handler.get_device(request.app_id(), &dev_id).await?;
    let Some(Network::LorawanDevice(lorawan)) = device.device else { return Ok(None) };
    Ok((lorawan.last_seen > 0).then_some(Time(lorawan.last_seen)))
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

    #[test]
    fn a_device_of_which_nobody_knows_is_not_called_one_that_was_never_seen() {
        let now = Timestamp::from_millis(3_600_000);
        let silence = |last_seen: Option<Time>, is_known: bool, is_read: bool| {
            let row = Row {
                dev_id: String::new(),
                dev_eui: String::new(),
                description: String::new(),
                attributes: Vec::new(),
                last_seen,
                is_known,
                silence: None,
                battery: None,
                missing: None,
                is_chosen: false,
            };
            let mut row = row.completed(&[], is_read);
            row.note_silence(now, now);
            row.silence.unwrap()
        };
        assert_eq!(silence(None, true, true), "never seen");
        assert_eq!(silence(None, true, false), "not known", "it may be in uplinks that could not be read");
        assert_eq!(silence(None, false, true), "not known");
        assert_eq!(silence(Some(Time(0)), true, false), "silent for 1 h");
    }

    #[test]
    fn silence_is_told_in_its_largest_unit() {
        let now = Timestamp::from_millis(30 * 24 * 3_600_000);
        let minutes = |minutes: i64| span(Timestamp::from_millis(now.as_millis() - minutes * 60_000), now);
        assert_eq!([0, 59, 60, 2879, 2880].map(minutes), ["0 min", "59 min", "1 h", "47 h", "2 days"]);
        assert_eq!(span(now, Timestamp::from_millis(0)), "0 min", "of a device whose clock is ahead");
    }
}
