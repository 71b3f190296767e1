//! The workers of this process: one for each destination with messages.

mod progress;
mod queue_worker;
mod recent;

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use server::status::ErrorChain;
use tokio::{
    runtime::Handle,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::queue_worker::QueueWorker;
pub use self::{progress::Failing, recent::RecentDelivery};
pub(crate) use self::{
    progress::Progress,
    queue_worker::WorkerContext,
    recent::{About, FinishedDelivery, RecentDeliveries, Timing},
};
use crate::{
    Error,
    destination::{Destination, Part},
    queue::index::{Index, Indexed},
};

/// Interval at which queues that killed processes left behind are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Time that deliveries in progress may take when the process stops.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// The workers that run.
pub(crate) struct QueueWorkers {
    context: Arc<WorkerContext>,
    index: Arc<Index>,
    running: Mutex<HashMap<Destination, Running>>,
    tasks: TaskTracker,
    threads: Handle,
    /// Ends the workers even while they send.
    abort: CancellationToken,
}

/// A running worker.
struct Running {
    /// True if there are new messages since it last found its queue empty.
    has_new: bool,
    progress: Arc<Progress>,
}

impl QueueWorkers {
    /// None yet; they will run in `threads`.
    pub(crate) fn new(context: WorkerContext, index: Arc<Index>, threads: Handle) -> Self {
        let (running, tasks) = (Mutex::default(), TaskTracker::new());
        Self { context: Arc::new(context), index, running, tasks, threads, abort: CancellationToken::new() }
    }

    /// Says that a destination has messages.
    pub(crate) fn wake(self: &Arc<Self>, destination: &Destination) {
        let mut all = self.running.lock();
        if let Some(running) = all.get_mut(destination) {
            running.has_new = true;
            return;
        }
        let progress = Arc::new(Progress::default());
        all.insert(destination.clone(), Running { has_new: true, progress: progress.clone() });
        drop(all);
        let (this, destination) = (Arc::clone(self), destination.clone());
        let run = self.abort.clone().run_until_cancelled_owned(async move { this.run(destination, progress).await });
        self.tasks.spawn_on(run, &self.threads);
    }

    /// The progress of the worker of a destination; none if none runs here, as when nothing waits.
    pub(crate) fn progress(&self, destination: &Destination) -> Option<Arc<Progress>> {
        self.running.lock().get(destination).map(|running| running.progress.clone())
    }

    async fn run(&self, destination: Destination, progress: Arc<Progress>) {
        let mut worker = QueueWorker::new(Arc::clone(&self.context), destination.clone(), progress);
        while !self.context.stop.is_cancelled() {
            if let Some(running) = self.running.lock().get_mut(&destination) {
                running.has_new = false;
            }
            worker.run().await;
            let mut running = self.running.lock();
            if running.get(&destination).is_none_or(|running| !running.has_new) {
                running.remove(&destination);
                return;
            }
        }
    }

    /// Delivers messages from before the start and, where several processes use the store, those that others left
    /// behind.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let mut ticks = interval(SWEEP_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.context.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match self.wake_waiting().await {
                Ok(()) if !self.context.leases.is_shared => return,
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "cannot look for messages that wait for outputs: trying again");
                }
            }
        }
    }

    async fn wake_waiting(self: &Arc<Self>) -> Result<(), Error> {
        for Indexed { app_id, .. } in self.index.all().await? {
            for destination in self.context.queues.destinations_with(&app_id, Part::Queue).await? {
                if self.context.destinations.is_known(&destination) {
                    self.wake(&destination);
                }
            }
        }
        Ok(())
    }

    /// Stops after the deliveries in progress. Unconfirmed messages are sent again at the next start.
    pub(crate) async fn stop(&self) {
        self.context.stop.cancel();
        self.tasks.close();
        if timeout(STOP_WAIT, self.tasks.wait()).await.is_err() {
            tracing::warn!("receivers did not answer in time: they will get some messages again");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }

    /// Returns the services that all workers share.
    pub(crate) fn context(&self) -> &WorkerContext {
        &self.context
    }
}
