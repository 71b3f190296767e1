//! Where jobs are handed to threads: one queue, and a bell for every worker.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::schedule::queue::{Bounds, Busy, Queue, Tenant, Ticket};

/// Where jobs wait, and workers for them.
pub(crate) struct Desk<T> {
    state: Mutex<State<T>>,
    /// Wakes the worker of the same number.
    bells: Vec<Condvar>,
}

struct State<T> {
    queue: Queue<T>,
    /// The workers that sleep.
    asleep: Vec<bool>,
    ended: bool,
}

/// What a worker does with its jobs.
pub(crate) trait Work<T> {
    /// Does a job that may use the fuel `expected`; says the fuel that it used, or none when nobody wants it any more.
    fn run(&mut self, job: T, expected: u64) -> Option<u64>;

    /// Comes before every rest: nothing is to be left undone.
    fn rest(&mut self) {}
}

enum Next<T> {
    Job(Ticket, T),
    /// Nothing to do for this worker just now.
    Nothing,
    Ended,
}

impl<T> Desk<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let bells = (0..bounds.workers).map(|_| Condvar::new()).collect();
        let state = State { queue: Queue::new(bounds), asleep: vec![false; bounds.workers], ended: false };
        Self { state: Mutex::new(state), bells }
    }

    /// Puts a job into the queue and wakes a worker for it, the one that `home` stands for if that one sleeps.
    pub(crate) fn put(&self, tenant: &Tenant, home: usize, job: T) -> Result<(), Busy> {
        let mut state = self.lock();
        if state.ended {
            return Err(Busy);
        }
        state.queue.put(tenant, home, job)?;
        self.wake_one(&mut state, home % self.bells.len());
        Ok(())
    }

    /// Runs jobs, one after the other, until the desk closes.
    pub(crate) fn serve(&self, worker: usize, mut work: impl Work<T>) {
        let mut done = None;
        loop {
            match self.next(worker, done.take()) {
                Next::Job(ticket, job) => {
                    let fuel = work.run(job, ticket.expected());
                    done = Some((ticket, fuel));
                }
                Next::Nothing => {
                    work.rest();
                    self.sleep(worker);
                }
                Next::Ended => return work.rest(),
            }
        }
    }

    /// Gives back what was done and takes what is next.
    fn next(&self, worker: usize, done: Option<(Ticket, Option<u64>)>) -> Next<T> {
        let mut state = self.lock();
        if let Some((ticket, fuel)) = done {
            state.queue.done(ticket, fuel);
        }
        if state.ended {
            return Next::Ended;
        }
        let next = state.queue.take(worker);
        // What was done may have been what kept another worker from its job.
        if state.queue.len() > 0 {
            self.wake_one(&mut state, worker);
        }
        next.map_or(Next::Nothing, |(ticket, job)| Next::Job(ticket, job))
    }

    /// Sleeps until there is something to do, or the desk closes.
    fn sleep(&self, worker: usize) {
        let mut state = self.lock();
        while !state.ended && !state.queue.has_turn() {
            state.asleep[worker] = true;
            state = self.bells[worker].wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep[worker] = false;
        }
    }

    /// Wakes a worker that sleeps, `preferred` if that is one, when there is something to do for it.
    fn wake_one(&self, state: &mut State<T>, preferred: usize) {
        let asleep =
            if state.asleep[preferred] { Some(preferred) } else { state.asleep.iter().position(|asleep| *asleep) };
        if let Some(worker) = asleep.filter(|_| state.queue.has_turn()) {
            state.asleep[worker] = false;
            self.bells[worker].notify_one();
        }
    }

    /// Jobs that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Refuses what waits and lets the workers go.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.queue.clear();
        self.bells.iter().for_each(Condvar::notify_one);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that runs under this lock leaves it half changed.
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
    use crate::schedule::queue::Priority;

    /// Keeps what it did until it rests, as messages keep their answers.
    struct Keeper {
        kept: Vec<u32>,
        done: Sender<Vec<u32>>,
        begun: Sender<u32>,
    }

    impl Work<u32> for Keeper {
        fn run(&mut self, job: u32, _: u64) -> Option<u64> {
            self.begun.send(job).unwrap();
            self.kept.push(job);
            (job != 13).then_some(1)
        }

        fn rest(&mut self) {
            self.done.send(std::mem::take(&mut self.kept)).unwrap();
        }
    }

    fn tenant() -> Tenant {
        Tenant { id: "a".into(), priority: Priority::Live }
    }

    fn desk(workers: usize) -> Desk<u32> {
        Desk::new(Bounds { workers, waiting_max: 9, tenant_waiting_max: 9, short_fuel_max: 1 })
    }

    #[test]
    fn nothing_is_kept_back_over_a_rest_or_the_end() {
        let desk = desk(1);
        let ((done, kept), (begun, begins)) = (channel(), channel());
        thread::scope(|scope| {
            let worker = Keeper { kept: Vec::new(), done, begun };
            scope.spawn(|| desk.serve(0, worker));
            let mut seen = Vec::new();
            for job in [1, 13, 2] {
                desk.put(&tenant(), 0, job).unwrap();
                assert_eq!(begins.recv().unwrap(), job);
                while !seen.contains(&job) {
                    seen.extend(kept.recv().unwrap());
                }
            }
            desk.end();
        });
        assert_eq!(desk.put(&tenant(), 0, 4), Err(Busy));
        assert!(kept.iter().all(|rest| rest.is_empty()), "the end came after a rest");
    }

    #[test]
    fn a_sleeping_worker_wakes_for_each_job_and_for_the_end() {
        let desk = desk(3);
        let (send, receive) = channel();
        thread::scope(|scope| {
            for worker in 0..3 {
                let (desk, send) = (&desk, send.clone());
                scope.spawn(move || {
                    desk.serve(worker, |job: u32| {
                        send.send(job).unwrap();
                        Some(1)
                    });
                });
            }
            for job in 0..500 {
                desk.put(&tenant(), job as usize, job).unwrap();
                assert_eq!(receive.recv().unwrap(), job);
            }
            desk.end();
        });
        assert_eq!(desk.len(), 0);
    }
}
