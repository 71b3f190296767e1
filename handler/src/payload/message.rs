//! The payload of a message: what payload functions are called with.

use types::{Metadata, Timestamp};

use crate::Error;

/// Maximum payload of a LoRaWAN frame, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 255;

/// The content of a frame, once it is decrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The application's bytes; none on port 0, which is reserved for MAC commands.
    pub bytes: Option<Vec<u8>>,
    /// The LoRaWAN port.
    pub port: u8,
    /// The frame counter.
    pub f_cnt: u32,
    /// True if the device wants an acknowledgement.
    pub confirmed: bool,
    /// True if the device sent this counter before.
    pub is_retry: bool,
    /// When the frame was received.
    pub received: Timestamp,
    /// Seeds the functions' random numbers: the same for the same message on every node, and on every retry.
    pub seed: u64,
    /// Reception of the frame, as far as it is known.
    pub metadata: Metadata,
    /// Further members of the functions' input, a JSON object; empty for none.
    pub extra: String,
    /// Warnings for the application.
    pub warnings: Vec<String>,
}

impl Payload {
    /// The payload of a dry run, or of a downlink to encode; [`Error::Invalid`] if it is longer than a frame can carry.
    pub fn without_device(bytes: Option<Vec<u8>>, port: u32, received: Timestamp) -> Result<Self, Error> {
        check_length(bytes.as_deref().unwrap_or_default())?;
        let port = parse_port(port)?;
        Ok(Self {
            bytes,
            port,
            f_cnt: 0,
            confirmed: false,
            is_retry: false,
            received,
            seed: 0,
            metadata: Metadata::default(),
            extra: String::new(),
            warnings: Vec::new(),
        })
    }
}

pub(crate) fn check_length(payload: &[u8]) -> Result<(), Error> {
    let length = payload.len();
    if length <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid("Payload", format_args!("at most {PAYLOAD_BYTES_MAX} bytes are allowed, these are {length}")))
}

pub(crate) fn parse_port(port: u32) -> Result<u8, Error> {
    u8::try_from(port).map_err(|_| Error::invalid("Port", "a number from 0 to 255 is allowed"))
}
