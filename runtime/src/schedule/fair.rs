//! A fair queue, in which the tenant that has used the least fuel goes first. It has no threads and no clock.
//!
//! This is start-time fair queueing. A tenant that returns after a pause starts level with
//! the others, however much or little fuel it used before.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Overhead charged for each job, for restoring memory and dispatching.
const JOB_FUEL: u64 = 10_000;
/// How far ahead of another a tenant may be served because the worker has its functions loaded.
const SLACK_FUEL: u64 = 1_000_000;
/// Maximum number of tenants among which a worker looks for one whose functions it has loaded.
const CANDIDATES_MAX: usize = 4;
/// Idle tenants whose use is remembered.
const IDLE_MAX: usize = 16_384;

/// Jobs of many tenants in fair order.
pub(crate) struct FairQueue<T> {
    tenants: HashMap<Arc<str>, Account<T>>,
    /// Tenants with waiting jobs, by the fuel that they have used, then by arrival.
    ready: BTreeMap<Rank, Arc<str>>,
    /// Tenants without jobs, the longest idle first.
    idle: BTreeMap<u64, Arc<str>>,
    running: usize,
    /// What the tenant served last had used; nobody starts below it.
    served_up_to: u64,
    /// What the tenant that used the most has used.
    highest: u64,
    sequence: u64,
}

/// Who goes first: the tenant with the lowest rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// The fuel that it has used, and that its running jobs are expected to use.
    used: u64,
    /// Makes the rank unique.
    sequence: u64,
}

struct Account<T> {
    jobs: VecDeque<Job<T>>,
    running: usize,
    rank: Rank,
    /// The fuel that its next job is expected to use: a slowly decaying maximum of its last jobs.
    expected_fuel: u64,
}

struct Job<T> {
    home: usize,
    job: T,
}

/// Permission to run a job; must be returned when it is done.
#[must_use = "a turn must be returned with `done`"]
pub(crate) struct Turn {
    tenant: Arc<str>,
    /// The fuel that the tenant was charged in advance.
    expected_fuel: u64,
}

/// What is known about the next job of a tenant.
#[derive(Clone, Copy)]
pub(crate) struct NextJob {
    /// Running jobs of the same tenant.
    pub(crate) running: usize,
    pub(crate) expected_fuel: u64,
}

impl Turn {
    /// The fuel that the job is expected to use; zero if unknown.
    pub(crate) fn expected_fuel(&self) -> u64 {
        self.expected_fuel
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            ready: BTreeMap::new(),
            idle: BTreeMap::new(),
            running: 0,
            served_up_to: 0,
            highest: 0,
            sequence: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// The number of waiting jobs of `tenant`.
    pub(crate) fn waiting(&self, tenant: &str) -> usize {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.jobs.len())
    }

    /// Whether no job waits or runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.running == 0
    }

    /// Queues `job`, which prefers the worker `home`.
    pub(crate) fn push(&mut self, name: &Arc<str>, home: usize, job: T) {
        let number = self.next_number();
        let tenant = self.tenants.entry(Arc::clone(name)).or_insert_with(|| Account::new(number));
        if tenant.jobs.is_empty() {
            if tenant.running == 0 {
                self.idle.remove(&tenant.rank.sequence);
                tenant.rank.used = tenant.rank.used.max(self.served_up_to);
            }
            tenant.rank.sequence = number;
            self.ready.insert(tenant.rank, Arc::clone(name));
        }
        tenant.jobs.push_back(Job { home, job });
    }

    /// Takes the next job for `worker` among the tenants that `allow` admits.
    pub(crate) fn pop(&mut self, worker: usize, allow: impl Fn(NextJob) -> bool) -> Option<(Turn, T)> {
        let rank = self.choose(worker, allow)?;
        let name = self.ready.remove(&rank)?;
        self.served_up_to = self.served_up_to.max(rank.used);
        let tenant = self.tenants.get_mut(&name)?;
        let job = tenant.jobs.pop_front()?.job;
        let expected_fuel = tenant.expected_fuel;
        tenant.running += 1;
        tenant.rank.used = tenant.rank.used.saturating_add(expected_fuel).saturating_add(JOB_FUEL);
        if !tenant.jobs.is_empty() {
            self.ready.insert(tenant.rank, Arc::clone(&name));
        }
        self.running += 1;
        Some((Turn { tenant: name, expected_fuel }, job))
    }

    /// Ends a turn. `fuel` is what the job used; none if it was not run.
    pub(crate) fn done(&mut self, turn: Turn, fuel: Option<u64>) {
        let number = self.next_number();
        let Some(tenant) = self.tenants.get_mut(&turn.tenant) else { return };
        let is_ready = self.ready.remove(&tenant.rank).is_some();
        tenant.settle(turn.expected_fuel, fuel);
        self.highest = self.highest.max(tenant.rank.used);
        self.running -= 1;
        if is_ready {
            self.ready.insert(tenant.rank, turn.tenant);
        } else if tenant.running == 0 {
            tenant.rank.sequence = number;
            self.idle.insert(number, turn.tenant);
            self.forget_idle();
        }
        if self.is_idle() {
            // Nobody had to wait for the fuel used so far, so all become equal.
            self.served_up_to = self.highest;
        }
    }

    /// Whether there is a job that `allow` admits.
    pub(crate) fn has_turn(&self, allow: impl Fn(NextJob) -> bool) -> bool {
        self.admitted(allow).next().is_some()
    }

    /// The number of remembered tenants.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.tenants.len()
    }

    /// The first admitted tenant, or one close behind whose functions `worker` has loaded.
    fn choose(&self, worker: usize, allow: impl Fn(NextJob) -> bool) -> Option<Rank> {
        let mut candidates = self.admitted(allow).take(CANDIDATES_MAX);
        let (first, home) = candidates.next()?;
        if home == worker {
            return Some(first);
        }
        let near = |(rank, home): &(Rank, usize)| *home == worker && rank.used <= first.used + SLACK_FUEL;
        Some(candidates.find(near).map_or(first, |(rank, _)| rank))
    }

    /// The admitted tenants in order, with the preferred worker of their next job.
    fn admitted(&self, allow: impl Fn(NextJob) -> bool) -> impl Iterator<Item = (Rank, usize)> {
        self.ready.iter().filter_map(move |(rank, name)| {
            let tenant = self.tenants.get(name)?;
            let next = NextJob { running: tenant.running, expected_fuel: tenant.expected_fuel };
            allow(next).then_some((*rank, tenant.jobs.front()?.home))
        })
    }

    /// Forgets the longest idle tenants, so that memory is bounded.
    fn forget_idle(&mut self) {
        while self.idle.len() > IDLE_MAX {
            let Some((_, name)) = self.idle.pop_first() else { break };
            self.tenants.remove(&name);
        }
    }

    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

impl<T> Account<T> {
    fn new(number: u64) -> Self {
        Self { jobs: VecDeque::new(), running: 0, rank: Rank { used: 0, sequence: number }, expected_fuel: 0 }
    }

    /// Replaces the expected fuel by what was used. A job that was not run does not change the expectation.
    fn settle(&mut self, expected_fuel: u64, fuel: Option<u64>) {
        self.running -= 1;
        self.rank.used = self.rank.used.saturating_add(fuel.unwrap_or(0)).saturating_sub(expected_fuel);
        if let Some(fuel) = fuel {
            self.expected_fuel = fuel.max(self.expected_fuel - self.expected_fuel / 8);
        }
    }
}
