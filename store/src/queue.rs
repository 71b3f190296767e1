//! Queues: messages that stay until somebody acknowledges them.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Error, Key, UnixMillis, shared::base64};

/// The most messages that one call leases.
pub const LEASES_MAX: usize = 256;
/// The most messages that a queue holds, leased ones included.
pub const QUEUE_LENGTH_MAX: u64 = 1 << 20;
/// The most bytes of a consumer's name.
const CONSUMER_BYTES_MAX: usize = 128;

/// A message that is ours for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub(crate) id: u64,
    pub(crate) consumer: String,
    /// How often the message was delivered, this time included.
    pub deliveries: u32,
    /// The message.
    #[serde(with = "base64")]
    pub value: Bytes,
}

/// Refuses names of consumers that cannot be kept.
pub(crate) fn check_consumer(consumer: &str) -> Result<(), Error> {
    if (1..=CONSUMER_BYTES_MAX).contains(&consumer.len()) && consumer.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::invalid("name of consumer", consumer, "1 to 128 visible ASCII characters are allowed"))
}

/// The moment from which a message that is leased now is delivered again; at least a millisecond later.
pub(crate) fn lease_end(now: UnixMillis, visible_after: Duration) -> UnixMillis {
    let lease_ms = u64::try_from(visible_after.as_millis()).unwrap_or(UnixMillis::MAX);
    now.saturating_add(lease_ms.max(1)).min(1 << 53)
}

/// The error of a queue that holds [`QUEUE_LENGTH_MAX`] messages.
pub(crate) fn full(queue: &Key) -> Error {
    Error::Full { queue: queue.to_string() }
}
