//! Catches up on the uplinks that came while there was no connection, from the storage integration.

use std::{sync::Arc, time::Duration};

use bridge::{codec::single_flight::is_final, metrics};
use client::things_stack::{StoredQuery, ThingsStackClient};
use link::delivery::{Ack, Delivery};
use serde::Deserialize;
use serde_json::value::RawValue;
use server::status::ErrorChain;
use tokio::sync::Semaphore;
use types::{Kind, Kinded, Timestamp};

use crate::application::{Application, topic::Topic};

/// Number of uplinks per query.
const PAGE_ITEMS: u32 = 200;
/// A field that makes no uplink large.
const SMALL_FIELD: &str = "up.uplink_message.f_cnt";
/// Maximum number of stored uplinks in progress.
const IN_FLIGHT_MAX: usize = 256;
/// Time before the last known uplink at which the query starts, because uplinks may be stored out of order.
const OVERLAP: Duration = Duration::from_secs(10);

/// Asks for stored uplinks.
pub(crate) struct CatchUp {
    pub(crate) api: ThingsStackClient,
    pub(crate) application: Arc<Application>,
    in_flight: Arc<Semaphore>,
}

/// Counts the stored uplinks in progress.
pub(crate) struct StoredInProgress(Arc<Semaphore>);

/// Outcome of a query.
pub(crate) enum CaughtUp {
    /// Everything up to the message of this time was delivered.
    Until(Timestamp),
    /// The API does not return stored uplinks.
    Refused,
    /// The API cannot be used now. What was received up to this time was delivered.
    Failed { until: Timestamp },
}

/// Progress of a query.
struct Progress {
    /// The time after which the next page begins.
    after: Timestamp,
    /// Everything up to this time was delivered.
    until: Timestamp,
    uplinks: u64,
    /// Number of uplinks to ask for at once.
    limit: u32,
}

/// The parts of a stored message that are read.
#[derive(Deserialize)]
struct StoredHead {
    end_device_ids: DeviceIds,
    received_at: Timestamp,
}

#[derive(Deserialize)]
struct DeviceIds {
    device_id: String,
}

impl StoredInProgress {
    pub(crate) fn count(&self) -> usize {
        IN_FLIGHT_MAX.saturating_sub(self.0.available_permits())
    }

    /// Waits until there are none.
    pub(crate) async fn finished(&self) {
        // It fails only for a closed semaphore, which this one never is.
        drop(self.0.acquire_many(IN_FLIGHT_MAX as u32).await);
    }
}

impl CatchUp {
    pub(crate) fn new(api: ThingsStackClient, application: Arc<Application>) -> Self {
        Self { api, application, in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)) }
    }

    pub(crate) fn in_progress(&self) -> StoredInProgress {
        StoredInProgress(self.in_flight.clone())
    }

    /// Delivers the uplinks since a time, oldest first. Later times than `latest` are wrong, and hide no others.
    pub(crate) async fn run(&self, (since, latest): (Timestamp, Timestamp), deliver: impl Fn(Delivery)) -> CaughtUp {
        let application = &self.application.uid;
        let after = Timestamp::from_nanos(since.as_nanos().saturating_sub(OVERLAP.as_nanos() as i64));
        let mut progress = Progress { after, until: since, uplinks: 0, limit: PAGE_ITEMS };
        let delivered = self.deliver_all(&mut progress, deliver).await;
        let Progress { until, uplinks, .. } = progress;
        let until = until.min(latest).max(since);
        match delivered {
            Ok(()) => {
                metrics::caught_up("complete", uplinks);
                tracing::info!(application, uplinks, "asked the storage integration for uplinks that were missed");
                CaughtUp::Until(until)
            }
            Err(error) if is_final(&error) => {
                metrics::caught_up("refused", uplinks);
                tracing::error!(application, error = %ErrorChain(&error), "cannot catch up: {}", advice(&error));
                CaughtUp::Refused
            }
            Err(error) => {
                metrics::caught_up("failed", uplinks);
                tracing::warn!(application, error = %ErrorChain(&error), "cannot catch up yet: trying again");
                CaughtUp::Failed { until }
            }
        }
    }

    async fn deliver_all(&self, progress: &mut Progress, deliver: impl Fn(Delivery)) -> client::Result<()> {
        loop {
            let page = match self.page(progress.after, progress.limit, None).await {
                Err(client::Error::TooLarge { .. }) if progress.limit > 1 => {
                    progress.limit /= 2;
                    continue;
                }
                Err(client::Error::TooLarge { .. }) => {
                    self.skip(progress).await?;
                    continue;
                }
                page => page?,
            };
            let is_last = page.len() < progress.limit as usize;
            let mut last = progress.after;
            for uplink in page {
                let Ok(StoredHead { end_device_ids, received_at }) = serde_json::from_str(uplink.get()) else {
                    metrics::uplink("malformed");
                    tracing::warn!(application = self.application.uid, "a stored uplink names no device or time");
                    continue;
                };
                last = last.max(received_at);
                progress.until = progress.until.max(received_at);
                progress.uplinks += 1;
                deliver(self.delivery(&end_device_ids.device_id, &uplink).await);
            }
            if is_last || last <= progress.after {
                return Ok(());
            }
            progress.limit = (progress.limit * 2).min(PAGE_ITEMS);
            // Those of the same time may be on both pages.
            let next = Timestamp::from_nanos(progress.after.as_nanos() + 1);
            progress.after = Timestamp::from_nanos(last.as_nanos() - 1).max(next);
        }
    }

    async fn page(&self, after: Timestamp, limit: u32, fields: Option<&str>) -> client::Result<Vec<Box<RawValue>>> {
        let after = after.to_rfc3339();
        let query = StoredQuery { after: &after, limit, fields };
        self.api.stored_uplinks(&self.application.key.current(), self.application.id(), query).await
    }

    /// Leaves out an uplink that is too large, of which only the time is read.
    async fn skip(&self, progress: &mut Progress) -> client::Result<()> {
        let page = self.page(progress.after, 1, Some(SMALL_FIELD)).await?;
        let stored = page.first().and_then(|uplink| serde_json::from_str(uplink.get()).ok());
        let next = Timestamp::from_nanos(progress.after.as_nanos() + 1);
        progress.after = stored.map_or(next, |StoredHead { received_at, .. }| received_at.max(next));
        metrics::dropped("too large");
        tracing::error!(application = self.application.uid, received_at = %progress.after.to_rfc3339(), "dropped a stored uplink that is too large");
        Ok(())
    }

    async fn delivery(&self, device: &str, uplink: &RawValue) -> Delivery {
        let permit = match self.in_flight.clone().acquire_owned().await {
            Ok(permit) => permit,
            // It fails only for a closed semaphore, which this one never is.
            Err(_) => std::future::pending().await,
        };
        let topic = Topic { application: &self.application.uid, device, rest: "up" };
        let ack = Ack::new(async {}, permit);
        let payload = uplink.get().to_owned().into();
        Delivery { topic: topic.to_string(), payload, is_duplicate: true, is_late: true, ack }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use client::Trust;
    use testing::{THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink};
    use types::Secret;

    use super::*;
    use link::secret_file::SecretFile;

    #[tokio::test]
    async fn what_was_delivered_before_a_failure_is_not_asked_for_again() {
        server::system::install_crypto();
        let api = ThingsStackApi::start().await;
        (0..600).for_each(|counter| api.store(things_stack_uplink("dev1", counter, "AQ==")));
        let key = SecretFile::given(Secret::new(THINGS_STACK_KEY));
        let uid = THINGS_STACK_APPLICATION.to_owned();
        let application = Arc::new(Application { uid, webhook_key: key.clone(), key });
        let client = ThingsStackClient::new(&api.url(), &Trust::System).unwrap();
        let catch_up = CatchUp::new(client, application);
        let (start, latest) = (Timestamp::from_millis(0), Timestamp::from_nanos(i64::MAX));
        let delivered = Cell::new(0);
        api.refuse_storage_after(2, 429);
        let count = |_| delivered.set(delivered.get() + 1);
        let CaughtUp::Failed { until } = catch_up.run((start, latest), count).await else { panic!("it failed") };
        assert_eq!(delivered.get(), 400);
        api.refuse_storage(None);
        let CaughtUp::Until(_) = catch_up.run((until, latest), count).await else { panic!("it goes on") };
        // Those of the last ten seconds come twice, and the last one of each page.
        assert_eq!(delivered.get(), 612);
    }
}
