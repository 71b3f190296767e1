//! When the devices of an application were last heard, gathered from sources in any order.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use types::{DevId, Timestamp};

use crate::{Error, RecordId};

/// Maximum number of devices of an answer.
const DEVICES_MAX: usize = 100_000;

/// When the devices of an application were last heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastHeard {
    /// When the last uplink of each device was recorded.
    pub times: HashMap<DevId, Timestamp>,
    /// True if some uplinks are missing: files could not be read, or there are too many devices.
    pub is_partial: bool,
}

/// The last uplinks of devices while several threads look for them.
pub(crate) struct Heard<'a> {
    devices_max: usize,
    is_stopped: &'a AtomicBool,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    ids: HashMap<Box<[u8]>, RecordId>,
    /// True if there was no room for a device.
    is_full: bool,
}

impl<'a> Heard<'a> {
    pub(crate) fn new(is_stopped: &'a AtomicBool) -> Self {
        Self { devices_max: DEVICES_MAX, is_stopped, last: Mutex::default() }
    }

    /// [`Error::Stopped`] once nobody waits for the answer.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Returns true if an uplink with this id, or a later one, of the device is known.
    pub(crate) fn knows(&self, dev_id: &[u8], id: RecordId) -> bool {
        self.last.lock().ids.get(dev_id).is_some_and(|last| *last >= id)
    }

    /// Notes an uplink of a device.
    pub(crate) fn note(&self, dev_id: &[u8], id: RecordId) {
        let mut last = self.last.lock();
        if let Some(known) = last.ids.get_mut(dev_id) {
            *known = id.max(*known);
        } else if last.ids.len() < self.devices_max {
            last.ids.insert(dev_id.into(), id);
        } else {
            last.is_full = true;
        }
    }

    /// The answer; `is_partial` also if uplinks may be in what was not read.
    pub(crate) fn into_times(self, is_partial: bool) -> LastHeard {
        let Last { ids, is_full } = self.last.into_inner();
        let time = |(dev_id, id): (Box<[u8]>, RecordId)| {
            let dev_id: DevId = str::from_utf8(&dev_id).ok()?.parse().ok()?;
            Some((dev_id, id.recorded()))
        };
        LastHeard { times: ids.into_iter().filter_map(time).collect(), is_partial: is_partial || is_full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_device_counts_and_no_device_is_left_out_in_silence() {
        let is_stopped = AtomicBool::default();
        let heard = Heard { devices_max: 2, ..Heard::new(&is_stopped) };
        let id = |millis| RecordId::new(millis, 0, 0);
        for (dev_id, millis) in [("a1", 5), ("b1", 1), ("a1", 7), ("a1", 6)] {
            heard.note(dev_id.as_bytes(), id(millis));
        }
        assert_eq!([6, 7, 8].map(|millis| heard.knows(b"a1", id(millis))), [true, true, false]);
        heard.note(b"c1", id(9));
        let times = [("a1", 7), ("b1", 1)];
        let times = times.map(|(dev_id, millis)| (dev_id.parse::<DevId>().unwrap(), Timestamp::from_millis(millis)));
        assert_eq!(heard.into_times(false), LastHeard { times: times.into(), is_partial: true });
        let heard = Heard::new(&is_stopped);
        heard.note(b"c1", id(9));
        assert_eq!([heard.check().is_ok(), heard.into_times(false).is_partial], [true, false]);
    }
}
