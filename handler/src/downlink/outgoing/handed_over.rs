//! What of a device's downlinks is in its queue, and what its network has taken.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Store};
use types::{AppId, DevEui, DevId};

use crate::{
    Error,
    application::store_keys,
    device,
    downlink::queue::{QueuedDownlink, put_first, read},
};

/// Maximum number of downlinks of a device about which a report is awaited. Of the oldest, nothing is told any more.
const HANDED_OVER_MAX: usize = 64;
/// How often a change is attempted while others change the same queue.
const CHANGE_ATTEMPTS_MAX: usize = 20;

/// A downlink that a network has taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HandedOver {
    /// The network's id of it.
    pub(super) id: String,
    pub(super) downlink: QueuedDownlink,
}

/// What a report means for the downlink that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Another report is awaited.
    Awaits,
    /// It is finished.
    Ends,
    /// It is sent again.
    Repeats,
}

/// The next downlink for a device.
pub(super) struct Waiting {
    pub(super) dev_eui: DevEui,
    pub(super) downlink: QueuedDownlink,
}

/// The first downlink in the queue of a device; none if it is empty, or the device does not exist.
pub(super) async fn next(store: &dyn Store, app_id: &AppId, dev_id: &DevId) -> Result<Option<Waiting>, Error> {
    let keys = [store_keys::device(app_id, dev_id)?, store_keys::downlinks(app_id, dev_id)?];
    let [Some(device), queue] = store.get_array(&keys).await? else { return Ok(None) };
    let dev_eui = device::dev_eui(&device.value)?;
    let downlink = read::<QueuedDownlink>(queue.as_ref())?.pop_front();
    Ok(downlink.map(|downlink| Waiting { dev_eui, downlink }))
}

/// Takes a downlink from the queue of a device, and adds it to those that its network has taken, if it has.
pub(super) async fn done(
    store: &dyn Store,
    app_id: &AppId,
    dev_id: &DevId,
    downlink: &QueuedDownlink,
    handed_over: Option<HandedOver>,
) -> Result<(), Error> {
    let replaces = downlink.replaces_others();
    change(store, app_id, dev_id, |queue, taken| {
        // The application may have changed the queue in the meantime.
        let place = queue.iter().position(|other| is_same(other, downlink));
        let removed = place.and_then(|place| queue.remove(place));
        if let Some(handed_over) = &handed_over {
            if replaces {
                if let (Some(_), Some(front)) = (removed, queue.front_mut()) {
                    // One was put before it, and must not replace it now.
                    front.downlink.schedule = None;
                }
                taken.clear();
            }
            taken.push_back(handed_over.clone());
            taken.drain(..taken.len().saturating_sub(HANDED_OVER_MAX));
        }
    })
    .await
}

/// Whether two downlinks are the same, apart from whether they replace others.
fn is_same(one: &QueuedDownlink, other: &QueuedDownlink) -> bool {
    let text = |queued: &QueuedDownlink| serde_json::to_string(&queued.clone().into_downlink());
    one.attempts == other.attempts && matches!((text(one), text(other)), (Ok(one), Ok(other)) if one == other)
}

/// The downlink that a network has taken under this id, and what becomes of it.
pub(super) async fn take(
    store: &dyn Store,
    app_id: &AppId,
    dev_id: &DevId,
    id: &str,
    fate: impl Fn(&QueuedDownlink) -> Fate,
) -> Result<Option<(QueuedDownlink, Fate)>, Error> {
    let [taken] = store.get_array(&[store_keys::sent_downlinks(app_id, dev_id)?]).await?;
    let found = read::<HandedOver>(taken.as_ref())?.into_iter().find(|taken| taken.id == id);
    let Some(HandedOver { downlink, .. }) = found else { return Ok(None) };
    let fate = fate(&downlink);
    if fate != Fate::Awaits {
        change(store, app_id, dev_id, |queue, taken| end(queue, taken, id, fate)).await?;
    }
    Ok(Some((downlink, fate)))
}

/// Forgets the downlink of this id, and puts it into the queue again if it repeats.
fn end(queue: &mut VecDeque<QueuedDownlink>, taken: &mut VecDeque<HandedOver>, id: &str, fate: Fate) {
    let place = taken.iter().position(|taken| taken.id == id);
    let Some(HandedOver { downlink, .. }) = place.and_then(|place| taken.remove(place)) else { return };
    if fate == Fate::Repeats {
        let attempts = downlink.attempts.saturating_add(1);
        put_first(queue, QueuedDownlink { downlink: downlink.into_downlink(), attempts });
    }
}

/// Changes the queue of a device and what its network has taken, as long as the device exists.
async fn change(
    store: &dyn Store,
    app_id: &AppId,
    dev_id: &DevId,
    change: impl Fn(&mut VecDeque<QueuedDownlink>, &mut VecDeque<HandedOver>),
) -> Result<(), Error> {
    let keys = [
        store_keys::device(app_id, dev_id)?,
        store_keys::downlinks(app_id, dev_id)?,
        store_keys::sent_downlinks(app_id, dev_id)?,
    ];
    let changed = store::retry(CHANGE_ATTEMPTS_MAX, async || {
        let [Some(device), queued, taken] = store.get_array(&keys).await? else { return Ok(Some(())) };
        let (mut queue, mut list) = (read(queued.as_ref())?, read(taken.as_ref())?);
        change(&mut queue, &mut list);
        let [device_key, queue_key, taken_key] = keys.clone();
        let batch = Batch::new()
            .expect(device_key, device.version)
            .expect_entry(&queue_key, queued.as_ref())
            .expect_entry(&taken_key, taken.as_ref());
        let batch =
            if queue.is_empty() { batch.delete(queue_key) } else { batch.put(queue_key, serde_json::to_vec(&queue)?) };
        let batch =
            if list.is_empty() { batch.delete(taken_key) } else { batch.put(taken_key, serde_json::to_vec(&list)?) };
        Ok::<_, Error>((store.commit(batch).await? == Commit::Done).then_some(()))
    });
    changed.await?.ok_or_else(|| Error::Conflict(format!("downlink queue of {app_id}:{dev_id}")))
}
