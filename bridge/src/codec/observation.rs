//! Observations of shadow mode: the result of a codec in its network, and of our run of the same codec.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::codec::outcome::{CodecError, Decoded, Run};

/// Results of an uplink, in the network and here.
#[derive(Debug)]
pub struct Observation {
    /// The application of the device, in the network.
    pub application: ObservedApplication,
    /// The id of the codec: for ChirpStack, of its device profile.
    pub profile_id: String,
    /// As people call it.
    pub profile_name: String,
    /// The network's result.
    pub theirs: ObservedResult,
    /// The result of our run of the same codec.
    pub ours: ObservedResult,
    /// The fuel that our run used.
    pub fuel: u64,
    /// The time that our run took in the sandbox.
    pub elapsed: Duration,
}

/// An application of the network.
#[derive(Clone, Debug, Default)]
pub struct ObservedApplication {
    /// Its id: for The Things Stack, with its tenant.
    pub id: String,
    /// Its name; empty if the network does not say it.
    pub name: String,
}

/// The result of a codec.
#[derive(Debug)]
pub enum ObservedResult {
    /// A JSON object.
    Object(Box<RawValue>),
    /// It failed, with this description.
    Failed(String),
    /// Nothing was decoded.
    Nothing,
}

impl Observation {
    /// Compares the network's result with ours. The second argument is the id and name of the codec.
    pub fn new(
        application: ObservedApplication,
        (profile_id, profile_name): (String, String),
        theirs: ObservedResult,
        (decoded, ran): (Result<Decoded, CodecError>, &Run),
    ) -> Self {
        let ours = match decoded {
            Ok(Decoded { object, .. }) => ObservedResult::of(object),
            Err(error) => ObservedResult::Failed(error.to_string()),
        };
        let Run { fuel, elapsed, .. } = *ran;
        Self { application, profile_id, profile_name, theirs, ours, fuel, elapsed }
    }
}

impl ObservedResult {
    /// That of a codec that did not fail.
    pub fn of(object: Option<Box<RawValue>>) -> Self {
        object.map_or(Self::Nothing, Self::Object)
    }
}
