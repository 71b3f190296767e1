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
    lanes: [Lane<T>; 2],
    limits: QueueLimits,
    waiting: usize,
    long_running: usize,
}

/// The jobs of one priority.
struct Lane<T> {
    fair: OwnerQueue<T>,
    /// The fuel that the lane has used, times its weight.
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
        let lane = || Lane { fair: OwnerQueue::new(COSTS), used: 0 };
        Self { lanes: [lane(), lane()], limits, waiting: 0, long_running: 0 }
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
        let other_used = self.lanes[1 - tenant.priority.lane()].used;
        let space = self.limits.waiting_max.saturating_sub(self.waiting);
        let lane = &mut self.lanes[tenant.priority.lane()];
        // No more than the remaining space, so that whoever fills the queue leaves space for others.
        if !lane.fair.has_room(tenant.member(), space, self.limits.tenant_waiting_max) {
            return Err(Busy);
        }
        if lane.fair.is_idle() {
            lane.used = lane.used.max(other_used);
        }
        push(&mut lane.fair);
        self.waiting += 1;
        Ok(())
    }

    /// Takes the next job for `worker`; `None` if no job waits, or all waiting jobs must wait for another worker.
    pub(crate) fn take(&mut self, worker: usize) -> Option<(Ticket, T)> {
        let first = self.first_lane();
        self.take_from(first, worker).or_else(|| self.take_from(first.other(), worker))
    }

    /// Ends a job. `fuel` is the fuel that it used; `None` if it was not run because its caller had given up.
    pub(crate) fn done(&mut self, ticket: Ticket, fuel: Option<u64>) {
        let lane = &mut self.lanes[ticket.priority.lane()];
        lane.used = lane.used.saturating_add(fuel.unwrap_or(0).saturating_mul(ticket.priority.weight()));
        lane.fair.done(ticket.turn, fuel);
        self.long_running -= usize::from(ticket.is_long);
    }

    /// Returns true if there is a job for a free worker.
    pub(crate) fn has_turn(&self) -> bool {
        let eligibility = self.eligibility();
        self.lanes.iter().any(|lane| lane.fair.has_turn(|next| eligibility.admits(next)))
    }

    /// Drops all waiting jobs.
    pub(crate) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.fair = OwnerQueue::new(COSTS));
        self.waiting = 0;
    }

    /// Returns live traffic, unless dry runs have had less than their share.
    fn first_lane(&self) -> Priority {
        let [live, dry] = &self.lanes;
        if live.used <= dry.used { Priority::Live } else { Priority::DryRun }
    }

    fn take_from(&mut self, priority: Priority, worker: usize) -> Option<(Ticket, T)> {
        let (eligibility, running_max) = (self.eligibility(), self.workers_but_one());
        let lane = &mut self.lanes[priority.lane()];
        // An owner does not get the last worker while another one waits, nor a tenant while another of its owner does.
        let limits = [(running_max, usize::MAX), (usize::MAX, running_max), (usize::MAX, usize::MAX)];
        let (turn, job) = limits.into_iter().find_map(|(of_owner, of_tenant)| {
            let admits = |tenant: NextJob| tenant.running < of_tenant && eligibility.admits(tenant);
            lane.fair.pop(worker, |owner| owner.running < of_owner, admits)
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
mod tests {
    use super::*;

    const LONG: u64 = 50_000_000;
    const SHORT: u64 = 20_000;

    fn queue(workers: usize, waiting_max: usize, tenant_waiting_max: usize) -> Queue<u32> {
        Queue::new(QueueLimits { workers, waiting_max, tenant_waiting_max, short_fuel_max: 1_000_000 })
    }

    fn live(id: &str) -> Tenant {
        Tenant::alone(id, Priority::Live)
    }

    fn dry(id: &str) -> Tenant {
        Tenant { priority: Priority::DryRun, ..live(id) }
    }

    fn put(queue: &mut Queue<u32>, tenant: &Tenant, jobs: impl IntoIterator<Item = u32>) {
        jobs.into_iter().for_each(|job| queue.put(tenant, 0, job).unwrap());
    }

    /// Runs jobs on the only worker; `fuel` returns the fuel that a job uses.
    fn run(queue: &mut Queue<u32>, times: usize, fuel: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut ran = Vec::new();
        for _ in 0..times {
            let Some((ticket, job)) = queue.take(0) else { break };
            queue.done(ticket, Some(fuel(job)));
            ran.push(job);
        }
        ran
    }

    #[test]
    fn jobs_of_one_tenant_run_in_order() {
        let mut queue = queue(1, 100, 100);
        put(&mut queue, &live("a"), 0..10);
        assert_eq!(run(&mut queue, 100, |_| SHORT), Vec::from_iter(0..10));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn endless_loops_of_one_tenant_delay_another_by_one_job() {
        let mut queue = queue(1, 1000, 500);
        put(&mut queue, &live("bad"), 0..100);
        assert_eq!(run(&mut queue, 1, |_| LONG), [0]);
        put(&mut queue, &live("good"), 1000..1050);
        assert_eq!(run(&mut queue, 50, |_| SHORT), Vec::from_iter(1000..1050));
        assert_eq!(run(&mut queue, 1, |_| LONG), [1]);
    }

    #[test]
    fn the_tenants_of_one_owner_delay_another_by_one_job_and_leave_it_space() {
        let mut queue = queue(1, 100, 50);
        let of = |owner: &str, id: u32| Tenant { owner: owner.into(), ..live(&id.to_string()) };
        let accepted = (0..100).filter(|id| queue.put(&of("busy", *id), 0, *id).is_ok()).count();
        assert_eq!(accepted, 50);
        assert_eq!(run(&mut queue, 1, |_| LONG), [0]);
        put(&mut queue, &of("quiet", 0), 1000..1010);
        assert_eq!(run(&mut queue, 10, |_| SHORT), Vec::from_iter(1000..1010));
        assert_eq!(run(&mut queue, 2, |_| LONG), [1, 2]);
    }

    #[test]
    fn tenants_share_fuel_rather_than_jobs() {
        let mut queue = queue(1, 10_000, 5_000);
        put(&mut queue, &live("cheap"), 0..4000);
        put(&mut queue, &live("expensive"), 10_000..10_400);
        let ran = run(&mut queue, 1000, |job| if job < 10_000 { 40_000 } else { 490_000 });
        let dear = ran.iter().filter(|job| **job >= 10_000).count();
        // With overhead a cheap job costs 50 000 and an expensive one 500 000.
        assert!((90..=92).contains(&dear), "{dear} of 1000");
    }

    #[test]
    fn a_returning_tenant_has_no_credit_and_no_debt() {
        let mut queue = queue(1, 10_000, 5_000);
        put(&mut queue, &live("early"), 0..500);
        run(&mut queue, 400, |_| SHORT);
        put(&mut queue, &live("late"), 1000..1100);
        let late = run(&mut queue, 100, |_| SHORT).into_iter().filter(|job| *job >= 1000).count();
        assert!((49..=51).contains(&late), "{late} of 100");
        run(&mut queue, 500, |_| SHORT);

        put(&mut queue, &live("late"), 2000..2100);
        run(&mut queue, 100, |_| LONG);
        put(&mut queue, &live("late"), 3000..3100);
        put(&mut queue, &live("early"), 4000..4100);
        let late = run(&mut queue, 100, |_| SHORT).into_iter().filter(|job| *job < 4000).count();
        assert!((45..=55).contains(&late), "fuel used while it was alone counts against it: {late} of 100");
    }

    #[test]
    fn one_worker_is_reserved_for_short_jobs() {
        let mut queue = queue(3, 1000, 500);
        for tenant in ["bad", "worse", "worst"] {
            put(&mut queue, &live(tenant), 0..1);
        }
        run(&mut queue, 3, |_| LONG);
        for tenant in ["bad", "worse", "worst"] {
            put(&mut queue, &live(tenant), 0..10);
        }
        let first = queue.take(0).unwrap();
        let second = queue.take(1).unwrap();
        assert!(queue.take(2).is_none() && !queue.has_turn());
        put(&mut queue, &live("good"), 7..8);
        assert!(queue.has_turn());
        let (short, job) = queue.take(2).unwrap();
        assert_eq!(job, 7);
        queue.done(short, Some(SHORT));
        queue.done(first.0, Some(LONG));
        assert!(queue.take(0).is_some() && queue.take(2).is_none());
        queue.done(second.0, Some(LONG));
    }

    #[test]
    fn a_tenant_with_fixed_functions_counts_as_fast_again() {
        let mut queue = queue(2, 1000, 500);
        put(&mut queue, &live("a"), 0..200);
        run(&mut queue, 1, |_| LONG);
        run(&mut queue, 60, |_| SHORT);
        let first = queue.take(0).unwrap();
        assert!(queue.take(1).is_some(), "its jobs are short again");
        queue.done(first.0, Some(SHORT));
    }

    #[test]
    fn a_tenant_gets_every_worker_only_while_no_other_waits() {
        let mut queue = queue(3, 1000, 300);
        put(&mut queue, &live("a"), 0..10);
        let alone: Vec<_> = (0..3).map(|worker| queue.take(worker).unwrap()).collect();
        alone.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
        // The other has used more and still gets the third worker.
        put(&mut queue, &live("b"), 100..101);
        run(&mut queue, 1, |_| 900_000);
        put(&mut queue, &live("b"), 101..102);
        let both: Vec<_> = (0..3).map(|worker| queue.take(worker).unwrap()).collect();
        assert_eq!(both.iter().map(|(_, job)| *job).collect::<Vec<_>>(), [3, 4, 101]);
        both.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
    }

    #[test]
    fn live_traffic_goes_first_but_does_not_starve_dry_runs() {
        let mut queue = queue(1, 10_000, 5_000);
        put(&mut queue, &dry("a"), 0..100);
        put(&mut queue, &live("b"), 1000..2000);
        let ran = run(&mut queue, 900, |_| SHORT);
        assert_eq!(ran[0], 1000);
        let dry_runs = ran.iter().filter(|job| **job < 1000).count();
        assert!((99..=101).contains(&dry_runs), "{dry_runs} of 900");
    }

    #[test]
    fn dry_runs_that_are_known_to_be_short_take_every_worker() {
        let mut queue = queue(2, 100, 100);
        for job in 0..2 {
            queue.put_known(&dry("a"), SHORT, job).unwrap();
        }
        let both = [0, 1].map(|worker| queue.take(worker).unwrap());
        both.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
    }

    #[test]
    fn dry_runs_never_take_the_last_worker() {
        let mut queue = queue(2, 100, 100);
        put(&mut queue, &dry("a"), 0..2);
        put(&mut queue, &dry("b"), 0..2);
        let first = queue.take(0).unwrap();
        assert!(queue.take(1).is_none());
        put(&mut queue, &live("c"), 7..8);
        let (ticket, job) = queue.take(1).unwrap();
        assert_eq!(job, 7);
        queue.done(ticket, Some(SHORT));
        queue.done(first.0, Some(SHORT));
    }

    #[test]
    fn the_queue_is_bounded_and_has_space_for_new_tenants() {
        let mut queue = queue(1, 64, 40);
        let mut accepted = Vec::new();
        for tenant in ["a", "b", "c", "d", "e", "f", "g"] {
            accepted.push((0..100).filter(|job| queue.put(&live(tenant), 0, *job).is_ok()).count());
        }
        assert_eq!(accepted, [32, 16, 8, 4, 2, 1, 1]);
        assert_eq!((queue.len(), queue.put(&live("h"), 0, 1)), (64, Err(Busy)));
        run(&mut queue, 10, |_| SHORT);
        assert_eq!(queue.put(&live("h"), 0, 1), Ok(()));

        let mut queue = self::queue(1, 64, 20);
        assert_eq!((0..100).filter(|job| queue.put(&live("a"), 0, *job).is_ok()).count(), 20);
    }

    #[test]
    fn a_worker_prefers_functions_that_it_has_loaded() {
        let mut queue = queue(2, 100, 100);
        for (tenant, home) in [("a", 4), ("b", 5), ("c", 6), ("d", 7)] {
            queue.put(&live(tenant), home, home as u32).unwrap();
        }
        let order: Vec<_> = [1, 0, 1, 0].map(|worker| queue.take(worker).unwrap()).into();
        assert_eq!(order.iter().map(|(_, job)| *job).collect::<Vec<_>>(), [5, 4, 7, 6]);
        order.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
        // Fairness comes first: a tenant that has used much more fuel waits, wherever its functions are loaded.
        put(&mut queue, &live("busy"), 9..10);
        let busy = queue.take(0).unwrap();
        put(&mut queue, &live("b"), 0..1);
        run(&mut queue, 1, |_| 5_000_000);
        queue.put(&live("b"), 1, 1).unwrap();
        queue.put(&live("a"), 0, 0).unwrap();
        queue.done(busy.0, Some(SHORT));
        let (ticket, job) = queue.take(1).unwrap();
        assert_eq!(job, 0);
        queue.done(ticket, Some(SHORT));
    }

    #[test]
    fn what_runs_may_come_back_after_the_rest_was_forgotten() {
        let mut queue = queue(2, 10, 10);
        put(&mut queue, &dry("a"), 0..3);
        let (ticket, _) = queue.take(0).unwrap();
        queue.clear();
        assert!(queue.len() == 0 && queue.take(1).is_none());
        queue.done(ticket, Some(LONG));
        put(&mut queue, &dry("a"), 3..4);
        assert_eq!(run(&mut queue, 9, |_| SHORT), [3]);
    }
}
