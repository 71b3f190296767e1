//! A fixed set of threads that run functions, with bounded queues in front.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::call::{Call, Report};
use crate::engine::Engine;
use crate::error::Error;
use crate::failure::Failure;
use crate::functions::Functions;
use crate::sandbox::Sandbox;
use crate::sources::Sources;
use crate::wire::Slot;

/// Loads that run at once, beside the messages: more would take the processors from live traffic.
const LOADERS: usize = 2;
/// Loads that may wait.
const LOADS_MAX: usize = 64;
/// Compiled code takes up to 512 KiB of it, the host around it far less.
const STACK_BYTES: usize = 2 << 20;

/// Threads that run functions. Dropping it refuses what waits and ends them after what they run.
pub struct Pool {
    engine: Arc<Engine>,
    calls: Arc<Queue<CallJob>>,
    loads: Arc<Queue<LoadJob>>,
    threads: Vec<JoinHandle<()>>,
}

/// All queues are full, or the pool is ending: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all workers are busy and their queues are full; try again later")]
pub struct Busy;

struct CallJob {
    functions: Functions,
    call: Call,
    done: oneshot::Sender<Report>,
}

struct LoadJob {
    sources: Sources,
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
        let calls = Arc::new(Queue::new(workers, settings.queue_max));
        let loads = Arc::new(Queue::new(LOADERS, LOADS_MAX / LOADERS));
        let mut pool = Self { engine, calls, loads, threads: Vec::new() };
        for worker in 0..workers {
            let (calls, mut sandbox) = (Arc::clone(&pool.calls), pool.engine.sandbox());
            pool.spawn("sandbox", move || {
                while let Some(job) = calls.take(worker) {
                    job.run(&mut sandbox);
                }
            })?;
        }
        for loader in 0..LOADERS {
            let (loads, engine) = (Arc::clone(&pool.loads), Arc::clone(&pool.engine));
            pool.spawn("sandbox-load", move || {
                while let Some(job) = loads.take(loader) {
                    job.run(&engine);
                }
            })?;
        }
        Ok(pool)
    }

    /// Runs one message on a worker that has met these functions before, or on one that is free.
    ///
    /// Dropping the future before a worker has begun leaves the message out.
    pub async fn call(&self, functions: Functions, call: Call) -> Result<Report, Busy> {
        let (done, report) = oneshot::channel();
        let home = functions.hash().spread();
        self.calls.put(home, CallJob { functions, call, done })?;
        report.await.map_err(|_| Busy)
    }

    /// Loads a function set, at most two at once.
    pub async fn load(&self, sources: Sources) -> Result<Result<Functions, Failure>, Busy> {
        let (done, loaded) = oneshot::channel();
        let home = sources.hash().spread();
        self.loads.put(home, LoadJob { sources, done })?;
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
    fn run(self, sandbox: &mut Sandbox) {
        if self.done.is_closed() {
            return;
        }
        let report = catch_unwind(AssertUnwindSafe(|| sandbox.call(&self.functions, &self.call)));
        let report = report.unwrap_or_else(|_| Report::of(Err(panicked())));
        // The asker may have gone by now; then nobody misses the report.
        let _ = self.done.send(report);
    }
}

impl LoadJob {
    fn run(self, engine: &Engine) {
        if self.done.is_closed() {
            return;
        }
        let loaded = catch_unwind(AssertUnwindSafe(|| engine.load(&self.sources)));
        let _ = self.done.send(loaded.unwrap_or_else(|_| Err(panicked())));
    }
}

/// A mistake of ours must not take a worker with it.
fn panicked() -> Failure {
    tracing::error!("the host of a sandbox panicked, please report this");
    Failure::broken(Slot::Decoder, "the host made a mistake")
}

/// One queue for each worker; one without work takes from the others.
struct Queue<T> {
    state: Mutex<State<T>>,
    /// Wakes the worker of the same number.
    wake: Vec<Condvar>,
    jobs_max: usize,
}

struct State<T> {
    jobs: Vec<VecDeque<T>>,
    idle: Vec<bool>,
    ended: bool,
}

impl<T> Queue<T> {
    fn new(workers: usize, jobs_max: usize) -> Self {
        let jobs = (0..workers).map(|_| VecDeque::new()).collect();
        let wake = (0..workers).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(State { jobs, idle: vec![false; workers], ended: false }), wake, jobs_max }
    }

    /// Puts a job before the worker that `home` stands for, or the one with the shortest queue when that is full.
    fn put(&self, home: usize, job: T) -> Result<(), Busy> {
        let mut state = self.lock();
        let home = home % state.jobs.len();
        let shortest = || (0..state.jobs.len()).min_by_key(|worker| state.jobs[*worker].len()).unwrap_or(home);
        let worker = if state.jobs[home].len() < self.jobs_max { home } else { shortest() };
        if state.ended || state.jobs[worker].len() >= self.jobs_max {
            return Err(Busy);
        }
        state.jobs[worker].push_back(job);
        let idle = if state.idle[worker] { Some(worker) } else { state.idle.iter().position(|idle| *idle) };
        if let Some(idle) = idle {
            state.idle[idle] = false;
            self.wake[idle].notify_one();
        }
        Ok(())
    }

    /// Waits for a job: its own first, then one of the longest queue. `None` once the queue has ended.
    fn take(&self, worker: usize) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            let longest = (0..state.jobs.len()).max_by_key(|other| state.jobs[*other].len()).unwrap_or(worker);
            let job = state.jobs[worker].pop_front().or_else(|| state.jobs[longest].pop_front());
            if job.is_some() {
                return job;
            }
            state.idle[worker] = true;
            state = self.wake[worker].wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle[worker] = false;
        }
    }

    fn len(&self) -> usize {
        self.lock().jobs.iter().map(VecDeque::len).sum()
    }

    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.jobs.iter_mut().for_each(VecDeque::clear);
        self.wake.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that runs under this lock leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
