//! The downlink queue of a device.

use std::collections::VecDeque;

use store::{Batch, Commit, Store};
use types::{AppId, DevId, Downlink};

use crate::{Error, application::store_keys};

/// The schedule of a downlink that replaces the others, also those that its network has taken already.
pub(super) const REPLACE: &str = "replace";
const QUEUE_MAX: usize = 32;
/// How often a change is attempted while others change the same queue.
const PUT_ATTEMPTS_MAX: usize = 20;

/// Where in the queue a downlink goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// In place of the whole queue.
    Replace,
    /// At the front.
    First,
    /// At the back.
    Last,
}

impl Schedule {
    /// The schedule of this name; [`Error::Invalid`] if it is unknown.
    pub(super) fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "" | REPLACE => Ok(Self::Replace),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Error::invalid("ScheduleType", "unknown")),
        }
    }
}

/// Puts a downlink into the queue of its device; [`Error::NotFound`] if the device does not exist.
pub(super) async fn put(
    store: &dyn Store,
    app_id: &AppId,
    dev_id: &DevId,
    downlink: &Downlink,
    schedule: Schedule,
) -> Result<(), Error> {
    let keys = [store_keys::device(app_id, dev_id)?, store_keys::downlinks(app_id, dev_id)?];
    let put = store::retry(PUT_ATTEMPTS_MAX, async || {
        let [device, queued] = store.get_array(&keys).await?;
        let device = device.ok_or_else(|| Error::device_not_found(app_id, dev_id))?;
        let queue = queued.as_ref().map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
        let queue = insert(queue.unwrap_or_default(), downlink, schedule)?;
        let [device_key, queue_key] = keys.clone();
        let batch = Batch::new()
            // A queue must not outlive its device.
            .expect(device_key, device.version)
            .expect_entry(&queue_key, queued.as_ref())
            .put(queue_key, serde_json::to_vec(&queue)?);
        Ok::<_, Error>((store.commit(batch).await? == Commit::Done).then_some(()))
    });
    put.await?.ok_or_else(|| Error::Conflict(format!("downlink queue of {app_id}:{dev_id}")))
}

fn insert(mut queue: VecDeque<Downlink>, downlink: &Downlink, schedule: Schedule) -> Result<VecDeque<Downlink>, Error> {
    match schedule {
        Schedule::Replace => queue = [downlink.clone()].into(),
        Schedule::First => {
            // What the network has taken is replaced by whatever leaves first.
            let schedule = queue.front_mut().and_then(|front| front.schedule.take());
            queue.push_front(Downlink { schedule, ..downlink.clone() });
        }
        Schedule::Last => queue.push_back(downlink.clone()),
    }
    if queue.len() <= QUEUE_MAX {
        return Ok(queue);
    }
    Err(Error::invalid("Downlink", format_args!("the queue of the device is full: {QUEUE_MAX} are waiting")))
}
