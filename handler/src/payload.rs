//! Payloads to fields and back: payload functions in a sandbox, or Cayenne LPP.

mod cayenne;
mod functions_cache;
mod message;
mod outcome;
mod payloads;

pub use self::{
    message::{PAYLOAD_BYTES_MAX, Payload},
    outcome::{DecodeError, Decoded, Validity},
    payloads::{Payloads, Run},
};
pub(crate) use self::{
    message::{check_length, parse_port},
    outcome::Encoded,
};
