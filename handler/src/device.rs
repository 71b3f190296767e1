//! Devices: their records, sessions and addresses.

mod address;
mod change;
mod devices;
mod eui_claim;
mod find;
mod model;
mod record;
mod session;
mod validation;

pub use self::{
    address::{Addresses, Prefix, Usage},
    change::Change,
    devices::{DevicePage, Devices},
    model::{Device, Lorawan},
};
pub(crate) use self::{
    devices::DEVICE_PAGE_MAX,
    record::dev_eui,
    session::{Nonces, Session},
    validation::attributes_of,
};
