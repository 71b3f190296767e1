//! The downlink queue of a device.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Entry, Store};
use types::{AppId, DevId, Downlink};

use crate::{Error, application::store_keys};

const QUEUE_MAX: usize = 32;
/// How often a change is attempted while others change the same queue.
const PUT_ATTEMPTS_MAX: usize = 20;

/// A downlink in the queue of its device: encoded, so it has no fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueuedDownlink {
    #[serde(flatten)]
    pub(super) downlink: Downlink,
    /// How often its network has taken it before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) attempts: u8,
}

impl QueuedDownlink {
    /// A downlink that no network has taken yet.
    pub(super) fn new(downlink: Downlink, schedule: Schedule) -> Self {
        let schedule = (schedule == Schedule::Replace).then(|| REPLACE.to_owned());
        Self { downlink: Downlink { schedule, ..downlink }, attempts: 0 }
    }

    /// Whether it also replaces what its network has taken already.
    pub(super) fn replaces_others(&self) -> bool {
        self.downlink.schedule.as_deref() == Some(REPLACE)
    }

    /// The downlink as applications see it.
    pub(super) fn into_downlink(self) -> Downlink {
        Downlink { schedule: None, ..self.downlink }
    }
}

const REPLACE: &str = "replace";

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
    downlink: &QueuedDownlink,
    schedule: Schedule,
) -> Result<(), Error> {
    let keys = [store_keys::device(app_id, dev_id)?, store_keys::downlinks(app_id, dev_id)?];
    let put = store::retry(PUT_ATTEMPTS_MAX, async || {
        let [device, queued] = store.get_array(&keys).await?;
        let device = device.ok_or_else(|| Error::device_not_found(app_id, dev_id))?;
        let queue = insert(read(queued.as_ref())?, downlink, schedule)?;
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

/// The queue of a device; [`Error::NotFound`] if the device does not exist.
pub(super) async fn list(store: &dyn Store, app_id: &AppId, dev_id: &DevId) -> Result<VecDeque<QueuedDownlink>, Error> {
    let keys = [store_keys::device(app_id, dev_id)?, store_keys::downlinks(app_id, dev_id)?];
    let [device, queued] = store.get_array(&keys).await?;
    device.ok_or_else(|| Error::device_not_found(app_id, dev_id))?;
    read(queued.as_ref())
}

/// Empties the queue of a device; [`Error::NotFound`] if the device does not exist.
pub(super) async fn clear(store: &dyn Store, app_id: &AppId, dev_id: &DevId) -> Result<(), Error> {
    list(store, app_id, dev_id).await?;
    // It is done on no condition, so nothing can be in conflict with it.
    _ = store.commit(Batch::new().delete(store_keys::downlinks(app_id, dev_id)?)).await?;
    Ok(())
}

/// Reads a list that is stored; a missing one is empty.
pub(super) fn read<T: for<'de> Deserialize<'de>>(entry: Option<&Entry>) -> Result<VecDeque<T>, Error> {
    Ok(entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?.unwrap_or_default())
}

fn insert(
    mut queue: VecDeque<QueuedDownlink>,
    downlink: &QueuedDownlink,
    schedule: Schedule,
) -> Result<VecDeque<QueuedDownlink>, Error> {
    match schedule {
        Schedule::Replace => queue = [downlink.clone()].into(),
        Schedule::First => put_first(&mut queue, downlink.clone()),
        Schedule::Last => queue.push_back(downlink.clone()),
    }
    if queue.len() <= QUEUE_MAX {
        return Ok(queue);
    }
    Err(Error::invalid("Downlink", format_args!("the queue of the device is full: {QUEUE_MAX} are waiting")))
}

/// Puts a downlink in front. What the former first one would replace in the network is then replaced by this one, so
/// that it is not dropped there itself.
pub(super) fn put_first(queue: &mut VecDeque<QueuedDownlink>, mut downlink: QueuedDownlink) {
    if let Some(former) = queue.front_mut() {
        downlink.downlink.schedule = former.downlink.schedule.take();
    }
    queue.push_front(downlink);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}
