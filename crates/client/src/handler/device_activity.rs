//! When a device was last heard and its counters, as only history knows them: uplinks of bridges and simulated ones
//! change no record of a device.

use api::{device::NewestUplinksRequest, history::Record};
use types::{AppId, DevId};

use super::HandlerClient;
use crate::Result;

/// Number of the newest uplinks among which one with a counter is sought, as the handler allows.
const UPLINKS: u32 = 20;

/// The newest uplinks of a device, in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceActivity {
    /// When the device was last seen, in nanoseconds since 1970; zero for never.
    pub last_seen: i64,
    /// The frame counter of the newest uplink that a device has sent, if it came after those of the device's record.
    pub f_cnt_up: Option<u32>,
}

impl HandlerClient {
    /// Looks for the newest uplinks of a device, whose own record says that it was last seen at `recorded`.
    pub async fn device_activity(&self, app_id: &AppId, dev_id: &DevId, recorded: i64) -> Result<DeviceActivity> {
        let dev_ids = vec![dev_id.to_string()];
        let newest = NewestUplinksRequest { app_id: app_id.to_string(), dev_ids, limit: UPLINKS };
        Ok(DeviceActivity::of(&self.list_newest_uplinks(newest).await?.uplinks, recorded))
    }
}

impl DeviceActivity {
    /// The uplinks come newest first.
    fn of(uplinks: &[Record], recorded: i64) -> Self {
        // Simulated uplinks have no metadata.
        let sent = uplinks.iter().find(|uplink| !uplink.metadata.is_empty());
        Self {
            last_seen: uplinks.first().map_or(recorded, |newest| recorded.max(newest.time)),
            f_cnt_up: sent.filter(|sent| sent.time > recorded).map(|sent| sent.counter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uplink(time: i64, counter: u32, metadata: &str) -> Record {
        Record { time, counter, metadata: metadata.to_owned(), ..Record::default() }
    }

    #[test]
    fn the_counter_is_that_of_the_newest_uplink_that_a_device_has_sent() {
        let uplinks = [uplink(90, 0, ""), uplink(80, 7, "{}"), uplink(70, 6, "{}")];
        assert_eq!(DeviceActivity::of(&uplinks, 0), DeviceActivity { last_seen: 90, f_cnt_up: Some(7) });
    }

    #[test]
    fn a_record_that_is_as_new_keeps_its_counter() {
        let uplinks = [uplink(80, 7, "{}")];
        assert_eq!(DeviceActivity::of(&uplinks, 80), DeviceActivity { last_seen: 80, f_cnt_up: None });
        assert_eq!(
            DeviceActivity::of(&uplinks, 100),
            DeviceActivity { last_seen: 100, f_cnt_up: None },
            "it has joined since"
        );
    }

    #[test]
    fn a_device_that_sent_nothing_has_no_counter() {
        assert_eq!(DeviceActivity::of(&[], 0), DeviceActivity::default());
        assert_eq!(
            DeviceActivity::of(&[uplink(90, 0, "")], 0),
            DeviceActivity { last_seen: 90, f_cnt_up: None },
            "it was simulated"
        );
    }
}
