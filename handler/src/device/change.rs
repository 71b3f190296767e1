//! What applications are told when somebody sets a device.

use types::{DeviceEvent, Timestamp};

use super::devices::{Change, Device};
use crate::output::Event;

impl Change {
    /// The event that reports the change, with the device's new location as far as it changed.
    pub(crate) fn event(&self, device: &Device, update_at: Timestamp) -> Event {
        let place = |device: &Device| (device.latitude, device.longitude, device.altitude);
        let before = match self {
            Self::Created => (0.0, 0.0, 0),
            Self::Updated(before) => place(before),
        };
        let (latitude, longitude, altitude) = place(device);
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
