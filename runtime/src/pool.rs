//! A fixed set of threads that run functions, with bounded queues in front.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::call::{Call, Report};
use crate::engine::Engine;
use crate::error::Error;
use crate::failure::Failure;
use crate::functions::Functions;
use crate::queue::{Asker, Bounds, Busy, Queue, Ticket};
use crate::sandbox::Sandbox;
use crate::settings::Limits;
use crate::sources::Sources;
use crate::wire::Slot;

/// Loads that run at once, beside the messages: more would take the processors from live traffic.
const LOADERS: usize = 2;
/// Loads that may wait, and those of one tenant.
const LOADS_MAX: usize = 256;
const TENANT_LOADS_MAX: usize = 32;
/// A job that uses more than this part of the fuel that it may use is long.
const LONG_PART: u64 = 16;
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
    done: oneshot::Sender<Report>,
}

struct LoadJob {
    sources: Sources,
    limits: Arc<Limits>,
    done: oneshot::Sender<Result<Functions, Failure>>,
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
            let (calls, mut sandbox) = (Arc::clone(&pool.calls), pool.engine.sandbox());
            pool.spawn("sandbox", move || calls.serve(worker, |job| job.run(&mut sandbox)))?;
        }
        for loader in 0..LOADERS {
            let (loads, engine) = (Arc::clone(&pool.loads), Arc::clone(&pool.engine));
            pool.spawn("sandbox-load", move || loads.serve(loader, |job| job.run(&engine)))?;
        }
        Ok(pool)
    }

    /// Runs one message when it is the asker's turn, preferably on a worker that has met these functions before.
    ///
    /// Dropping the future before a worker has begun leaves the message out.
    pub async fn call(&self, asker: &Asker, functions: Functions, call: Call) -> Result<Report, Busy> {
        let (done, report) = oneshot::channel();
        let home = functions.hash().spread();
        self.calls.put(asker, home, CallJob { functions, call, done })?;
        report.await.map_err(|_| Busy)
    }

    /// Loads a function set within its limits when it is the asker's turn, at most two at once.
    pub async fn load(
        &self,
        asker: &Asker,
        sources: Sources,
        limits: Arc<Limits>,
    ) -> Result<Result<Functions, Failure>, Busy> {
        let (done, loaded) = oneshot::channel();
        self.loads.put(asker, 0, LoadJob { sources, limits, done })?;
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

impl CallJob {
    /// Runs the message; says the fuel that it used.
    fn run(self, sandbox: &mut Sandbox) -> u64 {
        if self.done.is_closed() {
            return 0;
        }
        let report = guarded(|| sandbox.call(&self.functions, &self.call));
        let report = report.unwrap_or_else(|failure| Report::of(Err(failure)));
        let fuel = report.fuel;
        // The asker may have gone by now; then nobody misses the report.
        let _ = self.done.send(report);
        fuel
    }
}

impl LoadJob {
    /// Loads the functions; says the fuel that it used, which is all that it may use for those that fail.
    fn run(self, engine: &Engine) -> u64 {
        if self.done.is_closed() {
            return 0;
        }
        let loaded = guarded(|| engine.load(&self.sources, &self.limits)).flatten();
        let fuel = loaded.as_ref().map_or(self.limits.load_fuel, Functions::load_fuel);
        let _ = self.done.send(loaded);
        fuel
    }
}

/// A mistake of ours must not take a worker with it: whatever `work` held goes with what it ran.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        tracing::error!("the host of a sandbox panicked, please report this");
        Failure::broken(Slot::Decoder, "the host made a mistake")
    })
}

/// Where jobs are handed to threads.
struct Desk<T> {
    state: Mutex<State<T>>,
    /// Wakes the worker of the same number.
    wake: Vec<Condvar>,
}

struct State<T> {
    queue: Queue<T>,
    idle: Vec<bool>,
    ended: bool,
}

impl<T> Desk<T> {
    fn new(bounds: Bounds) -> Self {
        let wake = (0..bounds.workers).map(|_| Condvar::new()).collect();
        let state = State { queue: Queue::new(bounds), idle: vec![false; bounds.workers], ended: false };
        Self { state: Mutex::new(state), wake }
    }

    /// Puts a job into the queue and wakes a worker for it, the one that `home` stands for if that has nothing to do.
    fn put(&self, asker: &Asker, home: usize, job: T) -> Result<(), Busy> {
        let mut state = self.lock();
        if state.ended {
            return Err(Busy);
        }
        state.queue.put(asker, home, job)?;
        self.wake_one(&mut state, home % self.wake.len());
        Ok(())
    }

    /// Runs jobs, one after the other, until the desk closes. `run` says the fuel that a job used.
    fn serve(&self, worker: usize, mut run: impl FnMut(T) -> u64) {
        let mut done = None;
        while let Some((ticket, job)) = self.next(worker, done) {
            done = Some((ticket, run(job)));
        }
    }

    /// Gives back what was done, and waits for what is next. `None` once the desk has closed.
    fn next(&self, worker: usize, done: Option<(Ticket, u64)>) -> Option<(Ticket, T)> {
        let mut state = self.lock();
        if let Some((ticket, fuel)) = done {
            state.queue.done(ticket, fuel);
        }
        while !state.ended {
            if let Some(next) = state.queue.take(worker) {
                // What was done may have been what kept another worker from its job.
                if state.queue.len() > 0 {
                    self.wake_one(&mut state, worker);
                }
                return Some(next);
            }
            state.idle[worker] = true;
            state = self.wake[worker].wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle[worker] = false;
        }
        None
    }

    /// Wakes a worker that has nothing to do, `preferred` if that is one, when there is something to do for it.
    fn wake_one(&self, state: &mut State<T>, preferred: usize) {
        let idle = if state.idle[preferred] { Some(preferred) } else { state.idle.iter().position(|idle| *idle) };
        if let Some(idle) = idle.filter(|_| state.queue.has_turn()) {
            state.idle[idle] = false;
            self.wake[idle].notify_one();
        }
    }

    fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Refuses what waits and lets the workers go.
    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.queue.clear();
        self.wake.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that runs under this lock leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Urgency;
    use crate::wire::Kind;

    #[test]
    fn a_panic_fails_one_job_and_nothing_else() {
        let desk = Desk::new(Bounds { workers: 2, waiting_max: 99, tenant_waiting_max: 99, short_fuel_max: 1 });
        let asker = Asker { tenant: "a".into(), urgency: Urgency::Live };
        let (send, receive) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..2 {
                let (desk, send) = (&desk, send.clone());
                scope.spawn(move || {
                    desk.serve(worker, |job: u32| {
                        let done = guarded(|| if job.is_multiple_of(2) { job } else { panic!("injected") });
                        send.send(done.map_err(|failure| failure.kind)).unwrap();
                        1
                    });
                });
            }
            (0..40).for_each(|job| desk.put(&asker, job as usize, job).unwrap());
            let done: Vec<_> = receive.iter().take(40).collect();
            assert_eq!(done.iter().filter(|done| **done == Err(Kind::Broken)).count(), 20);
            assert_eq!(done.iter().flatten().count(), 20);
            assert_eq!(desk.len(), 0);
            desk.end();
        });
    }
}
