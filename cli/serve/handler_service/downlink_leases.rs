//! Leases of handlers to receive downlinks: those that share have a record in the store, and where a broker has no
//! shared subscriptions, one of them holds a lease there.

use std::{sync::Arc, time::Duration};

use bridge::broker::{ReceiveLease, ReceiveLeases};
use futures::future::BoxFuture;
use server::{
    lease::{Lease, Leases},
    status::ErrorChain,
};
use store::{Batch, Error, Key, Store, Tag};
use tokio::time::sleep;
use types::{Clock, Random};

use crate::serve::context::Context;

/// Time for which a handler counts as taking part, so that one that was killed drops out.
const PART_MAX: Duration = Duration::from_secs(15);
/// Interval at which a handler renews its record.
const PART_INTERVAL: Duration = Duration::from_secs(4);
/// The records of those that take part.
const PARTS: &str = "parts";

/// The leases of the handlers with one store.
pub(super) struct DownlinkLeases {
    leases: Leases,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

struct HeldLease {
    lease: Lease,
    client_id: String,
}

impl DownlinkLeases {
    pub(super) fn new(context: &Context) -> Self {
        let leases = Leases {
            store: context.store.clone(),
            clock: context.clock.clone(),
            is_shared: context.settings.store.redis.is_some(),
            process: format!("{:016x}", u64::from_be_bytes(context.random.array())),
        };
        Self { leases, store: context.store.clone(), clock: context.clock.clone(), random: context.random.clone() }
    }

    /// Returns true if other handlers may use the store.
    pub(super) fn are_shared(&self) -> bool {
        self.leases.is_shared
    }

    async fn say_that_it_takes_part(&self, client_id: &str) -> Result<(), Error> {
        let end = self.clock.now().plus(PART_MAX).as_unix_ms();
        self.store.commit(Batch::new().put_until(part(client_id)?, Vec::new(), end)).await.map(drop)
    }

    /// Removes this handler's record. Returns true if others still take part. Of two that leave at the same time, one
    /// may stay.
    async fn try_leave(&self, client_id: &str) -> Result<bool, Error> {
        // It expects nothing, so it is in no conflict.
        _ = self.store.commit(Batch::new().delete(part(client_id)?)).await?;
        Ok(!self.store.list(&key(PARTS)?, None, 1).await?.is_empty())
    }

    async fn try_acquire(&self) -> Result<Option<HeldLease>, Error> {
        let Some(lease) = self.leases.acquire(key("lease")?).await? else { return Ok(None) };
        match self.client_id().await {
            Ok(client_id) => Ok(Some(HeldLease { lease, client_id })),
            Err(error) => {
                lease.release().await;
                Err(error)
            }
        }
    }

    /// The client id of all handlers with this store; made up by the first of them.
    async fn client_id(&self) -> Result<String, Error> {
        let key = key("client-id")?;
        let id = format!("airlock-{:016x}-in", u64::from_be_bytes(self.random.array()));
        // After a conflict, another one has made it up.
        _ = self.store.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), id)).await?;
        let entry = self.store.get_one(&key).await?;
        let id = entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
        id.ok_or(Error::Unavailable { what: "read the client id of the handlers", source: None })
    }
}

impl ReceiveLeases for DownlinkLeases {
    fn take_part<'a>(&'a self, client_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            loop {
                if let Err(error) = self.say_that_it_takes_part(client_id).await {
                    tracing::debug!(error = %ErrorChain(&error), "cannot say that this handler receives downlinks");
                }
                sleep(PART_INTERVAL).await;
            }
        })
    }

    fn leave<'a>(&'a self, client_id: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move { self.try_leave(client_id).await.map_err(|error| ErrorChain(&error).to_string()) })
    }

    fn acquire(&self) -> BoxFuture<'_, Result<Option<Box<dyn ReceiveLease>>, String>> {
        Box::pin(async move {
            let taken = self.try_acquire().await.map_err(|error| ErrorChain(&error).to_string())?;
            Ok(taken.map(|lease| Box::new(lease) as Box<dyn ReceiveLease>))
        })
    }
}

impl ReceiveLease for HeldLease {
    fn client_id(&self) -> &str {
        &self.client_id
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lease.lost())
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.lease.release())
    }
}

fn part(client_id: &str) -> Result<Key, Error> {
    key(&format!("{PARTS}/{client_id}"))
}

fn key(name: &str) -> Result<Key, Error> {
    Key::new(&Tag::service("handler")?, &format!("handler/external-broker/{name}"))
}
