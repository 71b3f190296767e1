//! A downlink in the form of The Things Stack's API.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use types::NetworkDownlink;

/// Prefix of our ids in `correlation_ids`, which come back with every report.
pub(super) const CORRELATION_PREFIX: &str = "airlock:";
/// Maximum number of times that The Things Stack sends a downlink that the device does not acknowledge.
const ATTEMPTS_MAX: u32 = 8;

#[derive(Serialize)]
struct Downlinks {
    downlinks: [Downlink; 1],
}

#[derive(Serialize)]
struct Downlink {
    f_port: u8,
    frm_payload: String,
    confirmed: bool,
    priority: &'static str,
    correlation_ids: [String; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_retry: Option<ConfirmedRetry>,
}

#[derive(Serialize)]
struct ConfirmedRetry {
    max_attempts: u32,
}

/// The request for a downlink of which reports have its id.
pub(super) fn request(downlink: NetworkDownlink) -> serde_json::Result<Vec<u8>> {
    let NetworkDownlink { id, port, confirmed, payload, .. } = downlink;
    serde_json::to_vec(&Downlinks {
        downlinks: [Downlink {
            f_port: port,
            frm_payload: STANDARD.encode(payload),
            confirmed,
            priority: "NORMAL",
            correlation_ids: [format!("{CORRELATION_PREFIX}{id}")],
            confirmed_retry: confirmed.then_some(ConfirmedRetry { max_attempts: ATTEMPTS_MAX }),
        }],
    })
}
