//! Moves of devices on the wire.

use api::{
    device::{MoveDeviceRequest, MovedDevice as Message},
    rest::handler::MovedDevice as Body,
};

use super::device_ids;
use crate::{Error, registry::device::Move};

/// The move in a request; an empty id in the new application is the one that the device has.
pub(crate) fn device_move(request: &MoveDeviceRequest) -> Result<Move, Error> {
    let MoveDeviceRequest { app_id: from, dev_id: id, to_app_id, to_dev_id } = request;
    let to_id = if to_dev_id.is_empty() { id } else { to_dev_id };
    Ok(Move { from: device_ids(from, id)?, to: device_ids(to_app_id, to_id)? })
}

/// The body about a device that was moved, and how many downlinks were dropped then.
pub(crate) fn body(to: (impl Into<String>, impl Into<String>), dropped: usize) -> Body {
    let dropped_downlinks = u32::try_from(dropped).unwrap_or(u32::MAX);
    Body { app_id: to.0.into(), dev_id: to.1.into(), dropped_downlinks }
}

/// The same as a message.
pub(crate) fn message(to: (impl Into<String>, impl Into<String>), dropped: usize) -> Message {
    let Body { app_id, dev_id, dropped_downlinks } = body(to, dropped);
    Message { app_id, dev_id, dropped_downlinks }
}
