//! Devices: their records, sessions and addresses.

mod address;
mod change;
mod deletion;
mod devices;
mod eui_claim;
mod find;
mod frame_counters;
mod in_flight;
mod listened;
mod model;
mod moves;
mod record;
mod released;
mod sender;
mod session;
mod validation;

pub use self::{
    address::{Addresses, Prefix, Usage},
    change::Change,
    devices::{Deletion, DevicePage, Devices},
    in_flight::Move,
    model::{Device, Lorawan},
    moves::Moved,
    released::Released,
};
pub(crate) use self::{
    devices::DEVICE_PAGE_MAX,
    listened::ListenedDevice,
    record::euis,
    sender::Sender,
    session::{Nonces, Session},
    validation::attributes_of,
};
