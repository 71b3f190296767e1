//! Uplink frames as they are received.

use history::usual_seed;
use types::{AppId, DevId, DevicePath, Metadata, NetworkUplink, Timestamp};

use crate::{
    Error,
    payload::{Payload, check_length, parse_port},
    registry::device::Device,
};

/// An uplink as it was received.
///
/// Its payload is plain: the frame is simulated, or its network or `network_broker` has decrypted it.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The application that it claims to belong to.
    pub app_id: AppId,
    /// The device that it claims to come from.
    pub dev_id: DevId,
    /// The LoRaWAN port.
    pub port: u8,
    /// At most 255 bytes.
    pub payload: Vec<u8>,
    /// When it was received.
    pub received: Timestamp,
    /// The frame counter.
    pub f_cnt: u32,
    /// True if the device wants an acknowledgement.
    pub confirmed: bool,
    /// True if the device sent this counter before.
    pub is_retry: bool,
    /// Reception of the frame, as far as it is known.
    pub metadata: Metadata,
    /// Further members of the decoder's input, a JSON object; empty for none.
    pub extra: String,
    /// Warnings for the application.
    pub warnings: Vec<String>,
}

impl Frame {
    pub(crate) fn path(&self) -> DevicePath<'_> {
        DevicePath { app_id: &self.app_id, dev_id: &self.dev_id }
    }

    /// A frame that no device sent; [`Error::Invalid`] if the payload is longer than a frame can carry.
    pub fn simulated(
        app_id: AppId,
        dev_id: DevId,
        port: u32,
        payload: Vec<u8>,
        received: Timestamp,
    ) -> Result<Self, Error> {
        check_length(&payload)?;
        Ok(Self {
            app_id,
            dev_id,
            port: parse_port(port)?,
            payload,
            received,
            f_cnt: 0,
            confirmed: false,
            is_retry: false,
            metadata: Metadata::default(),
            extra: String::new(),
            warnings: Vec::new(),
        })
    }

    /// A frame that a network received from a device; [`Error::Invalid`] if the payload is longer than a frame can
    /// carry.
    pub(crate) fn from_network(
        app_id: AppId,
        dev_id: DevId,
        uplink: NetworkUplink,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let NetworkUplink { port, f_cnt, confirmed, payload, received, metadata, variables, warnings, .. } = uplink;
        check_length(&payload)?;
        let extra = variables.map(|variables| format!(r#"{{"variables":{variables}}}"#)).unwrap_or_default();
        let received = received.unwrap_or(now);
        // History keeps the metadata as it is published.
        let metadata = Metadata { time: received.to_rfc3339(), ..metadata };
        // Networks drop what a device sends again.
        let is_retry = false;
        Ok(Self { app_id, dev_id, port, payload, received, f_cnt, confirmed, is_retry, metadata, extra, warnings })
    }

    pub(crate) fn into_payload(self, device: &Device) -> Payload {
        Payload {
            bytes: (self.port > 0).then_some(self.payload),
            port: self.port,
            f_cnt: self.f_cnt,
            confirmed: self.confirmed,
            is_retry: self.is_retry,
            received: self.received,
            seed: usual_seed(&device.app_id, &device.dev_id, self.f_cnt),
            metadata: self.metadata,
            extra: self.extra,
            warnings: self.warnings,
        }
    }
}
