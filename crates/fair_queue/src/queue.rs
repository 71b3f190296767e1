//! A queue of one level: fair between tenants.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

/// Maximum number of tenants among which a worker looks for one that prefers it.
const CANDIDATES_MAX: usize = 4;
/// Default maximum number of idle tenants remembered.
pub(crate) const IDLE_MAX: usize = 16_384;
/// The most that one job is charged: with fuel, about two minutes of a processor. A wrong cost must not move a tenant,
/// or the start of all others, out of reach.
const JOB_COST_MAX: u64 = 1 << 40;

/// Jobs of many tenants in fair order.
pub struct FairQueue<T> {
    costs: Costs,
    /// Maximum number of idle tenants remembered.
    idle_max: usize,
    tenants: HashMap<Arc<str>, Tenant<T>>,
    /// Tenants with waiting jobs, by their use, then by arrival.
    ready: BTreeMap<Rank, Arc<str>>,
    /// Tenants without jobs, the longest idle first.
    idle: BTreeMap<u64, Arc<str>>,
    running: usize,
    /// The use of the tenant served last, at that time; no tenant starts below it.
    served_up_to: u128,
    /// The highest use of any tenant.
    highest: u128,
    sequence: u64,
}

/// Costs that the queue adds to those of the jobs.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Overhead charged for each job.
    pub job: u64,
    /// The lead that a tenant may have over another one because the worker is the one that it prefers.
    pub slack: u64,
}

/// Position of a tenant among the others: the one with the lowest rank goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Cost that the tenant has used, and the expected cost of its running jobs. It only grows, so the type is too wide
    /// to overflow: tenants at the end of the range could not be told apart.
    used: u128,
    /// Makes the rank unique.
    sequence: u64,
}

struct Tenant<T> {
    jobs: VecDeque<Job<T>>,
    running: usize,
    weight: u64,
    rank: Rank,
    /// Expected cost of the tenant's next job, divided by its weight: a slowly decaying maximum of its last jobs.
    expected_cost: u64,
}

struct Job<T> {
    number: u64,
    home: usize,
    /// Cost divided by the weight, if it is known before the job runs.
    cost: Option<u64>,
    job: T,
}

/// Permission to run a job; must be returned when it is done.
#[must_use = "a turn must be returned with `done`"]
pub struct Turn {
    pub(crate) tenant: Arc<str>,
    /// Cost charged to the tenant in advance.
    expected_cost: u64,
}

/// Properties of a tenant's next job that decide whether it may run.
#[derive(Clone, Copy)]
pub struct NextJob {
    /// Running jobs of the same tenant.
    pub running: usize,
    /// The weight of the tenant.
    pub weight: u64,
    /// Expected cost of the job, divided by the weight; zero if unknown.
    pub expected_cost: u64,
}

impl Turn {
    /// Returns the expected cost of the job; zero if unknown.
    pub fn expected_cost(&self) -> u64 {
        self.expected_cost
    }
}

impl<T> FairQueue<T> {
    /// An empty queue.
    pub fn new(costs: Costs) -> Self {
        Self::with_idle_max(costs, IDLE_MAX)
    }

    /// An empty queue that remembers so many idle tenants.
    pub(crate) fn with_idle_max(costs: Costs, idle_max: usize) -> Self {
        Self {
            costs,
            idle_max,
            tenants: HashMap::new(),
            ready: BTreeMap::new(),
            idle: BTreeMap::new(),
            running: 0,
            served_up_to: 0,
            highest: 0,
            sequence: 0,
        }
    }

    /// The number of waiting jobs of `tenant`.
    pub fn waiting(&self, tenant: &str) -> usize {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.jobs.len())
    }

    /// Returns true if no job waits or runs.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.running == 0
    }

    /// Queues `job`, which prefers the worker `home`. Returns the number by which it can be removed.
    pub fn push(&mut self, name: &Arc<str>, home: usize, job: T) -> u64 {
        self.push_weighted(name, 1, home, job)
    }

    /// Queues `job` of a tenant that is to get as much as `weight` others, from now on.
    pub fn push_weighted(&mut self, name: &Arc<str>, weight: u64, home: usize, job: T) -> u64 {
        self.push_job(name, weight, home, (None, job))
    }

    /// Queues `job`, which will cost this much: its tenant is charged before it runs.
    pub fn push_known(&mut self, name: &Arc<str>, weight: u64, cost: u64, job: T) -> u64 {
        self.push_job(name, weight, 0, (Some(cost.min(JOB_COST_MAX) / weight.max(1)), job))
    }

    fn push_job(&mut self, name: &Arc<str>, weight: u64, home: usize, (cost, job): (Option<u64>, T)) -> u64 {
        let number = self.next_number();
        let tenant = self.tenants.entry(Arc::clone(name)).or_insert_with(|| Tenant::new(number));
        tenant.weight = weight.max(1);
        if tenant.jobs.is_empty() {
            if tenant.running == 0 {
                self.idle.remove(&tenant.rank.sequence);
                tenant.rank.used = tenant.rank.used.max(self.served_up_to);
            }
            tenant.rank.sequence = number;
            self.ready.insert(tenant.rank, Arc::clone(name));
        }
        tenant.jobs.push_back(Job { number, home, cost, job });
        number
    }

    /// Removes a job of this tenant that is no longer wanted; `None` if it was taken before.
    pub fn remove(&mut self, name: &str, number: u64) -> Option<T> {
        let tenant = self.tenants.get_mut(name)?;
        let index = tenant.jobs.binary_search_by_key(&number, |job| job.number).ok()?;
        let removed = tenant.jobs.remove(index)?.job;
        if tenant.jobs.is_empty()
            && let Some(name) = self.ready.remove(&tenant.rank)
            && tenant.running == 0
        {
            self.rest(name);
            self.level_if_idle();
        }
        Some(removed)
    }

    /// Removes the last job of a tenant.
    pub(crate) fn remove_last(&mut self, name: &str) {
        let last = self.tenants.get(name).and_then(|tenant| tenant.jobs.back());
        if let Some(number) = last.map(|job| job.number) {
            self.remove(name, number);
        }
    }

    /// Takes the next job for `worker` among the tenants that `allow` admits.
    pub fn pop(&mut self, worker: usize, allow: impl Fn(NextJob) -> bool) -> Option<(Turn, T)> {
        self.pop_where(worker, |_, next| allow(next))
    }

    pub(crate) fn pop_where(&mut self, worker: usize, allow: impl Fn(&str, NextJob) -> bool) -> Option<(Turn, T)> {
        let rank = self.choose(worker, allow)?;
        let name = self.ready.remove(&rank)?;
        self.served_up_to = self.served_up_to.max(rank.used);
        let tenant = self.tenants.get_mut(&name)?;
        let Job { job, cost, .. } = tenant.jobs.pop_front()?;
        let expected_cost = cost.unwrap_or(tenant.expected_cost);
        tenant.running += 1;
        tenant.rank.used += u128::from(expected_cost) + u128::from(self.costs.job);
        if !tenant.jobs.is_empty() {
            self.ready.insert(tenant.rank, Arc::clone(&name));
        }
        self.running += 1;
        Some((Turn { tenant: name, expected_cost }, job))
    }

    /// Ends a turn. `cost` is the cost of the job, which counts up to a maximum; `None` if it was not run.
    pub fn done(&mut self, turn: Turn, cost: Option<u64>) {
        let Some(tenant) = self.tenants.get_mut(&turn.tenant) else { return };
        let is_ready = self.ready.remove(&tenant.rank).is_some();
        tenant.settle(turn.expected_cost, cost);
        self.highest = self.highest.max(tenant.rank.used);
        self.running -= 1;
        if is_ready {
            self.ready.insert(tenant.rank, turn.tenant);
        } else if tenant.running == 0 {
            self.rest(turn.tenant);
        }
        self.level_if_idle();
    }

    /// Returns true if there is a job that `allow` admits.
    pub fn has_turn(&self, allow: impl Fn(NextJob) -> bool) -> bool {
        self.has_turn_where(|_, next| allow(next))
    }

    pub(crate) fn has_turn_where(&self, allow: impl Fn(&str, NextJob) -> bool) -> bool {
        self.admitted(allow).next().is_some()
    }

    /// Returns true if the queue has an entry for this tenant, busy or idle.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tenants.contains_key(name)
    }

    /// The first admitted tenant, or one close behind whose functions `worker` has loaded.
    fn choose(&self, worker: usize, allow: impl Fn(&str, NextJob) -> bool) -> Option<Rank> {
        let mut candidates = self.admitted(allow).take(CANDIDATES_MAX);
        let (first, home) = candidates.next()?;
        if home == worker {
            return Some(first);
        }
        let near =
            |(rank, home): &(Rank, usize)| *home == worker && rank.used <= first.used + u128::from(self.costs.slack);
        Some(candidates.find(near).map_or(first, |(rank, _)| rank))
    }

    /// The admitted tenants in order, with the preferred worker of their next job.
    fn admitted(&self, allow: impl Fn(&str, NextJob) -> bool) -> impl Iterator<Item = (Rank, usize)> {
        self.ready.iter().filter_map(move |(rank, name)| {
            let tenant = self.tenants.get(name)?;
            let Tenant { running, weight, expected_cost, .. } = *tenant;
            let first = tenant.jobs.front()?;
            let next = NextJob { running, weight, expected_cost: first.cost.unwrap_or(expected_cost) };
            allow(name, next).then_some((*rank, first.home))
        })
    }

    /// Makes all tenants equal if nobody has to wait for what was used so far.
    fn level_if_idle(&mut self) {
        if self.is_idle() {
            self.served_up_to = self.highest;
        }
    }

    /// Notes that a tenant is idle. Forgets those that are so the longest, so that memory is bounded.
    fn rest(&mut self, name: Arc<str>) {
        let number = self.next_number();
        if let Some(tenant) = self.tenants.get_mut(&name) {
            tenant.rank.sequence = number;
            self.idle.insert(number, name);
        }
        while self.idle.len() > self.idle_max {
            let Some((_, name)) = self.idle.pop_first() else { break };
            self.tenants.remove(&name);
        }
    }

    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

impl<T> Tenant<T> {
    fn new(number: u64) -> Self {
        let rank = Rank { used: 0, sequence: number };
        Self { jobs: VecDeque::new(), running: 0, weight: 1, rank, expected_cost: 0 }
    }

    /// Replaces the expected cost by the actual cost. A job that was not run does not change the expectation.
    fn settle(&mut self, expected_cost: u64, cost: Option<u64>) {
        self.running -= 1;
        let cost = cost.map(|cost| cost.min(JOB_COST_MAX) / self.weight);
        self.rank.used = (self.rank.used + u128::from(cost.unwrap_or(0))).saturating_sub(u128::from(expected_cost));
        if let Some(cost) = cost {
            self.expected_cost = cost.max(self.expected_cost - self.expected_cost / 8);
        }
    }
}
