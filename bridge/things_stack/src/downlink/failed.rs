//! A downlink that failed, as The Things Stack reports one.

use bridge::codec::outcome::CodecError;
use serde::Serialize;
use serde_json::value::RawValue;
use types::Timestamp;

use crate::{application::topic::Topic, message::report::DeviceIds};

/// Maximum number of downlinks in a request. Of more, none is reported, because each takes a message of its own.
pub(crate) const DOWNLINKS_MAX: usize = 100;
/// The code of an invalid argument, which is that of gRPC.
const INVALID_ARGUMENT: u32 = 3;

/// An `ApplicationUp` with `downlink_failed`.
#[derive(Serialize)]
pub(crate) struct FailedDownlink<'a> {
    end_device_ids: DeviceIds<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    correlation_ids: Vec<String>,
    received_at: Timestamp,
    downlink_failed: Failed<'a>,
}

#[derive(Serialize)]
struct Failed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    downlink: Option<&'a RawValue>,
    error: Details,
}

/// `ErrorDetails` of The Things Stack.
#[derive(Serialize)]
struct Details {
    namespace: &'static str,
    name: &'static str,
    message_format: String,
    code: u32,
}

/// The parts of a request that are read.
#[derive(serde::Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    downlinks: Vec<&'a RawValue>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct CorrelationIds {
    correlation_ids: Vec<String>,
}

impl<'a> FailedDownlink<'a> {
    /// One for each downlink of a request, and one for a request that is malformed or has too many.
    pub(crate) fn all(topic: Topic<'a>, request: &'a [u8], error: &CodecError, received_at: Timestamp) -> Vec<Self> {
        let downlinks = serde_json::from_slice::<Request<'a>>(request).map(|request| request.downlinks);
        let downlinks = downlinks.ok().filter(|downlinks| downlinks.len() <= DOWNLINKS_MAX);
        let downlinks = downlinks.unwrap_or_default().into_iter().map(Some);
        let failed = |downlink: Option<&'a RawValue>| {
            let ids: CorrelationIds =
                downlink.and_then(|downlink| serde_json::from_str(downlink.get()).ok()).unwrap_or_default();
            let error = Details {
                namespace: "airlock",
                name: "downlink",
                message_format: error.to_string(),
                code: INVALID_ARGUMENT,
            };
            Self {
                end_device_ids: DeviceIds::of(topic),
                correlation_ids: ids.correlation_ids,
                received_at,
                downlink_failed: Failed { downlink, error },
            }
        };
        let all: Vec<Self> = downlinks.map(failed).collect();
        if all.is_empty() { vec![failed(None)] } else { all }
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}
