//! Whose turn it is among tenants: whoever has used least fuel goes first. Pure; no threads, no clock.
//!
//! Start-time fair queueing. A tenant's account rises by the fuel that its jobs use. One that comes back after a pause
//! starts where the others are: it neither saves up what it left unused nor pays for what nobody else wanted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What a job costs beside its fuel: putting back memory and handing over, so that no job is free.
const JOB_FUEL: u64 = 10_000;
/// How far a tenant may go before another for the sake of a worker that has its functions at hand.
const SLACK_FUEL: u64 = 1_000_000;
/// Tenants that are looked at for such a worker.
const CANDIDATES: usize = 4;
/// Tenants that are remembered while they want nothing.
const IDLE_MAX: usize = 16_384;

/// Jobs of many tenants in a fair order.
pub(crate) struct Fair<T> {
    tenants: HashMap<Arc<str>, Account<T>>,
    /// Those with a job waiting: who used least first, then who came first.
    ready: BTreeMap<Place, Arc<str>>,
    /// Those with no job at all, by when that began.
    idle: BTreeMap<u64, Arc<str>>,
    running: usize,
    /// The account of the tenant whose turn was last; nobody starts below it.
    now: u64,
    /// The highest account that any tenant has reached.
    highest: u64,
    stamps: u64,
}

/// The account of a tenant and a number that tells equal ones apart.
type Place = (u64, u64);

struct Account<T> {
    jobs: VecDeque<Job<T>>,
    running: usize,
    place: Place,
    /// What its next job may use: what one of the last did, forgotten slowly.
    expected: u64,
}

struct Job<T> {
    home: usize,
    job: T,
}

/// A job that has its turn, to be given back when it is done.
#[must_use = "a tenant's turn has to be given back"]
pub(crate) struct Turn {
    tenant: Arc<str>,
    /// The fuel that the tenant has been charged in advance.
    expected: u64,
}

/// What is known of a job before it runs.
#[derive(Clone, Copy)]
pub(crate) struct Prospect {
    /// Jobs of the same tenant that run now.
    pub(crate) running: usize,
    /// The fuel that it may use.
    pub(crate) expected: u64,
}

impl Turn {
    /// The fuel that the job may use, as far as that is known.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }
}

impl<T> Default for Fair<T> {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            ready: BTreeMap::new(),
            idle: BTreeMap::new(),
            running: 0,
            now: 0,
            highest: 0,
            stamps: 0,
        }
    }
}

impl<T> Fair<T> {
    /// Jobs of `tenant` that wait.
    pub(crate) fn waiting(&self, tenant: &str) -> usize {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.jobs.len())
    }

    /// Whether no job waits and none runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.running == 0
    }

    /// Lets `job` wait; it would rather run on the worker `home`.
    pub(crate) fn push(&mut self, name: &Arc<str>, home: usize, job: T) {
        let stamp = self.stamp();
        let tenant = self.tenants.entry(Arc::clone(name)).or_insert_with(|| Account::new(stamp));
        if tenant.jobs.is_empty() {
            if tenant.running == 0 {
                self.idle.remove(&tenant.place.1);
                tenant.place.0 = tenant.place.0.max(self.now);
            }
            tenant.place.1 = stamp;
            self.ready.insert(tenant.place, Arc::clone(name));
        }
        tenant.jobs.push_back(Job { home, job });
    }

    /// The job whose turn it is on `worker`, among the tenants that `allow` lets through.
    pub(crate) fn pop(&mut self, worker: usize, allow: impl Fn(Prospect) -> bool) -> Option<(Turn, T)> {
        let place = self.choose(worker, allow)?;
        let name = self.ready.remove(&place)?;
        self.now = self.now.max(place.0);
        let tenant = self.tenants.get_mut(&name)?;
        let job = tenant.jobs.pop_front()?.job;
        let expected = tenant.expected;
        tenant.running += 1;
        tenant.place.0 = tenant.place.0.saturating_add(expected).saturating_add(JOB_FUEL);
        if !tenant.jobs.is_empty() {
            self.ready.insert(tenant.place, Arc::clone(&name));
        }
        self.running += 1;
        Some((Turn { tenant: name, expected }, job))
    }

    /// Takes back a turn whose job used so much fuel, or was not run.
    pub(crate) fn done(&mut self, turn: Turn, fuel: Option<u64>) {
        let stamp = self.stamp();
        let Some(tenant) = self.tenants.get_mut(&turn.tenant) else { return };
        let is_ready = self.ready.remove(&tenant.place).is_some();
        tenant.settle(turn.expected, fuel);
        self.highest = self.highest.max(tenant.place.0);
        self.running -= 1;
        if is_ready {
            self.ready.insert(tenant.place, turn.tenant);
        } else if tenant.running == 0 {
            tenant.place.1 = stamp;
            self.idle.insert(stamp, turn.tenant);
            self.forget();
        }
        if self.is_idle() {
            // Nobody waited for what was used until now, so nobody owes anything.
            self.now = self.highest;
        }
    }

    /// Whether a worker would find a job that `allow` lets through.
    pub(crate) fn has_turn(&self, allow: impl Fn(Prospect) -> bool) -> bool {
        self.places(allow).next().is_some()
    }

    /// Tenants that it knows something of.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.tenants.len()
    }

    /// The first tenant that may run, or one close behind whose functions `worker` has at hand.
    fn choose(&self, worker: usize, allow: impl Fn(Prospect) -> bool) -> Option<Place> {
        let mut candidates = self.places(allow).take(CANDIDATES);
        let (first, home) = candidates.next()?;
        if home == worker {
            return Some(first);
        }
        let near = |(place, home): &(Place, usize)| *home == worker && place.0 <= first.0 + SLACK_FUEL;
        Some(candidates.find(near).map_or(first, |(place, _)| place))
    }

    /// The tenants that may run, in order, with the home of their next job.
    fn places(&self, allow: impl Fn(Prospect) -> bool) -> impl Iterator<Item = (Place, usize)> {
        self.ready.iter().filter_map(move |(place, name)| {
            let tenant = self.tenants.get(name)?;
            let prospect = Prospect { running: tenant.running, expected: tenant.expected };
            allow(prospect).then_some((*place, tenant.jobs.front()?.home))
        })
    }

    /// Forgets who has wanted nothing for longest, so that those who come and go take no room.
    fn forget(&mut self) {
        while self.idle.len() > IDLE_MAX {
            let Some((_, name)) = self.idle.pop_first() else { break };
            self.tenants.remove(&name);
        }
    }

    fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        self.stamps
    }
}

impl<T> Account<T> {
    fn new(stamp: u64) -> Self {
        Self { jobs: VecDeque::new(), running: 0, place: (0, stamp), expected: 0 }
    }

    /// Charges what was used in place of what was expected. A job that was not run tells nothing of the next one.
    fn settle(&mut self, expected: u64, fuel: Option<u64>) {
        self.running -= 1;
        self.place.0 = self.place.0.saturating_add(fuel.unwrap_or(0)).saturating_sub(expected);
        if let Some(fuel) = fuel {
            self.expected = fuel.max(self.expected - self.expected / 8);
        }
    }
}
