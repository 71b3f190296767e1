//! Parses arbitrary bytes as HTTP bodies and gRPC messages; what parses must survive a round trip.
#![no_main]

use std::fmt::Debug;

use api::{
    discovery, handler,
    rest::{discovery as discovery_body, handler as handler_body},
};
use libfuzzer_sys::fuzz_target;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};

fuzz_target!(|bytes: &[u8]| {
    round_trip::<handler_body::HandlerApplication, handler::Application>(bytes);
    round_trip::<handler_body::Device, handler::Device>(bytes);
    round_trip::<discovery_body::Announcement, discovery::Announcement>(bytes);
    json::<handler_body::SimulatedUplink>(bytes);
    json::<handler_body::DryUplink>(bytes);
    json::<handler_body::DryDownlink>(bytes);
    json::<discovery_body::Metadata>(bytes).map(discovery::metadata::Metadata::from);
});

/// Parses the bytes as a body and as its message, and converts each into the other and back.
fn round_trip<B, M>(bytes: &[u8])
where
    B: Serialize + DeserializeOwned + Clone + TryFrom<M, Error: Debug>,
    M: Message + Default + From<B>,
{
    if let Some(body) = json::<B>(bytes) {
        let message = M::decode(M::from(body.clone()).encode_to_vec().as_slice()).expect("what was encoded decodes");
        let again = B::try_from(message).expect("what was a body is one");
        assert_eq!(text(&again), text(&body));
    }
    if let Some(body) = M::decode(bytes).ok().and_then(|message| B::try_from(message).ok()) {
        let again = B::try_from(M::from(body.clone())).expect("what was a body is one");
        assert_eq!(text(&again), text(&body));
    }
}

/// Parses the bytes as a JSON body.
fn json<B: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<B> {
    let body = serde_json::from_slice(bytes).ok()?;
    let written = text(&body);
    let again: B = serde_json::from_str(&written).expect("what was written reads");
    // JSON cannot write NaN and infinity.
    assert!(text(&again) == written || written.contains(":null"), "{written}");
    Some(body)
}

fn text(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("a body can be written")
}
