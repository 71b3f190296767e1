//! The event that tells an application that a device was created or changed.

use types::{DeviceEvent, Timestamp};

use super::Device;
use crate::output::Event;

/// Effect of setting a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It created the device.
    Created,
    /// It replaced this device.
    Updated(Box<Device>),
}

impl Change {
    /// The event that reports the change, with the device's new location as far as it changed.
    pub(crate) fn event(&self, device: &Device, update_at: Timestamp) -> Event {
        let location = |device: &Device| (device.latitude, device.longitude, device.altitude);
        let before = match self {
            Self::Created => (0.0, 0.0, 0),
            Self::Updated(before) => location(before),
        };
        let (latitude, longitude, altitude) = location(device);
        let event = DeviceEvent {
            latitude: Some(latitude).filter(|latitude| *latitude != 0.0 && *latitude != before.0),
            longitude: Some(longitude).filter(|longitude| *longitude != 0.0 && *longitude != before.1),
            altitude: Some(altitude).filter(|altitude| *altitude != 0 && *altitude != before.2),
            update_at,
        };
        match self {
            Self::Created => Event::Create(Some(event)),
            Self::Updated(_) => Event::Update(event),
        }
    }
}
