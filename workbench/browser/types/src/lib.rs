//! The names of `airlock-types` that layouts of examples need: its own code, without the rest.

#[path = "../../../../crates/types/src/text/hex_bytes.rs"]
mod hex_bytes;
#[path = "../../../../crates/types/src/time.rs"]
mod time;

pub use self::{
    hex_bytes::{HexBytes, HexBytesError},
    time::{Clock, InvalidTimestamp, Timestamp},
};
