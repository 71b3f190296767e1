//! Finds the device that a network means, by its EUIs.

use types::{AppEui, AppId, DevEui, DevId};

use super::{devices::Devices, record};
use crate::{
    Error,
    application::{euis::Euis, store_keys},
};

impl Devices {
    /// The device of an application with this pair of EUIs, or else with this DevEUI and one of these ids, or with this
    /// DevEUI and no AppEUI. [`Error::NotFound`] if the application is not registered.
    pub(crate) async fn find(
        &self,
        app_id: &AppId,
        (app_eui, dev_eui): (AppEui, DevEui),
        ids: &[DevId],
    ) -> Result<Option<DevId>, Error> {
        let pair = store_keys::eui(app_id, Euis { app_eui, dev_eui })?;
        let without_app = store_keys::eui(app_id, Euis { app_eui: AppEui::default(), dev_eui })?;
        let mut keys = vec![store_keys::summary(app_id)?, pair, without_app];
        for dev_id in ids {
            keys.push(store_keys::device(app_id, dev_id)?);
        }
        let mut found = self.store.get(&keys).await?.into_iter();
        found.next().flatten().ok_or_else(|| Error::application_not_found(app_id))?;
        // Both are taken from the iterator, whichever is there.
        let (pair, without_app) = (found.next().flatten(), found.next().flatten());
        if let Some(dev_id) = pair.or(without_app) {
            return Ok(Some(String::from_utf8_lossy(&dev_id.value).parse()?));
        }
        for (dev_id, device) in ids.iter().zip(found) {
            let device = device.map(|device| record::read_without_keys(&device.value)).transpose()?;
            if device.is_some_and(|device| device.lorawan.dev_eui == dev_eui) {
                return Ok(Some(dev_id.clone()));
            }
        }
        Ok(None)
    }
}
