//! Takes over the sessions of processes that no longer live, and those that this process claimed without serving them.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::MutexGuard;
use server::status::ErrorChain;
use types::AppId;

use super::{Router, unserved::Claiming};
use crate::session::durable::{Durable, LOADS_MAX, LiveProcesses};

impl Router {
    /// Takes over the sessions of processes that no longer live, if there are any since this was last done, and those
    /// that this process claimed without getting them into memory.
    pub(crate) async fn adopt_orphans(&self) {
        let Some(durable) = &self.durable else { return };
        let adopted = async {
            let live_processes = durable.live_processes().await?;
            let adopted = self.adopt_of_gone(durable, &live_processes).await;
            self.reclaim(durable, &live_processes).await.and(adopted)
        };
        if let Err(error) = adopted.await {
            let error = ErrorChain(&error);
            tracing::warn!(%error, "cannot take over the sessions of MQTT clients from processes that ended: trying again");
        }
    }

    async fn adopt_of_gone(&self, durable: &Durable, live_processes: &LiveProcesses) -> Result<(), store::Error> {
        let processes = live_processes.processes();
        let is_gone = |process| !processes.contains(process);
        if self.live_processes().iter().any(is_gone) {
            self.adopt(durable, live_processes).await?;
        }
        self.live_processes().extend(processes);
        Ok(())
    }

    /// Takes back the sessions that the store says are this process's, but that are not in memory.
    async fn reclaim(&self, durable: &Durable, live_processes: &LiveProcesses) -> Result<(), store::Error> {
        let mut result = Ok(());
        for claiming in self.unserved.take() {
            let taken = self.entry(claiming.app_id()).reclaim(durable, live_processes, self.clock.now()).await;
            result = self.adopted(claiming, taken).map(drop).and(result);
        }
        result
    }

    /// Takes over the sessions that no live process has; returns the processes that have others.
    pub(super) async fn adopt(
        &self,
        durable: &Durable,
        live_processes: &LiveProcesses,
    ) -> Result<HashSet<String>, store::Error> {
        let owners = stream::iter(durable.applications().await?)
            .map(|app_id| self.adopt_application(durable, live_processes, app_id))
            .buffer_unordered(LOADS_MAX)
            .try_fold(HashSet::new(), async |mut all, owners| {
                all.extend(owners);
                Ok(all)
            });
        let owners = owners.await?;
        *self.live_processes() = live_processes.processes();
        Ok(owners)
    }

    async fn adopt_application(
        &self,
        durable: &Durable,
        live_processes: &LiveProcesses,
        app_id: AppId,
    ) -> Result<HashSet<String>, store::Error> {
        let claiming = self.unserved.claiming(&app_id);
        let adopted = self.entry(&app_id).adopt(durable, live_processes, self.clock.now()).await;
        self.adopted(claiming, adopted)
    }

    fn adopted<T>(&self, claiming: Claiming<'_>, adopted: Result<T, store::Error>) -> Result<T, store::Error> {
        self.change(claiming.app_id(), |_| ());
        adopted.inspect(|_| claiming.served())
    }

    fn live_processes(&self) -> MutexGuard<'_, HashSet<String>> {
        self.live_processes.lock()
    }
}
