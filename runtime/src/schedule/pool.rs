//! The worker pool: a fixed set of threads that load and run functions, with bounded queues.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::contract::call::{Call, CallOutcome};
use crate::contract::failure::Failure;
use crate::contract::sources::{Sources, SourcesHash};
use crate::engine::Engine;
use crate::error::Error;
use crate::functions::Functions;
use crate::limits::Limits;
use crate::schedule::call_worker::{CallJob, CallWorker, Calls};
use crate::schedule::catch_panic::catch_panic;
use crate::schedule::dispatcher::Dispatcher;
use crate::schedule::queue::{Busy, QueueLimits};
use crate::schedule::tenant::{Priority, Tenant};

/// Loader threads for live traffic; more would take processor time from it.
const LOADERS: usize = 2;
/// Loader threads for dry runs and for functions that somebody saves.
const DRY_LOADERS: usize = 1;
/// Niceness of those threads relative to the process: while the processors are busy, they get about a tenth of one.
/// Evaluating sources takes a processor for up to a second, and nobody can interrupt it but the kernel.
const DRY_NICENESS: i32 = 10;
/// Waiting loads of all tenants, and of one.
const LOADS_MAX: usize = 256;
const TENANT_LOADS_MAX: usize = 32;
/// A job that uses more than this fraction of its fuel limit counts as long.
const LONG_FRACTION: u64 = 16;
/// Fuel charged for each byte of a set that is read from the cache, roughly by the time it takes.
const READ_FUEL: u64 = 32;
/// Expected fuel for evaluating a byte of source; the actual cost is charged afterwards.
const SOURCE_FUEL: u64 = 2_000;
/// Compiled code uses up to 512 KiB of it, the host far less.
const STACK_BYTES: usize = 2 << 20;

/// A worker pool. Dropping it drops waiting jobs and waits for running ones.
pub struct Pool {
    engine: Arc<Engine>,
    calls: Arc<Dispatcher<CallJob>>,
    loads: Loads,
    /// A job that uses more fuel than this counts as long.
    short_fuel_max: u64,
    threads: Vec<JoinHandle<()>>,
}

/// Loads in queues by priority, with threads of their own: live traffic never waits for a dry run.
struct Loads {
    live: Arc<Dispatcher<LoadJob>>,
    dry: Arc<Dispatcher<LoadJob>>,
}

/// A function set to load.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// The scripts of all slots.
    pub sources: Sources,
    /// [`Sources::hash`] of these sources, which the cache on disk relies on.
    pub hash: SourcesHash,
    /// The limits for loading and for every message.
    pub limits: Arc<Limits>,
    /// True to add the result to the cache on disk; false for dry runs.
    pub is_cached: bool,
}

struct LoadJob {
    load: LoadRequest,
    done: oneshot::Sender<Result<Functions, Failure>>,
}

impl Pool {
    /// Starts the threads.
    pub fn start(engine: Arc<Engine>) -> Result<Self, Error> {
        let settings = engine.settings();
        let workers = match settings.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let short_fuel_max = settings.limits.fuel / LONG_FRACTION;
        let calls = Arc::new(Dispatcher::new(QueueLimits {
            workers,
            waiting_max: settings.queue_max,
            tenant_waiting_max: settings.tenant_queue_max,
            short_fuel_max,
        }));
        let loads = |workers| {
            Arc::new(Dispatcher::new(QueueLimits {
                workers,
                waiting_max: LOADS_MAX,
                tenant_waiting_max: TENANT_LOADS_MAX,
                short_fuel_max: settings.limits.load_fuel / LONG_FRACTION,
            }))
        };
        let loads = Loads { live: loads(LOADERS), dry: loads(DRY_LOADERS) };
        let mut pool = Self { engine, calls, loads, short_fuel_max, threads: Vec::new() };
        for worker in 0..workers {
            let calls = Arc::clone(&pool.calls);
            let work = CallWorker::new(pool.engine.sandbox(), short_fuel_max);
            pool.spawn("sandbox", move || calls.run_worker(worker, work))?;
        }
        for loader in 0..LOADERS {
            let (loads, engine) = (Arc::clone(&pool.loads.live), Arc::clone(&pool.engine));
            pool.spawn("sandbox-load", move || loads.run_worker(loader, |job: LoadJob| job.run(&engine)))?;
        }
        for loader in 0..DRY_LOADERS {
            let (loads, engine) = (Arc::clone(&pool.loads.dry), Arc::clone(&pool.engine));
            pool.spawn("sandbox-dry", move || {
                lower_priority();
                loads.run_worker(loader, |job: LoadJob| job.run(&engine));
            })?;
        }
        Ok(pool)
    }

    /// Runs one message when it is the tenant's turn, preferably on a worker that has these functions loaded.
    ///
    /// Dropping the future before a worker has started cancels the message.
    pub async fn call(&self, tenant: &Tenant, functions: Functions, call: Call) -> Result<CallOutcome, Busy> {
        let (done, outcome) = oneshot::channel();
        let home = functions.hash().as_index();
        self.calls.put(tenant, home, CallJob { functions, calls: Calls::One(call, done) })?;
        outcome.await.map_err(|_| Busy)
    }

    /// Runs the first of these messages when it is the tenant's turn: all of them, if they are not more than a worker
    /// may run as one short job. At least one runs, if there is one. `fuel_each` is the expected fuel of one, if these
    /// functions ran before.
    pub async fn call_several(
        &self,
        tenant: &Tenant,
        functions: Functions,
        calls: Vec<Call>,
        fuel_each: Option<u64>,
    ) -> Result<Vec<CallOutcome>, Busy> {
        let (done, outcomes) = oneshot::channel();
        let (count, home) = (calls.len() as u64, functions.hash().as_index());
        let job = CallJob { functions, calls: Calls::Several(calls, done) };
        match fuel_each {
            // A worker stops after a call that exceeds what is short.
            Some(each) => {
                let all = each.saturating_mul(count).min(self.short_fuel_max.max(each));
                self.calls.put_known(tenant, all, job)?;
            }
            None => self.calls.put(tenant, home, job)?,
        }
        outcomes.await.map_err(|_| Busy)
    }

    /// Loads a function set when it is the tenant's turn: at most two at once for live traffic, and one for dry runs,
    /// behind everything else that the process does.
    pub async fn load(&self, tenant: &Tenant, load: LoadRequest) -> Result<Result<Functions, Failure>, Busy> {
        let (done, loaded) = oneshot::channel();
        let fuel = load.limits.load_fuel.min(load.sources.bytes() as u64 * SOURCE_FUEL);
        match tenant.priority {
            // What live traffic needs is mostly read from the cache on disk.
            Priority::Live => self.loads.live.put(tenant, 0, LoadJob { load, done })?,
            Priority::DryRun => self.loads.dry.put_known(tenant, fuel, LoadJob { load, done })?,
        }
        loaded.await.map_err(|_| Busy)
    }

    /// The engine of this pool.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number of waiting messages.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Counts the waiting messages for as long as the pool exists.
    pub fn waiting_counter(&self) -> impl Fn() -> Option<usize> + Send + 'static {
        let calls = Arc::downgrade(&self.calls);
        move || calls.upgrade().map(|calls| calls.len())
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = thread::Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(work);
        self.threads.push(thread.map_err(Error::Thread)?);
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.calls.shut_down();
        self.loads.live.shut_down();
        self.loads.dry.shut_down();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker thread panicked");
            }
        }
    }
}

impl LoadJob {
    /// Loads the functions and returns the fuel used; a failed load counts as its whole limit.
    fn run(self, engine: &Engine) -> Option<u64> {
        if self.done.is_closed() {
            return None;
        }
        let LoadRequest { sources, hash, limits, is_cached } = &self.load;
        let loaded = catch_panic(|| engine.load_hashed(sources, *hash, limits, *is_cached)).flatten();
        // Reading a set from the cache uses no fuel but takes time too.
        let spent = |functions: &Functions| functions.fuel_spent().max(functions.idle_bytes() as u64 * READ_FUEL);
        let fuel = loaded.as_ref().map_or(limits.load_fuel, spent);
        let _ = self.done.send(loaded);
        Some(fuel)
    }
}

/// Lets other threads of the process go before this one.
fn lower_priority() {
    // Linux has a niceness per thread. A system that refuses only schedules it like the others.
    _ = rustix::process::nice(DRY_NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::wire::FailureKind;

    #[test]
    fn a_panic_fails_only_its_own_job() {
        let dispatcher =
            Dispatcher::new(QueueLimits { workers: 2, waiting_max: 99, tenant_waiting_max: 99, short_fuel_max: 1 });
        let tenant = Tenant::alone("a", Priority::Live);
        let (send, receive) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..2 {
                let (dispatcher, send) = (&dispatcher, send.clone());
                scope.spawn(move || {
                    dispatcher.run_worker(worker, |job: u32| {
                        let done = catch_panic(|| if job.is_multiple_of(2) { job } else { panic!("injected") });
                        send.send(done.map_err(|failure| failure.kind)).unwrap();
                        Some(1)
                    });
                });
            }
            (0..40).for_each(|job| dispatcher.put(&tenant, job as usize, job).unwrap());
            let done: Vec<_> = receive.iter().take(40).collect();
            assert_eq!(done.iter().filter(|done| **done == Err(FailureKind::Broken)).count(), 20);
            assert_eq!(done.iter().flatten().count(), 20);
            assert_eq!(dispatcher.len(), 0);
            dispatcher.shut_down();
        });
    }
}
