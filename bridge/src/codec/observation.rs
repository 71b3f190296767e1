//! What shadow mode observes: the result of a codec in its network, and of our run of the same codec.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::codec::outcome::{CodecError, Decoded};

/// What became of an uplink, in the network and here.
#[derive(Debug)]
pub struct Observation {
    /// The id of the codec: for ChirpStack, of its device profile.
    pub profile_id: String,
    /// Its name.
    pub profile_name: String,
    /// What the network made of it.
    pub theirs: Verdict,
    /// What our run of the same codec makes of it.
    pub ours: Verdict,
    /// The fuel that our run used.
    pub fuel: u64,
    /// The time that our run took in the sandbox.
    pub elapsed: Duration,
}

/// The result of a codec.
#[derive(Debug)]
pub enum Verdict {
    /// A JSON object.
    Object(Box<RawValue>),
    /// It failed, with this description.
    Failed(String),
    /// Nothing was decoded.
    Nothing,
}

impl Verdict {
    /// The result of our run.
    pub fn of(decoded: Result<Decoded, CodecError>) -> Self {
        match decoded {
            Ok(Decoded { object: Some(object), .. }) => Self::Object(object),
            Ok(Decoded { object: None, .. }) => Self::Nothing,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}
