//! Catches up on the uplinks that came while there was no connection, from the storage integration.

use std::{sync::Arc, time::Duration};

use client::things_stack::ThingsStackClient;
use serde::Deserialize;
use serde_json::value::RawValue;
use server::status::ErrorChain;
use tokio::sync::Semaphore;
use types::{Kind, Kinded, Timestamp};

use super::{application::Application, topic::Topic};
use crate::{
    delivery::{Ack, Delivery},
    look_up::is_final,
    metrics,
};

/// How many uplinks are asked for at once.
const PAGE_ITEMS: u32 = 200;
/// Maximum number of stored uplinks in progress.
const IN_FLIGHT_MAX: usize = 256;
/// How far before the last known uplink the query starts, because uplinks need not be stored in their order.
const OVERLAP: Duration = Duration::from_secs(10);

/// Asks for stored uplinks.
pub(super) struct CatchUp {
    pub(super) api: ThingsStackClient,
    pub(super) application: Arc<Application>,
    in_flight: Arc<Semaphore>,
}

/// What became of a query.
pub(super) enum CaughtUp {
    /// Everything up to the message of this time was delivered.
    Until(Timestamp),
    /// The API does not return stored uplinks.
    Refused,
    /// The API cannot be used now.
    Failed,
}

/// What is read of a stored message.
#[derive(Deserialize)]
struct Stored {
    end_device_ids: DeviceIds,
    received_at: Timestamp,
}

#[derive(Deserialize)]
struct DeviceIds {
    device_id: String,
}

impl CatchUp {
    pub(super) fn new(api: ThingsStackClient, application: Arc<Application>) -> Self {
        Self { api, application, in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)) }
    }

    /// Delivers the uplinks since a time, oldest first.
    pub(super) async fn run(&self, since: Timestamp, deliver: impl Fn(Delivery)) -> CaughtUp {
        let application = &self.application.uid;
        match self.deliver_since(since, deliver).await {
            Ok((uplinks, until)) => {
                metrics::caught_up("complete", uplinks);
                tracing::info!(application, uplinks, "asked the storage integration for uplinks that were missed");
                CaughtUp::Until(until)
            }
            Err(error) if is_final(&error) => {
                metrics::caught_up("refused", 0);
                tracing::error!(application, error = %ErrorChain(&error), "cannot catch up: {}", advice(&error));
                CaughtUp::Refused
            }
            Err(error) => {
                metrics::caught_up("failed", 0);
                tracing::warn!(application, error = %ErrorChain(&error), "cannot catch up yet: trying again");
                CaughtUp::Failed
            }
        }
    }

    async fn deliver_since(&self, since: Timestamp, deliver: impl Fn(Delivery)) -> client::Result<(u64, Timestamp)> {
        let mut after = Timestamp::from_nanos(since.as_nanos().saturating_sub(OVERLAP.as_nanos() as i64));
        let (mut uplinks, mut until) = (0, since);
        loop {
            let key = self.application.key.current();
            let page = self.api.stored_uplinks(&key, self.application.id(), &after.to_rfc3339(), PAGE_ITEMS).await?;
            let is_last = page.len() < PAGE_ITEMS as usize;
            let mut last = after;
            for uplink in page {
                let Ok(Stored { end_device_ids, received_at }) = serde_json::from_str(uplink.get()) else {
                    metrics::uplink("malformed");
                    tracing::warn!(application = self.application.uid, "a stored uplink names no device or time");
                    continue;
                };
                last = last.max(received_at);
                until = until.max(received_at);
                uplinks += 1;
                deliver(self.delivery(&end_device_ids.device_id, &uplink).await);
            }
            if is_last || last <= after {
                return Ok((uplinks, until));
            }
            // Those of the same time may be on both pages.
            after = Timestamp::from_nanos(last.as_nanos() - 1).max(Timestamp::from_nanos(after.as_nanos() + 1));
        }
    }

    async fn delivery(&self, device: &str, uplink: &RawValue) -> Delivery {
        let permit = match self.in_flight.clone().acquire_owned().await {
            Ok(permit) => permit,
            // It fails only for a closed semaphore, which this one never is.
            Err(_) => std::future::pending().await,
        };
        let topic = Topic { application: &self.application.uid, device, rest: "up" };
        let ack = Ack::new(async {}, permit);
        Delivery { topic: topic.to_string(), payload: uplink.get().to_owned().into(), is_repeated: true, ack }
    }
}

fn advice(error: &client::Error) -> &'static str {
    match error.kind() {
        Kind::NotFound | Kind::Unsupported | Kind::Denied => {
            "activate the storage integration in the Console, and let the API key read application traffic; without \
             it, uplinks that come while the bridge is not connected are lost"
        }
        Kind::Unauthenticated => "the API key is not accepted any more: create one in the Console",
        _ => "uplinks that came while the bridge was not connected are lost",
    }
}
