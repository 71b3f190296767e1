//! Finds the device that a network means, by its EUIs.

use store::Entry;
use types::{AppEui, AppId, DevEui, DevId, DevicePath, NetworkDevice};

use super::{devices::Devices, model::record};
use crate::{
    Error,
    registry::application::{euis::Euis, store_keys},
};

/// Maximum number of AppEUIs of an application among which a DevEUI is looked for.
const APP_EUIS_MAX: usize = 256;

impl Devices {
    /// The device of an application with this pair of EUIs, or else with this DevEUI and no AppEUI, or else with this
    /// DevEUI and one of these ids. If the network does not say the AppEUI, the only one with this DevEUI.
    /// [`Error::NotFound`] if the application is not registered.
    pub(crate) async fn find_network_device(
        &self,
        app_id: &AppId,
        device: &NetworkDevice,
        ids: &[DevId],
    ) -> Result<Option<DevId>, Error> {
        let NetworkDevice { app_eui, dev_eui, .. } = *device;
        let pair = store_keys::eui(app_id, Euis { app_eui: app_eui.unwrap_or_default(), dev_eui })?;
        let without_app = store_keys::eui(app_id, Euis { app_eui: AppEui::default(), dev_eui })?;
        let mut keys = vec![store_keys::summary(app_id)?, pair, without_app];
        for dev_id in ids {
            keys.push(store_keys::device(DevicePath { app_id, dev_id })?);
        }
        let mut found = self.store.get(&keys).await?.into_iter();
        found.next().flatten().ok_or_else(|| Error::application_not_found(app_id))?;
        // Both are taken from the iterator, whichever is there.
        let (pair, without_app) = (found.next().flatten(), found.next().flatten());
        if let Some(entry) = pair.or(without_app) {
            return dev_id_in(&entry).map(Some);
        }
        for (dev_id, device) in ids.iter().zip(found) {
            let device = device.map(|device| record::read_without_keys(&device.value)).transpose()?;
            if device.is_some_and(|device| device.lorawan.dev_eui == dev_eui) {
                return Ok(Some(dev_id.clone()));
            }
        }
        match app_eui {
            Some(_) => Ok(None),
            None => self.find_by_dev_eui(app_id, dev_eui).await,
        }
    }

    /// The device of an application with this DevEUI, whatever its AppEUI; none if there are several.
    async fn find_by_dev_eui(&self, app_id: &AppId, dev_eui: DevEui) -> Result<Option<DevId>, Error> {
        let prefix = store_keys::euis(app_id)?;
        let (mut found, mut after) = (None, None);
        for _ in 0..APP_EUIS_MAX {
            let Some(next) = self.store.list(&prefix, after.as_ref(), 1).await?.pop() else { return Ok(found) };
            let app_eui = store_keys::app_eui_of(&next.key)?;
            let [device] = self.store.get_array(&[store_keys::eui(app_id, Euis { app_eui, dev_eui })?]).await?;
            if let Some(device) = device
                && found.replace(dev_id_in(&device)?).is_some()
            {
                return Ok(None);
            }
            // One device of each AppEUI is read, however many there are.
            after = Some(store_keys::eui(app_id, Euis { app_eui, dev_eui: DevEui::new([0xff; 8]) })?);
        }
        tracing::warn!(%app_id, %dev_eui, "the application has too many AppEUIs to look for a DevEUI among them");
        Ok(None)
    }
}

fn dev_id_in(entry: &Entry) -> Result<DevId, Error> {
    Ok(String::from_utf8_lossy(&entry.value).parse()?)
}
