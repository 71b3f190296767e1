//! A fixed set of threads that run functions, with bounded queues in front.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::contract::call::{Call, CallOutcome};
use crate::contract::failure::Failure;
use crate::contract::sources::Sources;
use crate::contract::wire::Slot;
use crate::engine::Engine;
use crate::error::Error;
use crate::functions::Functions;
use crate::sandbox::Sandbox;
use crate::schedule::answers::Answers;
use crate::schedule::dispatcher::{Desk, Work};
use crate::schedule::queue::{Bounds, Busy, Tenant};
use crate::settings::Limits;

/// Loads that run at once, beside the messages: more would take the processors from live traffic.
const LOADERS: usize = 2;
/// Loads that may wait, and those of one tenant.
const LOADS_MAX: usize = 256;
const TENANT_LOADS_MAX: usize = 32;
/// A job that uses more than this part of the fuel that it may use is long.
const LONG_PART: u64 = 16;
/// What reading back a byte of a loaded set counts in fuel, about what it takes in time.
const READ_FUEL: u64 = 32;
/// Compiled code takes up to 512 KiB of it, the host around it far less.
const STACK_BYTES: usize = 2 << 20;

/// Threads that run functions. Dropping it refuses what waits and ends them after what they run.
pub struct Pool {
    engine: Arc<Engine>,
    calls: Arc<Desk<CallJob>>,
    loads: Arc<Desk<LoadJob>>,
    threads: Vec<JoinHandle<()>>,
}

struct CallJob {
    functions: Functions,
    call: Call,
    done: oneshot::Sender<CallOutcome>,
}

/// A function set to be loaded.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// Its texts.
    pub sources: Sources,
    /// What they may use, now and in every message.
    pub limits: Arc<Limits>,
    /// Whether it is kept on disk; not what somebody only tries.
    pub is_cached: bool,
}

struct LoadJob {
    load: LoadRequest,
    done: oneshot::Sender<Result<Functions, Failure>>,
}

/// What a worker runs messages with.
struct Calls {
    sandbox: Sandbox,
    answers: Answers,
}

impl Pool {
    /// Starts the threads that the engine's settings ask for.
    pub fn start(engine: Arc<Engine>) -> Result<Self, Error> {
        let settings = engine.settings();
        let workers = match settings.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let calls = Arc::new(Desk::new(Bounds {
            workers,
            waiting_max: settings.queue_max,
            tenant_waiting_max: settings.tenant_queue_max,
            short_fuel_max: settings.limits.fuel / LONG_PART,
        }));
        let loads = Arc::new(Desk::new(Bounds {
            workers: LOADERS,
            waiting_max: LOADS_MAX,
            tenant_waiting_max: TENANT_LOADS_MAX,
            short_fuel_max: settings.limits.load_fuel / LONG_PART,
        }));
        let mut pool = Self { engine, calls, loads, threads: Vec::new() };
        for worker in 0..workers {
            let calls = Arc::clone(&pool.calls);
            let work = Calls { sandbox: pool.engine.sandbox(), answers: Answers::default() };
            pool.spawn("sandbox", move || calls.serve(worker, work))?;
        }
        for loader in 0..LOADERS {
            let (loads, engine) = (Arc::clone(&pool.loads), Arc::clone(&pool.engine));
            pool.spawn("sandbox-load", move || loads.serve(loader, |job: LoadJob| job.run(&engine)))?;
        }
        Ok(pool)
    }

    /// Runs one message when it is the tenant's turn, preferably on a worker that has met these functions before.
    ///
    /// Dropping the future before a worker has begun leaves the message out.
    pub async fn call(&self, tenant: &Tenant, functions: Functions, call: Call) -> Result<CallOutcome, Busy> {
        let (done, report) = oneshot::channel();
        let home = functions.hash().spread();
        self.calls.put(tenant, home, CallJob { functions, call, done })?;
        report.await.map_err(|_| Busy)
    }

    /// Loads a function set within its limits when it is the tenant's turn, at most two at once.
    pub async fn load(&self, tenant: &Tenant, load: LoadRequest) -> Result<Result<Functions, Failure>, Busy> {
        let (done, loaded) = oneshot::channel();
        self.loads.put(tenant, 0, LoadJob { load, done })?;
        loaded.await.map_err(|_| Busy)
    }

    /// The engine whose functions it runs.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Messages that wait for a worker just now.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = thread::Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(work);
        self.threads.push(thread.map_err(Error::Thread)?);
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.calls.end();
        self.loads.end();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that runs functions had panicked");
            }
        }
    }
}

impl Work<CallJob> for Calls {
    fn run(&mut self, job: CallJob, expected: u64) -> Option<u64> {
        let CallJob { functions, call, done } = job;
        if done.is_closed() {
            // However many of these come, no answer waits for them.
            self.answers.send();
            return None;
        }
        self.answers.make_way(expected);
        let report = guarded(|| self.sandbox.call(&functions, &call));
        let report = report.unwrap_or_else(|failure| CallOutcome::of(Err(failure)));
        let fuel = report.fuel;
        self.answers.hold(done, report);
        Some(fuel)
    }

    fn rest(&mut self) {
        self.answers.send();
    }
}

impl LoadJob {
    /// Loads the functions; says the fuel that it used, which is all that it may use for those that fail.
    fn run(self, engine: &Engine) -> Option<u64> {
        if self.done.is_closed() {
            return None;
        }
        let LoadRequest { sources, limits, is_cached } = &self.load;
        let load = if *is_cached { Engine::load } else { Engine::load_uncached };
        let loaded = guarded(|| load(engine, sources, limits)).flatten();
        // A set that is read back used none, and still takes its time.
        let spent = |functions: &Functions| functions.fuel_spent().max(functions.idle_bytes() as u64 * READ_FUEL);
        let fuel = loaded.as_ref().map_or(limits.load_fuel, spent);
        let _ = self.done.send(loaded);
        Some(fuel)
    }
}

/// A mistake of ours must not take a worker with it: whatever `work` held goes with what it ran.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        tracing::error!("the host of a sandbox panicked, please report this");
        Failure::broken(Slot::Decoder, "the host made a mistake")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::wire::FailureKind;
    use crate::schedule::queue::Priority;

    #[test]
    fn a_panic_fails_one_job_and_nothing_else() {
        let desk = Desk::new(Bounds { workers: 2, waiting_max: 99, tenant_waiting_max: 99, short_fuel_max: 1 });
        let tenant = Tenant { id: "a".into(), priority: Priority::Live };
        let (send, receive) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..2 {
                let (desk, send) = (&desk, send.clone());
                scope.spawn(move || {
                    desk.serve(worker, |job: u32| {
                        let done = guarded(|| if job.is_multiple_of(2) { job } else { panic!("injected") });
                        send.send(done.map_err(|failure| failure.kind)).unwrap();
                        Some(1)
                    });
                });
            }
            (0..40).for_each(|job| desk.put(&tenant, job as usize, job).unwrap());
            let done: Vec<_> = receive.iter().take(40).collect();
            assert_eq!(done.iter().filter(|done| **done == Err(FailureKind::Broken)).count(), 20);
            assert_eq!(done.iter().flatten().count(), 20);
            assert_eq!(desk.len(), 0);
            desk.end();
        });
    }
}
