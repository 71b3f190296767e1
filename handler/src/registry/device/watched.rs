//! Devices with their alarms.

use store::{Entry, Key};
use types::{AppId, DevId, DevicePath};

use super::{
    devices::Devices,
    frame_counters,
    model::{Device, record},
};
use crate::{
    Error,
    registry::{alarm::Alarm, application::store_keys},
};

/// A device as far as its silence depends on it.
pub(crate) struct WatchedDevice {
    pub(crate) dev_id: DevId,
    /// Without its keys; none if it was deleted.
    pub(crate) device: Option<Device>,
    /// Its alarm, if it has one.
    pub(crate) alarm: Option<Alarm>,
    /// The same as it is stored.
    pub(crate) entry: Option<Entry>,
}

impl Devices {
    /// Devices with their alarms, in one read, in the same order. A third of what one read may have, at most.
    pub(crate) async fn watched(&self, app_id: &AppId, dev_ids: Vec<DevId>) -> Result<Vec<WatchedDevice>, Error> {
        let mut keys: Vec<Key> = Vec::with_capacity(3 * dev_ids.len());
        for dev_id in &dev_ids {
            let path = DevicePath { app_id, dev_id };
            keys.push(store_keys::device(path)?);
            keys.push(store_keys::frame_counters(path)?);
            keys.push(store_keys::alarm(path)?);
        }
        let mut found = self.store.get(&keys).await?.into_iter();
        let mut devices = Vec::with_capacity(dev_ids.len());
        for dev_id in dev_ids {
            let (device, counters) = (found.next().flatten(), found.next().flatten());
            let entry = found.next().flatten();
            let mut device = device.map(|device| record::read_without_keys(&device.value)).transpose()?;
            if let (Some(device), Some(counters)) = (&mut device, frame_counters::read(counters.as_ref())?) {
                counters.update(device);
            }
            devices.push(WatchedDevice { dev_id, device, alarm: Alarm::read(entry.as_ref())?, entry });
        }
        Ok(devices)
    }
}
