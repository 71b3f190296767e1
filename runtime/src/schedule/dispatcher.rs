//! Hands jobs from one queue to a fixed set of worker threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::schedule::queue::{Busy, Queue, QueueLimits, Ticket};
use crate::schedule::tenant::Tenant;

/// A job queue with workers.
pub(crate) struct Dispatcher<T> {
    state: Mutex<DispatcherState<T>>,
    /// One per worker, to wake it.
    wakers: Vec<Condvar>,
}

struct DispatcherState<T> {
    queue: Queue<T>,
    /// For each worker, true if it sleeps.
    asleep: Vec<bool>,
    is_shut_down: bool,
}

/// Work of a worker.
pub(crate) trait Work<T> {
    /// Runs a job that is expected to use `expected_fuel`. Returns the fuel used; `None` if its caller has given up.
    fn run(&mut self, job: T, expected_fuel: u64) -> Option<u64>;

    /// Called before the worker sleeps or ends: finishes everything it has delayed.
    fn before_sleep(&mut self) {}
}

enum Next<T> {
    Job(Ticket, T),
    /// No job for this worker now.
    Nothing,
    ShutDown,
}

impl<T> Dispatcher<T> {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let wakers = (0..limits.workers).map(|_| Condvar::new()).collect();
        let state =
            DispatcherState { queue: Queue::new(limits), asleep: vec![false; limits.workers], is_shut_down: false };
        Self { state: Mutex::new(state), wakers }
    }

    /// Queues a job and wakes a worker, preferably the one for `home`.
    pub(crate) fn put(&self, tenant: &Tenant, home: usize, job: T) -> Result<(), Busy> {
        self.put_in(home, |queue| queue.put(tenant, home, job))
    }

    /// Queues a job that will use about this much fuel, and wakes a worker.
    pub(crate) fn put_known(&self, tenant: &Tenant, fuel: u64, job: T) -> Result<(), Busy> {
        self.put_in(0, |queue| queue.put_known(tenant, fuel, job))
    }

    fn put_in(&self, home: usize, put: impl FnOnce(&mut Queue<T>) -> Result<(), Busy>) -> Result<(), Busy> {
        let mut state = self.lock();
        if state.is_shut_down {
            return Err(Busy);
        }
        put(&mut state.queue)?;
        self.wake_one(&mut state, home % self.wakers.len());
        Ok(())
    }

    /// Runs jobs until shutdown; the body of a worker thread.
    pub(crate) fn run_worker(&self, worker: usize, mut work: impl Work<T>) {
        let mut done = None;
        loop {
            match self.next(worker, done.take()) {
                Next::Job(ticket, job) => {
                    let fuel = work.run(job, ticket.expected_fuel());
                    done = Some((ticket, fuel));
                }
                Next::Nothing => {
                    work.before_sleep();
                    self.sleep(worker);
                }
                Next::ShutDown => return work.before_sleep(),
            }
        }
    }

    /// Reports the finished job and takes the next one.
    fn next(&self, worker: usize, done: Option<(Ticket, Option<u64>)>) -> Next<T> {
        let mut state = self.lock();
        if let Some((ticket, fuel)) = done {
            state.queue.done(ticket, fuel);
        }
        if state.is_shut_down {
            return Next::ShutDown;
        }
        let next = state.queue.take(worker);
        // The finished job may have blocked the job of another worker.
        if state.queue.len() > 0 {
            self.wake_one(&mut state, worker);
        }
        next.map_or(Next::Nothing, |(ticket, job)| Next::Job(ticket, job))
    }

    /// Sleeps until there is a job or shutdown.
    fn sleep(&self, worker: usize) {
        let mut state = self.lock();
        while !state.is_shut_down && !state.queue.has_turn() {
            state.asleep[worker] = true;
            state = self.wakers[worker].wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep[worker] = false;
        }
    }

    /// Wakes a sleeping worker, preferably `preferred`, if there is a job for it.
    fn wake_one(&self, state: &mut DispatcherState<T>, preferred: usize) {
        let asleep =
            if state.asleep[preferred] { Some(preferred) } else { state.asleep.iter().position(|asleep| *asleep) };
        if let Some(worker) = asleep.filter(|_| state.queue.has_turn()) {
            state.asleep[worker] = false;
            self.wakers[worker].notify_one();
        }
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Drops waiting jobs and ends the workers after their current one.
    pub(crate) fn shut_down(&self) {
        let mut state = self.lock();
        state.is_shut_down = true;
        state.queue.clear();
        self.wakers.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, DispatcherState<T>> {
        // No code that holds this lock leaves it inconsistent, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, W: FnMut(T) -> Option<u64>> Work<T> for W {
    fn run(&mut self, job: T, _: u64) -> Option<u64> {
        self(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;
    use crate::schedule::tenant::Priority;

    /// Delays its results until it sleeps, like `OutcomeBatch`.
    struct DelayingWorker {
        delayed: Vec<u32>,
        done: Sender<Vec<u32>>,
        begun: Sender<u32>,
    }

    impl Work<u32> for DelayingWorker {
        fn run(&mut self, job: u32, _: u64) -> Option<u64> {
            self.begun.send(job).unwrap();
            self.delayed.push(job);
            (job != 13).then_some(1)
        }

        fn before_sleep(&mut self) {
            self.done.send(std::mem::take(&mut self.delayed)).unwrap();
        }
    }

    fn tenant() -> Tenant {
        Tenant::alone("a", Priority::Live)
    }

    fn dispatcher(workers: usize) -> Dispatcher<u32> {
        Dispatcher::new(QueueLimits { workers, waiting_max: 9, tenant_waiting_max: 9, short_fuel_max: 1 })
    }

    #[test]
    fn nothing_is_delayed_beyond_sleep_or_shutdown() {
        let dispatcher = dispatcher(1);
        let ((done, results), (begun, begins)) = (channel(), channel());
        thread::scope(|scope| {
            let worker = DelayingWorker { delayed: Vec::new(), done, begun };
            scope.spawn(|| dispatcher.run_worker(0, worker));
            let mut seen = Vec::new();
            for job in [1, 13, 2] {
                dispatcher.put(&tenant(), 0, job).unwrap();
                assert_eq!(begins.recv().unwrap(), job);
                while !seen.contains(&job) {
                    seen.extend(results.recv().unwrap());
                }
            }
            dispatcher.shut_down();
        });
        assert_eq!(dispatcher.put(&tenant(), 0, 4), Err(Busy));
        assert!(results.iter().all(|rest| rest.is_empty()), "shutdown came after the worker slept");
    }

    #[test]
    fn a_sleeping_worker_wakes_for_each_job_and_for_shutdown() {
        let dispatcher = dispatcher(3);
        let (send, receive) = channel();
        thread::scope(|scope| {
            for worker in 0..3 {
                let (dispatcher, send) = (&dispatcher, send.clone());
                scope.spawn(move || {
                    dispatcher.run_worker(worker, |job: u32| {
                        send.send(job).unwrap();
                        Some(1)
                    });
                });
            }
            for job in 0..500 {
                dispatcher.put(&tenant(), job as usize, job).unwrap();
                assert_eq!(receive.recv().unwrap(), job);
            }
            dispatcher.shut_down();
        });
        assert_eq!(dispatcher.len(), 0);
    }
}
