//! Devices: their records, their sessions and the addresses they may have.

mod address;
mod change;
mod devices;
mod record;
mod session;
mod validation;

pub use self::{
    address::{Addresses, Prefix, Usage},
    devices::{Change, Device, Devices, LIST_MAX, Lorawan, Page},
};
pub(crate) use self::{
    devices::{device_key, not_found},
    session::{Nonces, Session},
};
