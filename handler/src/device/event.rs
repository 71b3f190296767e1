//! What applications are told when somebody sets a device.

use types::{DeviceEvent, Timestamp};

use super::{Change, Device};
use crate::output::Topic;

impl Change {
    /// What sort of message tells of it.
    pub(crate) fn topic(&self) -> Topic {
        match self {
            Self::Created => Topic::Create,
            Self::Updated(_) => Topic::Update,
        }
    }

    /// Where the device is, as far as that is new.
    pub(crate) fn event(&self, device: &Device, update_at: Timestamp) -> DeviceEvent {
        let place = |device: &Device| (device.latitude, device.longitude, device.altitude);
        let before = match self {
            Self::Created => (0.0, 0.0, 0),
            Self::Updated(before) => place(before),
        };
        let (latitude, longitude, altitude) = place(device);
        DeviceEvent {
            latitude: Some(latitude).filter(|latitude| *latitude != 0.0 && *latitude != before.0),
            longitude: Some(longitude).filter(|longitude| *longitude != 0.0 && *longitude != before.1),
            altitude: Some(altitude).filter(|altitude| *altitude != 0 && *altitude != before.2),
            update_at,
        }
    }
}
