//! Devices: their records, sessions and addresses.

mod address;
mod deletion;
mod devices;
mod eui_claim;
mod find;
mod frame_counters;
mod model;
mod moves;
mod released;
mod sender;
mod session;
mod watched;

pub use self::{
    address::{Addresses, Prefix, Usage},
    devices::{Deletion, DevicePage, Devices},
    model::{Change, Device, Lorawan},
    moves::{EndedMove, Move, Moved},
    released::Released,
};
pub(crate) use self::{
    devices::{
        DEVICE_PAGE_MAX,
        attributes::{AttributeChange, ChangedAttributes},
        search::{DeviceOrder, DevicePlace, DeviceSearch, FOUND_MAX, FoundDevices},
    },
    model::{attributes_of, euis},
    sender::Sender,
    session::{Nonces, Session},
    watched::WatchedDevice,
};
