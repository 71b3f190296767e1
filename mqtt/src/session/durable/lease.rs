//! The leases of processes: whose is over has left its sessions to others.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use store::{Batch, Entry, Error, Version};
use tokio::time::{Instant, sleep};

use super::{Durable, Sharing, last_level, process_key};

/// Time that a process counts as alive after it was last heard of.
const LEASE: Duration = Duration::from_secs(10);

/// Interval at which a process renews its lease.
pub(crate) const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// Interval at which leases of other processes are read again while they are being judged.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The processes whose leases are not over.
pub(crate) struct LiveProcesses {
    /// None if there is only this one.
    shared: Option<HashMap<String, Lease>>,
    own: String,
}

struct Lease {
    instance: String,
    version: Version,
}

impl LiveProcesses {
    /// Returns true if the process that claimed a session under this name is gone.
    pub(super) fn is_orphan(&self, name: &[u8]) -> bool {
        let Some(process) = std::str::from_utf8(name).ok().and_then(|name| Some(name.split_once('-')?.0)) else {
            // Before there were leases, an owner was the name of an instance.
            return true;
        };
        process != self.own && self.shared.as_ref().is_none_or(|live_processes| !live_processes.contains_key(process))
    }

    /// Returns true if this process claimed a session under this name.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        Self::process_of(name).is_some_and(|process| process == self.own)
    }

    /// The process that has claimed a session under this name.
    pub(super) fn process_of(name: &[u8]) -> Option<String> {
        Some(std::str::from_utf8(name).ok()?.split_once('-')?.0.to_owned())
    }

    pub(crate) fn processes(&self) -> HashSet<String> {
        self.shared.iter().flat_map(HashMap::keys).cloned().collect()
    }
}

impl Durable {
    /// Says that this process lives.
    pub(crate) async fn renew_lease(&self) -> Result<(), Error> {
        if self.sharing == Sharing::Alone {
            return Ok(());
        }
        let until = self.clock().now().plus(LEASE).as_unix_ms();
        let renew = Batch::new().put_until(process_key(&self.process)?, self.instance.clone(), until);
        self.store.commit(renew).await.map(drop)
    }

    /// Says that this process ends, so that others need not wait for the end of its lease.
    pub(crate) async fn end_lease(&self) -> Result<(), Error> {
        if self.sharing == Sharing::Alone {
            return Ok(());
        }
        self.store.commit(Batch::new().delete(process_key(&self.process)?)).await.map(drop)
    }

    /// Reads which processes have a lease that is not over.
    pub(crate) async fn live_processes(&self) -> Result<LiveProcesses, Error> {
        let own = self.process.clone();
        if self.sharing == Sharing::Alone {
            return Ok(LiveProcesses { shared: None, own });
        }
        let leases = self.list(&process_key("")?).await?;
        let lease = |Entry { key, value, version }: Entry| {
            let instance = String::from_utf8_lossy(&value).into_owned();
            (last_level(&key).to_owned(), Lease { instance, version })
        };
        Ok(LiveProcesses { shared: Some(leases.into_iter().map(lease).collect()), own })
    }

    /// Waits until it is clear which of `owners` live: this instance may have been killed and started again before the
    /// lease of its last process was over. Returns false if there was nothing to wait for.
    pub(crate) async fn wait_for_predecessors(
        &self,
        live_processes: &LiveProcesses,
        owners: &HashSet<String>,
    ) -> Result<bool, Error> {
        let seen = live_processes.shared.iter().flatten();
        let mut unclear: Vec<_> = seen
            .filter(|(process, lease)| owners.contains(*process) && lease.instance == self.instance)
            .map(|(process, lease)| (process, lease.version))
            .collect();
        let (waits, started) = (!unclear.is_empty(), Instant::now());
        while !unclear.is_empty() && started.elapsed() < LEASE * 2 {
            sleep(LOOK_INTERVAL).await;
            let now = self.live_processes().await?;
            let now = |process: &str| now.shared.as_ref().and_then(|live_processes| live_processes.get(process));
            unclear.retain(|(process, version)| now(process).is_some_and(|lease| lease.version == *version));
        }
        Ok(waits)
    }
}
