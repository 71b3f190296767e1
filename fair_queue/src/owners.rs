//! A queue of two levels: fair between owners, and between the tenants of each.

use std::{collections::HashMap, sync::Arc};

use crate::queue::{Costs, FairQueue, IDLE_MAX, NextJob, Turn};

/// Jobs of many owners in fair order. An owner gets no more by having more tenants; whose turn it is among those is
/// decided in the same way.
pub struct OwnerQueue<T> {
    costs: Costs,
    /// One entry for each job: what it is, its tenant knows.
    owners: FairQueue<()>,
    tenants: HashMap<Arc<str>, FairQueue<T>>,
}

/// A tenant, and to whom it belongs.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// The owner.
    pub owner: &'a Arc<str>,
    /// How many others the owner counts for.
    pub weight: u64,
    /// The tenant.
    pub tenant: &'a Arc<str>,
}

/// Permission to run a job; must be returned when it is done.
#[must_use = "a turn must be returned with `done`"]
pub struct OwnerTurn {
    owner: Turn,
    tenant: Turn,
}

impl OwnerTurn {
    /// What the job is expected to cost; zero if unknown.
    pub fn expected_cost(&self) -> u64 {
        self.tenant.expected_cost()
    }
}

impl<T> OwnerQueue<T> {
    /// An empty queue.
    pub fn new(costs: Costs) -> Self {
        Self { costs, owners: FairQueue::new(costs), tenants: HashMap::new() }
    }

    /// The number of waiting jobs of an owner, and of one of its tenants.
    pub fn waiting(&self, owner: &str, tenant: &str) -> (usize, usize) {
        let of_tenant = self.tenants.get(owner).map_or(0, |tenants| tenants.waiting(tenant));
        (self.owners.waiting(owner), of_tenant)
    }

    /// Whether no job waits or runs.
    pub fn is_idle(&self) -> bool {
        self.owners.is_idle()
    }

    /// Queues `job`, which prefers the worker `home`. Returns the number by which it can be removed.
    pub fn push(&mut self, Member { owner, weight, tenant }: Member<'_>, home: usize, job: T) -> u64 {
        self.owners.push_weighted(owner, weight, home, ());
        self.tenants_of(owner).push(tenant, home, job)
    }

    /// Queues `job`, which will cost this much: its tenant is charged before it runs.
    pub fn push_known(&mut self, Member { owner, weight, tenant }: Member<'_>, cost: u64, job: T) -> u64 {
        self.owners.push_known(owner, weight, cost, ());
        self.tenants_of(owner).push_known(tenant, 1, cost, job)
    }

    /// Removes a job that is no longer wanted; none if it was taken before.
    pub fn remove(&mut self, owner: &str, tenant: &str, number: u64) -> Option<T> {
        let job = self.tenants.get_mut(owner)?.remove(tenant, number)?;
        self.owners.remove_last(owner);
        Some(job)
    }

    /// Takes the next job for `worker` among the tenants that `allow` admits.
    pub fn pop(&mut self, worker: usize, allow: impl Fn(NextJob) -> bool) -> Option<(OwnerTurn, T)> {
        let tenants = &self.tenants;
        let (turn, ()) = self.owners.pop_of(worker, |owner, of_owner| {
            tenants.get(owner).is_some_and(|tenants| tenants.has_turn(|next| allow(next.of(of_owner))))
        })?;
        let running = self.owners.running(&turn.tenant).saturating_sub(1);
        let tenants = self.tenants.get_mut(&turn.tenant);
        let allow = |next: NextJob| allow(NextJob { owner_running: running, weight: turn.weight, ..next });
        let Some((tenant, job)) = tenants.and_then(|tenants| tenants.pop(worker, allow)) else {
            self.owners.done(turn, None);
            return None;
        };
        Some((OwnerTurn { owner: turn, tenant }, job))
    }

    /// Ends a turn. `cost` is what the job used, and counts up to a maximum; none if it was not run.
    pub fn done(&mut self, turn: OwnerTurn, cost: Option<u64>) {
        if let Some(tenants) = self.tenants.get_mut(&turn.owner.tenant) {
            tenants.done(turn.tenant, cost);
        }
        self.owners.done(turn.owner, cost);
    }

    /// Whether there is a job that `allow` admits.
    pub fn has_turn(&self, allow: impl Fn(NextJob) -> bool) -> bool {
        let has_turn = |owner: &str, of_owner| {
            self.tenants.get(owner).is_some_and(|tenants| tenants.has_turn(|next| allow(next.of(of_owner))))
        };
        self.owners.has_turn_of(has_turn)
    }

    /// The tenants of an owner. Those of owners that are forgotten are, too.
    fn tenants_of(&mut self, owner: &Arc<str>) -> &mut FairQueue<T> {
        if self.tenants.len() > 2 * IDLE_MAX {
            self.tenants.retain(|owner, _| self.owners.knows(owner));
        }
        self.tenants.entry(Arc::clone(owner)).or_insert_with(|| FairQueue::new(self.costs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue in which jobs are the names of their tenants.
    struct Jobs(OwnerQueue<&'static str>);

    impl Jobs {
        fn new() -> Self {
            Self(OwnerQueue::new(Costs { job: 1, slack: 0 }))
        }

        fn push(&mut self, owner: &str, tenant: &'static str) -> u64 {
            let member = Member { owner: &owner.into(), weight: 1, tenant: &tenant.into() };
            self.0.push(member, 0, tenant)
        }

        fn push_all(&mut self, owner: &str, tenants: &[&'static str]) {
            tenants.iter().for_each(|tenant| _ = self.push(owner, tenant));
        }

        /// Runs jobs that cost as much as `cost` says, one after the other.
        fn run(&mut self, times: usize, cost: impl Fn(&str) -> u64) -> Vec<&'static str> {
            let mut ran = Vec::new();
            while ran.len() < times
                && let Some((turn, job)) = self.0.pop(0, |_| true)
            {
                self.0.done(turn, Some(cost(job)));
                ran.push(job);
            }
            ran
        }
    }

    fn count(ran: &[&str], job: &str) -> usize {
        ran.iter().filter(|ran| **ran == job).count()
    }

    #[test]
    fn an_owner_with_many_tenants_gets_no_more_than_one_with_a_single_one() {
        let mut jobs = Jobs::new();
        for _ in 0..100 {
            jobs.push_all("busy", &["one", "two", "three", "four"]);
            jobs.push("quiet", "only");
        }
        let ran = jobs.run(100, |_| 10);
        assert_eq!((count(&ran, "only"), count(&ran, "one"), count(&ran, "four")), (50, 13, 12));
    }

    #[test]
    fn one_job_of_another_owner_comes_next_however_many_tenants_wait() {
        let mut jobs = Jobs::new();
        let tenants: Vec<Arc<str>> = (0..100).map(|number| number.to_string().into()).collect();
        let busy: Arc<str> = "busy".into();
        for tenant in &tenants {
            jobs.0.push(Member { owner: &busy, weight: 1, tenant }, 0, "of busy");
        }
        assert_eq!(jobs.run(3, |_| 10).len(), 3);
        jobs.push("quiet", "only");
        assert_eq!(jobs.run(2, |_| 10), ["only", "of busy"]);
    }

    #[test]
    fn a_costly_tenant_does_not_delay_others_of_its_owner() {
        let mut jobs = Jobs::new();
        for _ in 0..1000 {
            jobs.push_all("owner", &["cheap", "costly"]);
        }
        let ran = jobs.run(440, |job| if job == "cheap" { 10 } else { 100 });
        assert!((390..=410).contains(&count(&ran, "cheap")), "{} of 440", count(&ran, "cheap"));
    }

    #[test]
    fn an_owner_at_its_limit_is_passed_over_and_so_is_a_tenant() {
        let mut jobs = Jobs::new();
        jobs.push_all("busy", &["one", "one", "two", "two"]);
        let mut take =
            |of_tenant, of_owner| jobs.0.pop(0, |next| next.running < of_tenant && next.owner_running < of_owner);
        let [first, second] = [take(1, 2).unwrap(), take(1, 2).unwrap()];
        assert_eq!((first.1, second.1), ("one", "two"));
        assert!(take(1, 3).is_none() && take(2, 2).is_none());
        let third = take(2, 3).unwrap();
        jobs.push("quiet", "only");
        let fourth = jobs.0.pop(0, |next| next.owner_running < 3).unwrap();
        assert_eq!((third.1, fourth.1, jobs.0.waiting("busy", "two")), ("one", "only", (1, 1)));
        [first, second, third, fourth].into_iter().for_each(|(turn, _)| jobs.0.done(turn, Some(1)));
        assert_eq!(jobs.run(9, |_| 1), ["two"]);
        assert!(jobs.0.is_idle());
    }

    #[test]
    fn a_removed_job_does_not_run() {
        let mut jobs = Jobs::new();
        let [one, two] = ["one", "two"].map(|tenant| jobs.push("owner", tenant));
        assert_eq!((jobs.0.remove("owner", "one", one), jobs.0.remove("owner", "one", one)), (Some("one"), None));
        assert_eq!(jobs.0.waiting("owner", "two"), (1, 1));
        assert_eq!((jobs.run(9, |_| 1), jobs.0.is_idle()), (vec!["two"], true));
        assert_eq!(jobs.0.remove("owner", "two", two), None, "it ran");
    }

    #[test]
    fn owners_are_forgotten() {
        let mut jobs = Jobs::new();
        for number in 0..50_000_u32 {
            jobs.push(&number.to_string(), "only");
            assert_eq!(jobs.run(1, |_| 1), ["only"]);
        }
        assert!(jobs.0.tenants.len() < 40_000);
    }
}
