//! Data frames of LoRaWAN 1.0, and the cryptography of all frames.

pub(crate) mod airtime;
pub(crate) mod crypto;
mod downlink_frame;
mod fields;
mod uplink_frame;

pub(crate) use self::{
    downlink_frame::{DownlinkFrame, FramePayload},
    uplink_frame::{OpenedFrame, UplinkFrame},
};
use crate::{Error, registry::device::Device};
use types::{AppSKey, NwkSKey};

/// The keys of a device's session.
pub(crate) struct SessionKeys<'a> {
    pub(crate) nwk_s_key: &'a NwkSKey,
    pub(crate) app_s_key: &'a AppSKey,
}

impl<'a> SessionKeys<'a> {
    /// The keys of a device; [`Error::NoSession`] if it has not been activated.
    pub(crate) fn of(device: &'a Device) -> Result<Self, Error> {
        let lorawan = &device.lorawan;
        let nwk_s_key = lorawan.nwk_s_key.as_ref().filter(|key| !key.is_zero());
        let app_s_key = lorawan.app_s_key.as_ref().filter(|key| !key.is_zero());
        match (nwk_s_key, app_s_key) {
            (Some(nwk_s_key), Some(app_s_key)) => Ok(Self { nwk_s_key, app_s_key }),
            _ => Err(Error::NoSession(device.dev_id.clone())),
        }
    }
}
