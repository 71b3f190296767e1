//! Finds the device of an application that a network means, and registers it when it is first heard.

use types::{AppId, DevId, DeviceIds, NetworkDevice};

use super::NetworkEvents;
use crate::{
    Error,
    output::Event,
    registry::device::{Device, Lorawan, attributes_of},
};

/// Maximum length of an id, in characters.
const ID_LENGTH_MAX: usize = 36;
/// Maximum length of a description, in characters, each of which has at most four bytes.
const DESCRIPTION_LENGTH_MAX: usize = 256;

/// Rules by which devices of a network's application become devices of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Our application.
    pub app_id: AppId,
    /// True to register devices when they are first heard.
    pub is_automatic: bool,
    /// Source of their ids.
    pub ids: DeviceIds,
}

impl NetworkEvents {
    /// The id of a network's device, if it is registered.
    pub(super) async fn find(
        &self,
        registration: &Registration,
        device: &NetworkDevice,
    ) -> Result<Option<DevId>, Error> {
        let candidates = candidates(device, registration.ids)?;
        self.devices.find_network_device(&registration.app_id, device, &candidates).await
    }

    /// The id of a network's device, which is registered if that is allowed.
    pub(super) async fn device(&self, registration: &Registration, device: &NetworkDevice) -> Result<DevId, Error> {
        let Registration { app_id, is_automatic, ids } = registration;
        let candidates = candidates(device, *ids)?;
        if let Some(dev_id) = self.devices.find_network_device(app_id, device, &candidates).await? {
            return Ok(dev_id);
        }
        if device.is_provisional {
            return Err(Error::Unidentified { app_id: app_id.clone(), dev_eui: device.dev_eui });
        }
        if !is_automatic {
            return Err(Error::device_not_found_by_eui(app_id, device.dev_eui));
        }
        for dev_id in &candidates {
            match self.devices.create(new_device(app_id, dev_id, device)).await {
                Ok(()) => {
                    tracing::info!(%app_id, %dev_id, dev_eui = %device.dev_eui, "registered a device of a network");
                    // What the device has sent follows, and is waited for.
                    self.publish(app_id, dev_id.clone(), Event::Create(None)).forget();
                    return Ok(dev_id.clone());
                }
                // By another device, or by another handler at the same time.
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let found = self.devices.find_network_device(app_id, device, &candidates).await?;
        found.ok_or_else(|| Error::not_registrable(app_id, device.dev_eui, &candidates))
    }
}

/// The ids that a device may get, the best one first.
fn candidates(device: &NetworkDevice, ids: DeviceIds) -> Result<Vec<DevId>, Error> {
    let from_eui: DevId = device.dev_eui.to_string().to_lowercase().parse()?;
    let from_name = (ids == DeviceIds::Name).then(|| id_from(&device.name)).flatten();
    Ok(from_name.into_iter().filter(|id| *id != from_eui).chain([from_eui.clone()]).collect())
}

/// A name in the form of an id: `Kitchen (2nd floor)` becomes `kitchen-2nd-floor`.
fn id_from(name: &str) -> Option<DevId> {
    let lower = name.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = words.collect::<Vec<_>>().join("-");
    id.truncate(ID_LENGTH_MAX);
    id.trim_end_matches('-').parse().ok()
}

fn new_device(app_id: &AppId, dev_id: &DevId, device: &NetworkDevice) -> Device {
    Device {
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        description: device.name.chars().take(DESCRIPTION_LENGTH_MAX).collect(),
        latitude: 0.0,
        longitude: 0.0,
        altitude: 0,
        attributes: attributes_of(&device.tags),
        lorawan: Lorawan { app_eui: device.app_eui.unwrap_or_default(), dev_eui: device.dev_eui, ..Lorawan::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(name: &str, ids: DeviceIds) -> Vec<String> {
        let dev_eui = "A300000000000001".parse().unwrap();
        let device = NetworkDevice { dev_eui, name: name.to_owned(), ..NetworkDevice::default() };
        candidates(&device, ids).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ids_come_from_names_and_else_from_euis() {
        let eui = "a300000000000001";
        for (name, expected) in [
            ("Kitchen (2nd floor)", "kitchen-2nd-floor"),
            ("  --__a_B..c ", "a-b-c"),
            ("Größe 7", "gr-e-7"),
            ("A123456789-123456789-123456789-12345 6789", "a123456789-123456789-123456789-12345"),
        ] {
            assert_eq!(ids(name, DeviceIds::Name), [expected, eui]);
        }
        for name in ["", "x", "温度", "A300000000000001"] {
            assert_eq!(ids(name, DeviceIds::Name), [eui], "{name}");
        }
        assert_eq!(ids("kitchen", DeviceIds::Eui), [eui]);
    }
}
