//! Devices: their records, their sessions and the addresses they may have.

mod address;
mod change;
mod devices;
mod model;
mod record;
mod session;
mod validation;

pub(crate) use self::session::{Nonces, Session};
pub use self::{
    address::{Addresses, Prefix, Usage},
    change::Change,
    devices::{DEVICE_PAGE_MAX, DevicePage, Devices},
    model::{Device, Lorawan},
};
