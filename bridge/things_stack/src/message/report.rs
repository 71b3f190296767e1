//! Reports of failed formatters, for applications.
//!
//! The Things Stack publishes an uplink whose formatter fails without `decoded_payload`, and says why in an event that
//! only its Console shows. Here, the same event is also a `service/data` message, in The Things Stack's own form.

use std::collections::BTreeMap;

use bridge::codec::outcome::CodecError;
use serde::Serialize;
use types::Timestamp;

use crate::application::topic::Topic;

/// The name of the service that reports.
const SERVICE: &str = "airlock";

/// The names of that event.
const UPLINK_DECODE_FAIL: &str = "as.up.data.decode.fail";
const DOWNLINK_DECODE_FAIL: &str = "as.down.data.decode.fail";

/// An `ApplicationUp` with `service_data`.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    end_device_ids: DeviceIds<'a>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    correlation_ids: &'a [String],
    received_at: Timestamp,
    service_data: ServiceData,
}

#[derive(Serialize)]
pub(crate) struct DeviceIds<'a> {
    device_id: &'a str,
    application_ids: ApplicationIds<'a>,
}

#[derive(Serialize)]
struct ApplicationIds<'a> {
    application_id: &'a str,
}

#[derive(Serialize)]
struct ServiceData {
    service: &'static str,
    data: Failure,
}

#[derive(Serialize)]
struct Failure {
    event: &'static str,
    message: String,
    #[serde(flatten)]
    context: BTreeMap<&'static str, String>,
}

impl<'a> Report<'a> {
    /// The failure of an uplink formatter; `correlation_ids` are those of the message that it is about.
    pub(crate) fn of_uplink(
        error: &CodecError,
        topic: Topic<'a>,
        correlation_ids: &'a [String],
        received_at: Timestamp,
    ) -> Self {
        Self::new(UPLINK_DECODE_FAIL, error, (topic, correlation_ids), received_at)
    }

    /// The failure of a downlink formatter to decode.
    pub(crate) fn of_downlink(
        error: &CodecError,
        topic: Topic<'a>,
        correlation_ids: &'a [String],
        received_at: Timestamp,
    ) -> Self {
        Self::new(DOWNLINK_DECODE_FAIL, error, (topic, correlation_ids), received_at)
    }

    fn new(
        event: &'static str,
        error: &CodecError,
        (topic, correlation_ids): (Topic<'a>, &'a [String]),
        received_at: Timestamp,
    ) -> Self {
        let data = Failure { event, message: error.to_string(), context: error.context() };
        Self {
            end_device_ids: DeviceIds::of(topic),
            correlation_ids,
            received_at,
            service_data: ServiceData { service: SERVICE, data },
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

impl<'a> DeviceIds<'a> {
    pub(crate) fn of(topic: Topic<'a>) -> Self {
        let application_id = topic.application.split_once('@').map_or(topic.application, |(id, _)| id);
        Self { device_id: topic.device, application_ids: ApplicationIds { application_id } }
    }
}
