//! EUIs that the operator has released, or that went to another application with their device, and that network servers
//! may still have.
//!
//! The operator's command changes only the store, so the handler tells the network servers when it next can. After a
//! move, it does so if it could not tell them at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Entry, LIST_MAX, UsageCursor};
use types::{AppEui, AppId, ComponentId, DevEui, DevId, DevicePath};

use super::{devices::Devices, moves::in_flight};
use crate::{
    Error,
    registry::application::{euis::Euis, store_keys},
};

/// Time that a handler tries to tell network servers. Also the time that a release is kept without effect because its
/// device exists: it was not deleted, or is registered again.
const RELEASED_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// A pair of EUIs, and the device that had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// The application of the device.
    pub app_id: AppId,
    /// The device.
    pub dev_id: DevId,
    /// Its AppEUI.
    pub app_eui: AppEui,
    /// Its DevEUI.
    pub dev_eui: DevEui,
    /// The network brokers whose network servers may still have it.
    pub brokers: Vec<ComponentId>,
}

impl Devices {
    /// Deletes a device, so that any application may register its EUIs; also in the network servers behind the network
    /// brokers that [`Released`] names, once the handler reaches them.
    pub async fn release(&self, released: &Released) -> Result<(), Error> {
        // First, because nobody could find out later that it is missing. As long as the device exists, nothing comes of
        // it.
        self.note_released(released).await?;
        // A handler finds the deletion, and deletes the history.
        self.delete(DevicePath { app_id: &released.app_id, dev_id: &released.dev_id }).await.map(drop)
    }

    /// Notes that network servers may have EUIs that are about to be somebody else's.
    pub(crate) async fn note_released(&self, released: &Released) -> Result<(), Error> {
        if !released.brokers.is_empty() {
            let key = store_keys::released(euis(released))?;
            let batch = Batch::new().put_until(key, serde_json::to_vec(released)?, self.released_until());
            _ = self.store.commit(batch).await?;
        }
        Ok(())
    }

    /// Forgets such a note: the network servers know.
    pub(crate) async fn forget_released(&self, released: &Released) -> Result<(), Error> {
        _ = self.store.commit(Batch::new().delete(store_keys::released(euis(released))?)).await?;
        Ok(())
    }

    /// The pairs that the network server behind a network broker may still have. At most [`LIST_MAX`] are looked at.
    pub(crate) async fn released_at(&self, id: &ComponentId) -> Result<Vec<(Released, Entry)>, Error> {
        let mut found = Vec::new();
        for entry in self.store.list(&store_keys::all_released()?, None, LIST_MAX).await? {
            let released: Released = serde_json::from_slice(&entry.value)?;
            if released.brokers.contains(id) {
                found.push((released, entry));
            }
        }
        Ok(found)
    }

    /// Succeeds unless a device leaves its application at this moment; [`Error::Moving`] if it does.
    pub(crate) async fn check_not_leaving(&self, path: DevicePath<'_>) -> Result<(), Error> {
        let [leaving] = self.store.get_array(&[store_keys::leaving(path)?]).await?;
        leaving.map_or(Ok(()), |_| Err(in_flight::error(path)))
    }

    /// Notes that the network server behind a network broker no longer has a pair. If others note something meanwhile,
    /// it is told once more.
    pub(crate) async fn released_there(
        &self,
        (released, entry): (Released, Entry),
        id: &ComponentId,
        trusted: &[ComponentId],
    ) -> Result<(), Error> {
        let Entry { key, version, .. } = entry;
        let is_left = |broker: &ComponentId| broker != id && trusted.contains(broker);
        let brokers: Vec<_> = released.brokers.iter().filter(|broker| is_left(broker)).cloned().collect();
        let batch = Batch::new().expect(key.clone(), version);
        let batch = match brokers.is_empty() {
            true => batch.delete(key),
            false => {
                batch.put_until(key, serde_json::to_vec(&Released { brokers, ..released })?, self.released_until())
            }
        };
        _ = self.store.commit(batch).await?;
        Ok(())
    }

    fn released_until(&self) -> u64 {
        self.clock.now().plus(RELEASED_AGE_MAX).as_unix_ms()
    }

    /// Some applications that may have devices, and where the next ones begin; none after the last.
    pub(crate) async fn applications(
        &self,
        from: Option<&UsageCursor>,
    ) -> Result<(Vec<AppId>, Option<UsageCursor>), Error> {
        let page = self.store.usage(from).await?;
        let tags = page.tags.into_iter().map(|usage| usage.tag).filter(|tag| tag.kind() == "a");
        Ok((tags.filter_map(|tag| tag.id().parse().ok()).collect(), page.next))
    }

    /// The ids of some devices of an application, ordered: at most `limit`, after `after`.
    pub(crate) async fn ids(&self, app_id: &AppId, after: Option<&DevId>, limit: usize) -> Result<Vec<DevId>, Error> {
        let after = after.map(|dev_id| store_keys::device(DevicePath { app_id, dev_id })).transpose()?;
        let entries = self.store.list(&store_keys::devices(app_id)?, after.as_ref(), limit).await?;
        entries.iter().map(|entry| store_keys::dev_id_of(&entry.key)).collect()
    }
}

fn euis(released: &Released) -> Euis {
    Euis { app_eui: released.app_eui, dev_eui: released.dev_eui }
}
