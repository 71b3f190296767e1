//! Payloads to fields and back: payload functions in a sandbox, or Cayenne LPP.

mod cayenne;
mod expected_fuel;
mod functions_cache;
mod limits;
mod message;
mod outcome;
mod payloads;

pub(crate) use self::{
    expected_fuel::ExpectedFuel,
    limits::{HashedLimits, LowerLimit},
    message::{check_length, parse_port},
    outcome::Encoded,
};
pub use self::{
    message::{PAYLOAD_BYTES_MAX, Payload},
    outcome::{DecodeError, Decoded, Validity},
    payloads::{Payloads, Run},
};
