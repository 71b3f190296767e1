//! Searches the devices of an application, and puts them in order.

use std::{collections::HashMap, fmt, str::FromStr};

use history::LastHeard;
use server::usage::Usage;
use store::{Entry, GET_KEYS_MAX};
use types::{AppId, DevId, DevicePath, Timestamp};

use super::{Devices, READ_MAX};
use crate::{
    Error,
    registry::{
        application::store_keys,
        device::{
            frame_counters,
            model::{Device, record},
        },
    },
};

/// Maximum number of devices of an application that are searched.
const SEARCHED_MAX: usize = 100_000;
/// Maximum number of devices on a page. They fit into a response.
pub(crate) const FOUND_MAX: usize = 1000;

/// Which devices of an application are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceSearch {
    /// Text in the id, the DevEUI, the description or an attribute, in lower case; empty for all devices.
    pub(crate) text: String,
    /// Only devices that were not seen at this time or later.
    pub(crate) not_seen_since: Option<Timestamp>,
    pub(crate) order: DeviceOrder,
    /// The last device of the page before.
    pub(crate) after: Option<DevicePlace>,
    pub(crate) limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceOrder {
    Id,
    /// Those first that were not seen for longest.
    LastSeen,
}

/// The place of a device in an order: when it was last seen, in nanoseconds since 1970, if that matters, and its id. It
/// stays where it is while devices come, go and are heard, so that the next page begins there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DevicePlace {
    last_seen: i64,
    dev_id: DevId,
}

/// Devices that were found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundDevices {
    /// The devices of this page, without their keys.
    pub(crate) devices: Vec<Device>,
    /// Number of devices that were found, on all pages.
    pub(crate) total: usize,
    /// Number of those before this page.
    pub(crate) position: usize,
    /// The end of this page, if it is not the last one.
    pub(crate) next: Option<DevicePlace>,
    /// True if the application has more devices than are searched.
    pub(crate) is_cut: bool,
    /// True if devices may have been seen later than it seems.
    pub(crate) is_partial: bool,
}

/// Number of devices that a search has looked at.
#[derive(Default)]
struct Searched(usize);

/// When devices were seen, as far as it is not in their records.
struct Seen<'a> {
    /// In nanoseconds since 1970. They replace what the record says.
    counted: HashMap<DevId, i64>,
    heard: &'a HashMap<DevId, Timestamp>,
}

impl DeviceSearch {
    /// Returns true if it depends on when devices were last seen.
    pub(crate) fn needs_last_seen(&self) -> bool {
        self.not_seen_since.is_some() || self.order == DeviceOrder::LastSeen
    }

    /// The place of a device; none if it is not wanted.
    fn place(&self, entry: &Entry, seen: &Seen<'_>) -> Result<Option<DevicePlace>, Error> {
        let dev_id = store_keys::dev_id_of(&entry.key)?;
        if self.text.is_empty() && !self.needs_last_seen() {
            return Ok(Some(DevicePlace { last_seen: 0, dev_id }));
        }
        let device = record::read_without_keys(&entry.value)?;
        let last_seen = seen.last(&device);
        let is_seen = self.not_seen_since.is_some_and(|since| last_seen >= since.as_nanos());
        let last_seen = if self.order == DeviceOrder::LastSeen { last_seen } else { 0 };
        Ok((!is_seen && self.is_in(&device)).then_some(DevicePlace { last_seen, dev_id }))
    }

    /// Returns true if a device has the text.
    fn is_in(&self, device: &Device) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        self.text.is_empty()
            || has(device.dev_id.as_str())
            || has(&device.description)
            || (!device.is_template() && has(&device.lorawan.dev_eui.to_string()))
            || device.attributes.iter().any(|(key, value)| has(key) || has(value))
    }
}

impl Searched {
    /// Number of devices to read at once: one more than are searched shows that there are more.
    fn wanted(&self) -> usize {
        READ_MAX.min(SEARCHED_MAX + 1 - self.0)
    }

    /// Counts devices that were read, and leaves out what is too many. Returns true if it has.
    fn admit<T>(&mut self, read: &mut Vec<T>) -> bool {
        let room = SEARCHED_MAX - self.0;
        let is_cut = read.len() > room;
        read.truncate(room);
        self.0 += read.len();
        is_cut
    }
}

impl Seen<'_> {
    /// When a device was last seen, in nanoseconds since 1970; zero for never.
    fn last(&self, device: &Device) -> i64 {
        let counted = self.counted.get(&device.dev_id).copied().unwrap_or(device.lorawan.last_seen);
        counted.max(self.heard(&device.dev_id))
    }

    fn heard(&self, dev_id: &DevId) -> i64 {
        self.heard.get(dev_id).map_or(0, |heard| heard.as_nanos())
    }
}

impl Devices {
    /// Finds devices. `heard` is what history knows of them, if that matters for the search.
    ///
    /// They are read in pieces that take turns with the long work of others, and charged to `usage`.
    pub(crate) async fn search(
        &self,
        app_id: &AppId,
        search: &DeviceSearch,
        heard: &LastHeard,
        usage: &Usage,
    ) -> Result<FoundDevices, Error> {
        let counted = if search.needs_last_seen() { self.counted(app_id, usage).await? } else { HashMap::new() };
        let seen = Seen { counted, heard: &heard.times };
        let (mut places, is_cut) = self.places(app_id, search, &seen, usage).await?;
        places.sort_unstable();
        let position = search.after.as_ref().map_or(0, |after| places.partition_point(|place| place <= after));
        let total = places.len();
        let page: Vec<DevicePlace> = places.into_iter().skip(position).take(search.limit).collect();
        let devices = self.found(app_id, &page, &seen, usage).await?;
        let is_last = position + page.len() >= total;
        let next = page.into_iter().next_back().filter(|_| !is_last);
        Ok(FoundDevices { devices, total, position, next, is_cut, is_partial: heard.is_partial })
    }

    /// The places of the devices that are wanted, and whether some were not searched.
    async fn places(
        &self,
        app_id: &AppId,
        search: &DeviceSearch,
        seen: &Seen<'_>,
        usage: &Usage,
    ) -> Result<(Vec<DevicePlace>, bool), Error> {
        let prefix = store_keys::devices(app_id)?;
        let (mut places, mut searched, mut after) = (Vec::new(), Searched::default(), None);
        loop {
            let mut entries = self.store.list(&prefix, after.as_ref(), searched.wanted()).await?;
            let is_cut = searched.admit(&mut entries);
            // Only for what takes a processor: others go on while the store is read.
            let mut turn = usage.turn_for_entries().await;
            for entry in &entries {
                turn.next_entry().await;
                usage.add_entries(1);
                turn.add_bytes(entry.value.len());
                places.extend(search.place(entry, seen)?);
            }
            drop(turn);
            if is_cut {
                return Ok((places, true));
            }
            let Some(last) = entries.pop() else { return Ok((places, false)) };
            after = Some(last.key);
        }
    }

    /// When the devices whose frames the handler opens were last seen, in nanoseconds since 1970.
    async fn counted(&self, app_id: &AppId, usage: &Usage) -> Result<HashMap<DevId, i64>, Error> {
        let prefix = store_keys::all_frame_counters(app_id)?;
        let (mut counted, mut after) = (HashMap::new(), None);
        while counted.len() < SEARCHED_MAX {
            let mut entries = self.store.list(&prefix, after.as_ref(), READ_MAX).await?;
            let mut turn = usage.turn_for_entries().await;
            for entry in &entries {
                turn.next_entry().await;
                usage.add_entries(1);
                let last_seen = frame_counters::read(Some(entry))?.map_or(0, |counters| counters.last_seen);
                counted.insert(store_keys::counted_dev_id_of(&entry.key)?, last_seen);
            }
            drop(turn);
            let Some(last) = entries.pop() else { break };
            after = Some(last.key);
        }
        Ok(counted)
    }

    /// The devices at these places, without their keys, as far as they still exist.
    async fn found(
        &self,
        app_id: &AppId,
        places: &[DevicePlace],
        seen: &Seen<'_>,
        usage: &Usage,
    ) -> Result<Vec<Device>, Error> {
        let mut devices = Vec::with_capacity(places.len());
        for part in places.chunks(GET_KEYS_MAX / 2) {
            let mut keys = Vec::with_capacity(part.len() * 2);
            for DevicePlace { dev_id, .. } in part {
                let path = DevicePath { app_id, dev_id };
                keys.push(store_keys::device(path)?);
                keys.push(store_keys::frame_counters(path)?);
            }
            let mut found = self.store.get(&keys).await?.into_iter();
            let mut turn = usage.turn_for_entries().await;
            while let (Some(device), Some(counters)) = (found.next(), found.next()) {
                turn.next_entry().await;
                usage.add_entries(1);
                let Some(device) = device else { continue };
                turn.add_bytes(device.value.len());
                let mut device = record::read_without_keys(&device.value)?;
                if let Some(counters) = frame_counters::read(counters.as_ref())? {
                    counters.update(&mut device);
                }
                let heard = seen.heard(&device.dev_id);
                let lorawan = &mut device.lorawan;
                lorawan.last_seen = lorawan.last_seen.max(heard);
                // Older records have them unsealed.
                (lorawan.app_key, lorawan.nwk_s_key, lorawan.app_s_key) = (None, None, None);
                devices.push(device);
            }
        }
        Ok(devices)
    }
}

impl fmt::Display for DevicePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.last_seen, self.dev_id)
    }
}

impl FromStr for DevicePlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let place = || {
            let (last_seen, dev_id) = text.split_once('.')?;
            Some(Self { last_seen: last_seen.parse().ok()?, dev_id: dev_id.parse().ok()? })
        };
        place().ok_or_else(|| Error::invalid("After", "it is `next` of the page before"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Devices are found by text and by when they were last seen; their newest uplinks
    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is() {
        for text in ["0.dev-1", "1790000000000000000.a1"] {
            assert_eq!(text.parse::<DevicePlace>().unwrap().to_string(), text);
        }
        for text in ["", "dev-1", "0.", "x.dev-1", "0.Dev", "0.dev.1"] {
            assert!(text.parse::<DevicePlace>().is_err(), "{text}");
        }
    }

    // Conformance: Devices are found by text and by when they were last seen; their newest uplinks
    #[test]
    fn devices_that_were_not_seen_for_longest_come_first() {
        let mut places = ["5.a1", "0.c1", "40.a1", "0.b1"].map(|text| text.parse::<DevicePlace>().unwrap());
        places.sort_unstable();
        assert_eq!(places.map(|place| place.to_string()), ["0.b1", "0.c1", "5.a1", "40.a1"]);
    }

    // Conformance: Devices are found by text and by when they were last seen; their newest uplinks
    #[test]
    fn a_search_is_cut_only_if_there_are_more_devices_than_are_searched() {
        for (devices, is_cut) in
            [(0, false), (SEARCHED_MAX - 1, false), (SEARCHED_MAX, false), (SEARCHED_MAX + 1, true)]
        {
            let (mut searched, mut left) = (Searched::default(), devices);
            let was_cut = loop {
                let mut read = vec![0_u8; searched.wanted().min(left)];
                left -= read.len();
                if searched.admit(&mut read) {
                    break true;
                }
                if read.is_empty() {
                    break false;
                }
            };
            assert_eq!((was_cut, searched.0), (is_cut, devices.min(SEARCHED_MAX)), "{devices}");
        }
    }
}
