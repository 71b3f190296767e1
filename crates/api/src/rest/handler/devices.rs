//! Bodies about many devices at once, which v2 did not have: to find, change and move them.

mod changed;
mod found;
mod moved;

pub use self::{
    changed::{ChangedDevices, DevicesChange, RefusedDevice},
    found::{FoundDevices, NewestUplinks},
    moved::{DeviceMove, MovedDevice},
};
