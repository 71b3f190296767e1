//! What waits for a device, in the order in which it will be sent.

use std::{collections::VecDeque, sync::Arc};

use store::{Batch, Commit, Key, Store, Tag};
use types::{AppId, DevId, Downlink};

use crate::{Error, application, device};

/// The most downlinks that wait for one device.
const QUEUE_MAX: usize = 32;
/// How often a change is tried when somebody else changes the same queue at the same time.
const TRIES_MAX: usize = 20;

/// Where a downlink goes among those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// It takes the place of all that wait.
    Replace,
    /// Before them.
    First,
    /// After them.
    Last,
}

impl Schedule {
    /// The schedule of this word; [`Error::Invalid`] when it is none.
    pub(super) fn of(word: &str) -> Result<Self, Error> {
        match word {
            "" | "replace" => Ok(Self::Replace),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Error::invalid("ScheduleType", "unknown")),
        }
    }
}

/// The downlinks that wait for devices.
#[derive(Clone)]
pub(super) struct Queue {
    store: Arc<dyn Store>,
}

impl Queue {
    /// The queues in `store`.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Puts a downlink into the queue of its device; [`Error::NotFound`] when there is no such device.
    pub(super) async fn put(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        downlink: &Downlink,
        schedule: Schedule,
    ) -> Result<(), Error> {
        let keys = [device::device_key(app_id, dev_id)?, queue_key(app_id, dev_id)?];
        let [_, queue_key] = &keys;
        for _ in 0..TRIES_MAX {
            let mut found = self.store.get(&keys).await?.into_iter();
            let device = found.next().flatten().ok_or_else(|| device::not_found(app_id, dev_id))?;
            let waiting = found.next().flatten();
            let queue = waiting.as_ref().map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
            let queue = add(queue.unwrap_or_default(), downlink, schedule)?;
            // With the device in the same breath: a queue must not outlive it.
            let batch = Batch::new().expect(device.key, device.version);
            let batch = match waiting {
                Some(entry) => batch.expect(entry.key, entry.version),
                None => batch.expect_absent(queue_key.clone()),
            };
            if self.store.commit(batch.put(queue_key.clone(), serde_json::to_vec(&queue)?)).await? == Commit::Done {
                return Ok(());
            }
        }
        Err(Error::Conflict { what: format!("downlink queue of {app_id}:{dev_id}") })
    }

    /// What waits for a device, the next one first.
    pub(super) async fn list(&self, app_id: &AppId, dev_id: &DevId) -> Result<Vec<Downlink>, Error> {
        let found = self.store.get(&[queue_key(app_id, dev_id)?]).await?.into_iter().next().flatten();
        Ok(found.map(|entry| serde_json::from_slice(&entry.value)).transpose()?.unwrap_or_default())
    }
}

fn add(mut queue: VecDeque<Downlink>, downlink: &Downlink, schedule: Schedule) -> Result<VecDeque<Downlink>, Error> {
    match schedule {
        Schedule::Replace => queue = [downlink.clone()].into(),
        Schedule::First => queue.push_front(downlink.clone()),
        Schedule::Last => queue.push_back(downlink.clone()),
    }
    if queue.len() <= QUEUE_MAX {
        return Ok(queue);
    }
    Err(Error::invalid("Downlink", format_args!("{QUEUE_MAX} wait for this device already, which is the most")))
}

/// Where the queue of a device lies.
pub(crate) fn queue_key(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{}downlinks/{dev_id}", application::PREFIX))?)
}
