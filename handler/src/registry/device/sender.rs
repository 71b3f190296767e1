//! The device that may have sent a frame, with its keys and counters.

use store::{Batch, Entry, Version};
use types::{DevicePath, Timestamp};

use super::{
    devices::Devices,
    frame_counters::{self, FrameCounters},
    model::{Device, record},
};
use crate::{Error, registry::application::store_keys};

/// A device with its keys, to open a frame of it.
pub(crate) struct Sender {
    pub(crate) device: Device,
    /// None before the first uplink of the session.
    pub(crate) counters: Option<FrameCounters>,
    version: Version,
}

impl Devices {
    /// The device that may have sent a frame; [`Error::NotFound`] if it does not exist.
    pub(crate) async fn sender(&self, path: DevicePath<'_>) -> Result<Sender, Error> {
        let keys = [store_keys::device(path)?, store_keys::frame_counters(path)?];
        let [device, counters] = self.store.get_array(&keys).await?;
        let Some(Entry { value, version, .. }) = device else { return Err(self.absent(path).await) };
        Ok(Sender {
            device: record::read(&self.sealer, &value)?,
            counters: frame_counters::read(counters.as_ref())?,
            version,
        })
    }

    /// Notes the counters of a device, unless the device has changed since it was read.
    pub(crate) async fn note_counters(
        &self,
        Sender { device, version, .. }: &Sender,
        counters: &FrameCounters,
    ) -> Result<(), Error> {
        let path = device.path();
        let batch = Batch::new()
            .expect(store_keys::device(path)?, *version)
            .put(store_keys::frame_counters(path)?, serde_json::to_vec(counters)?);
        // After a conflict, the device may have another session, with other counters.
        _ = self.store.commit(batch).await?;
        Ok(())
    }
}

impl Sender {
    /// Returns the counters after an uplink with this counter; `f_cnt_down` is the next one of downlinks, if it is
    /// known.
    pub(crate) fn counters_after(&self, f_cnt_up: u32, f_cnt_down: Option<u32>, received: Timestamp) -> FrameCounters {
        let before = self.counters.clone().unwrap_or_default();
        let f_cnt_down = f_cnt_down.unwrap_or(before.f_cnt_down);
        FrameCounters { f_cnt_up, f_cnt_down, last_seen: received.as_nanos(), ..before }
    }
}
