//! Payloads to fields and back: payload functions in a sandbox, or Cayenne LPP.

mod cayenne;
mod functions_cache;
mod payloads;

pub use self::payloads::{Cost, Decoded, Encoded, Payloads, Problem, Verdict};
