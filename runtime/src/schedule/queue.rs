//! The job queue: bounded, fair between owners and their tenants, live traffic before dry runs. It has no threads and no
//! clock.
//!
//! Three rules keep slow functions of one owner or tenant from delaying others. The owner that has used the least fuel
//! goes first, with that of its tenants that has (`fair_queue`). One worker is reserved for jobs that are expected to be
//! short, because running jobs are not preempted. And each owner, and each tenant, may queue only as many jobs as there
//! is space left, so that there is always space for others.

use fair_queue::{Costs, MemberTurn, NextJob, OwnerQueue};

use crate::schedule::tenant::{Priority, Tenant};

/// The fuel charged for each job, for restoring memory and dispatching; and how far ahead of another a tenant may be
/// served because the worker has its functions loaded.
const COSTS: Costs = Costs { job: JOB_FUEL, slack: 1_000_000 };
/// The fuel that restoring memory for a message counts as.
pub(crate) const JOB_FUEL: u64 = 10_000;

/// The queue is full or shutting down: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all workers are busy and their queues are full: try again later")]
pub struct Busy;

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) workers: usize,
    /// Waiting jobs of all tenants.
    pub(crate) waiting_max: usize,
    pub(crate) tenant_waiting_max: usize,
    /// A job that uses more fuel than this counts as long.
    pub(crate) short_fuel_max: u64,
}

/// Waiting jobs, and counters of running ones.
pub(crate) struct Queue<T> {
    by_priority: [PriorityJobs<T>; 2],
    limits: QueueLimits,
    waiting: usize,
    long_running: usize,
}

struct PriorityJobs<T> {
    fair: OwnerQueue<T>,
    /// The fuel that they have used, times its weight.
    used: u64,
}

/// Identifies a running job; must be returned when it is done.
#[must_use = "a ticket must be returned with `done`"]
pub(crate) struct Ticket {
    turn: MemberTurn,
    priority: Priority,
    is_long: bool,
}

impl Ticket {
    /// The fuel that the job is expected to use; zero if unknown.
    pub(crate) fn expected_fuel(&self) -> u64 {
        self.turn.expected_cost()
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let jobs = || PriorityJobs { fair: OwnerQueue::new(COSTS), used: 0 };
        Self { by_priority: [jobs(), jobs()], limits, waiting: 0, long_running: 0 }
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Queues `job`, which prefers the worker for `home` if it is live. A dry run may be the first run of its functions,
    /// so it is expected to be long.
    pub(crate) fn put(&mut self, tenant: &Tenant, home: usize, job: T) -> Result<(), Busy> {
        let home = home % self.limits.workers;
        match tenant.priority {
            Priority::Live => self.put_in(tenant, |fair| fair.push(tenant.member(), home, job)),
            Priority::DryRun => self.put_known(tenant, self.limits.short_fuel_max.saturating_add(1), job),
        }
    }

    /// Queues `job`, which will use about this much fuel.
    pub(crate) fn put_known(&mut self, tenant: &Tenant, fuel: u64, job: T) -> Result<(), Busy> {
        self.put_in(tenant, |fair| fair.push_known(tenant.member(), fuel, job))
    }

    fn put_in(&mut self, tenant: &Tenant, push: impl FnOnce(&mut OwnerQueue<T>) -> u64) -> Result<(), Busy> {
        let other_used = self.by_priority[1 - tenant.priority.index()].used;
        let space = self.limits.waiting_max.saturating_sub(self.waiting);
        let jobs = &mut self.by_priority[tenant.priority.index()];
        // No more than the remaining space, so that whoever fills the queue leaves space for others.
        if !jobs.fair.has_room(tenant.member(), space, self.limits.tenant_waiting_max) {
            return Err(Busy);
        }
        if jobs.fair.is_idle() {
            jobs.used = jobs.used.max(other_used);
        }
        push(&mut jobs.fair);
        self.waiting += 1;
        Ok(())
    }

    /// Takes the next job for `worker`; `None` if no job waits, or all waiting jobs must wait for another worker.
    pub(crate) fn take(&mut self, worker: usize) -> Option<(Ticket, T)> {
        let first = self.first_priority();
        self.take_from(first, worker).or_else(|| self.take_from(first.other(), worker))
    }

    /// Ends a job. `fuel` is the fuel that it used; `None` if it was not run because its caller had given up.
    pub(crate) fn done(&mut self, ticket: Ticket, fuel: Option<u64>) {
        let jobs = &mut self.by_priority[ticket.priority.index()];
        jobs.used = jobs.used.saturating_add(fuel.unwrap_or(0).saturating_mul(ticket.priority.weight()));
        jobs.fair.done(ticket.turn, fuel);
        self.long_running -= usize::from(ticket.is_long);
    }

    /// Returns true if there is a job for a free worker.
    pub(crate) fn has_turn(&self) -> bool {
        let eligibility = self.eligibility();
        self.by_priority.iter().any(|jobs| jobs.fair.has_turn(|next| eligibility.admits(next)))
    }

    /// Drops all waiting jobs.
    pub(crate) fn clear(&mut self) {
        self.by_priority.iter_mut().for_each(|jobs| jobs.fair = OwnerQueue::new(COSTS));
        self.waiting = 0;
    }

    /// Returns live traffic, unless dry runs have had less than their share.
    fn first_priority(&self) -> Priority {
        let [live, dry] = &self.by_priority;
        if live.used <= dry.used { Priority::Live } else { Priority::DryRun }
    }

    fn take_from(&mut self, priority: Priority, worker: usize) -> Option<(Ticket, T)> {
        let (eligibility, running_max) = (self.eligibility(), self.workers_but_one());
        let jobs = &mut self.by_priority[priority.index()];
        // An owner does not get the last worker while another one waits, nor a tenant while another of its owner does.
        let limits = [(running_max, usize::MAX), (usize::MAX, running_max), (usize::MAX, usize::MAX)];
        let (turn, job) = limits.into_iter().find_map(|(of_owner, of_tenant)| {
            let admits = |tenant: NextJob| tenant.running < of_tenant && eligibility.admits(tenant);
            jobs.fair.pop(worker, |owner| owner.running < of_owner, admits)
        })?;
        let is_long = eligibility.is_long(turn.expected_cost());
        self.waiting -= 1;
        self.long_running += usize::from(is_long);
        Some((Ticket { turn, priority, is_long }, job))
    }

    /// Reserves one worker for short jobs.
    fn eligibility(&self) -> Eligibility {
        let long_may_run = self.long_running < self.workers_but_one();
        Eligibility { long_may_run, short_fuel_max: self.limits.short_fuel_max }
    }

    fn workers_but_one(&self) -> usize {
        self.limits.workers.saturating_sub(1).max(1)
    }
}

/// Decides which jobs may run now.
#[derive(Clone, Copy)]
struct Eligibility {
    long_may_run: bool,
    short_fuel_max: u64,
}

impl Eligibility {
    fn admits(self, next: NextJob) -> bool {
        self.long_may_run || !self.is_long(next.expected_cost)
    }

    fn is_long(self, expected_fuel: u64) -> bool {
        expected_fuel > self.short_fuel_max
    }
}

#[cfg(test)]
mod tests;
