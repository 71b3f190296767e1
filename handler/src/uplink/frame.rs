//! What arrives from a device, before and after the device is known.

use sha2::{Digest, Sha256};
use types::{AppId, DevId, Metadata, Timestamp};

use crate::{Error, device::Device};

/// The most bytes that a LoRaWAN frame can carry.
pub const PAYLOAD_BYTES_MAX: usize = 255;

/// An uplink as it was received.
///
/// So far every frame is simulated; those from brokers will carry encrypted bytes, which [`Frame::open`] is the place
/// to open.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The application that it claims to belong to.
    pub app_id: AppId,
    /// The device that it claims to come from.
    pub dev_id: DevId,
    /// The LoRaWAN port.
    pub port: u8,
    /// At most [`PAYLOAD_BYTES_MAX`] bytes.
    pub payload: Vec<u8>,
    /// When we received it.
    pub received: Timestamp,
}

/// What a frame holds, once the device is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The application's bytes; none on port 0, which is LoRaWAN's own.
    pub bytes: Option<Vec<u8>>,
    /// The LoRaWAN port.
    pub port: u8,
    /// The frame counter.
    pub counter: u32,
    /// Whether the device wants an acknowledgement.
    pub confirmed: bool,
    /// Whether the device sent this counter before.
    pub retry: bool,
    /// When we received it.
    pub received: Timestamp,
    /// Stands for this message wherever a function asks for randomness: the same on every node, and on every retry.
    pub seed: u64,
}

impl Frame {
    /// A frame that nobody sent; [`Error::Invalid`] when the payload is longer than a frame can carry.
    pub fn simulated(
        app_id: AppId,
        dev_id: DevId,
        port: u32,
        payload: Vec<u8>,
        received: Timestamp,
    ) -> Result<Self, Error> {
        check_length(&payload)?;
        Ok(Self { app_id, dev_id, port: port_number(port)?, payload, received })
    }

    /// Opens the frame with what is known about its device.
    pub fn open(self, device: &Device) -> Payload {
        let counter = 0;
        Payload {
            bytes: (self.port > 0).then_some(self.payload),
            port: self.port,
            counter,
            confirmed: false,
            retry: false,
            received: self.received,
            seed: seed(&device.app_id, &device.dev_id, counter),
        }
    }
}

impl Payload {
    /// A payload that belongs to no device: for trying functions.
    pub fn dry(bytes: Option<Vec<u8>>, port: u32, received: Timestamp) -> Result<Self, Error> {
        check_length(bytes.as_deref().unwrap_or_default())?;
        let port = port_number(port)?;
        Ok(Self { bytes, port, counter: 0, confirmed: false, retry: false, received, seed: 0 })
    }

    /// When and where it was sent, as far as that is known.
    pub fn metadata(&self, device: &Device) -> Metadata {
        Metadata {
            time: self.received.to_rfc3339(),
            latitude: device.latitude,
            longitude: device.longitude,
            altitude: device.altitude,
            ..Metadata::default()
        }
    }
}

fn check_length(payload: &[u8]) -> Result<(), Error> {
    let length = payload.len();
    if length <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid("Payload", format_args!("at most {PAYLOAD_BYTES_MAX} bytes are allowed, these are {length}")))
}

fn port_number(port: u32) -> Result<u8, Error> {
    u8::try_from(port).map_err(|_| Error::invalid("Port", "a number from 0 to 255 is allowed"))
}

fn seed(app_id: &AppId, dev_id: &DevId, counter: u32) -> u64 {
    let mut hash = Sha256::new();
    hash.update(app_id.as_str());
    hash.update([0]);
    hash.update(dev_id.as_str());
    hash.update([0]);
    hash.update(counter.to_le_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
