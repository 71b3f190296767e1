//! A queue of two levels: fair between owners, and between the tenants of each.

use std::{collections::HashMap, sync::Arc};

use crate::queue::{Costs, FairQueue, IDLE_MAX, NextJob, Turn};

/// Maximum number of idle tenants remembered per owner.
const IDLE_TENANTS_MAX: usize = 64;

/// Jobs of many owners in fair order. An owner gets no more by having more tenants; whose turn it is among those is
/// decided in the same way.
pub struct OwnerQueue<T> {
    costs: Costs,
    /// One entry for each job. Which job it becomes is decided among the tenants, when it is the owner's turn; so the
    /// worker that the entry prefers is a guess if the owner has several tenants.
    owners: FairQueue<()>,
    tenants: HashMap<Arc<str>, FairQueue<T>>,
}

/// A tenant, and to whom it belongs.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Name of the owner.
    pub owner: &'a Arc<str>,
    /// The weight of the owner: one of weight 2 gets twice the share of one of weight 1.
    pub weight: u64,
    /// Name of the tenant, among those of its owner.
    pub tenant: &'a Arc<str>,
}

/// Permission to run a job; must be returned when it is done.
#[must_use = "a turn must be returned with `done`"]
pub struct MemberTurn {
    owner: Turn,
    tenant: Turn,
}

impl MemberTurn {
    /// Returns the expected cost of the job; zero if unknown.
    pub fn expected_cost(&self) -> u64 {
        self.tenant.expected_cost()
    }
}

impl<T> OwnerQueue<T> {
    /// An empty queue.
    pub fn new(costs: Costs) -> Self {
        Self { costs, owners: FairQueue::new(costs), tenants: HashMap::new() }
    }

    /// Returns true if the owner has fewer than `owner_max` waiting jobs, and the tenant fewer than `tenant_max`.
    pub fn has_room(&self, Member { owner, tenant, .. }: Member<'_>, owner_max: usize, tenant_max: usize) -> bool {
        let of_owner = self.owners.waiting(owner);
        let of_tenant = || self.tenants.get(owner).map_or(0, |tenants| tenants.waiting(tenant));
        // A tenant has at most as many as its owner, so that it need not be looked up on each message.
        of_owner < owner_max && (of_owner < tenant_max || of_tenant() < tenant_max)
    }

    /// Returns true if no job waits or runs.
    pub fn is_idle(&self) -> bool {
        self.owners.is_idle()
    }

    /// Queues `job`, which prefers the worker `home`. Returns the number by which it can be removed.
    pub fn push(&mut self, Member { owner, weight, tenant }: Member<'_>, home: usize, job: T) -> u64 {
        self.owners.push_weighted(owner, weight, home, ());
        self.tenants_of(owner).push_weighted(tenant, weight, home, job)
    }

    /// Queues `job`, which will cost this much: its tenant is charged before it runs.
    pub fn push_known(&mut self, Member { owner, weight, tenant }: Member<'_>, cost: u64, job: T) -> u64 {
        self.owners.push_known(owner, weight, cost, ());
        self.tenants_of(owner).push_known(tenant, weight, cost, job)
    }

    /// Removes a job that is no longer wanted; `None` if it was taken before.
    pub fn remove(&mut self, owner: &str, tenant: &str, number: u64) -> Option<T> {
        let job = self.tenants.get_mut(owner)?.remove(tenant, number)?;
        self.owners.remove_last(owner);
        Some(job)
    }

    /// Takes the next job for `worker` among the owners that `allow_owner` admits, and of their tenants among those that
    /// `allow_tenant` does.
    pub fn pop(
        &mut self,
        worker: usize,
        allow_owner: impl Fn(NextJob) -> bool,
        allow_tenant: impl Fn(NextJob) -> bool,
    ) -> Option<(MemberTurn, T)> {
        let tenants = &self.tenants;
        let has_turn = |owner: &str| tenants.get(owner).is_some_and(|tenants| tenants.has_turn(&allow_tenant));
        let (owner, ()) = self.owners.pop_where(worker, |owner, next| allow_owner(next) && has_turn(owner))?;
        let tenants = self.tenants.get_mut(&owner.tenant);
        let Some((tenant, job)) = tenants.and_then(|tenants| tenants.pop(worker, allow_tenant)) else {
            self.owners.done(owner, None);
            return None;
        };
        Some((MemberTurn { owner, tenant }, job))
    }

    /// Ends a turn. `cost` is the cost of the job, which counts up to a maximum; `None` if it was not run.
    pub fn done(&mut self, turn: MemberTurn, cost: Option<u64>) {
        if let Some(tenants) = self.tenants.get_mut(&turn.owner.tenant) {
            tenants.done(turn.tenant, cost);
        }
        self.owners.done(turn.owner, cost);
    }

    /// Returns true if there is a job of a tenant that `allow_tenant` admits.
    pub fn has_turn(&self, allow_tenant: impl Fn(NextJob) -> bool) -> bool {
        let has_turn = |owner: &str| self.tenants.get(owner).is_some_and(|tenants| tenants.has_turn(&allow_tenant));
        self.owners.has_turn_where(|owner, _| has_turn(owner))
    }

    /// The tenants of an owner. Those of owners that are forgotten are, too.
    fn tenants_of(&mut self, owner: &Arc<str>) -> &mut FairQueue<T> {
        if self.tenants.len() > 2 * IDLE_MAX {
            self.tenants.retain(|owner, _| self.owners.contains(owner));
        }
        self.tenants.entry(Arc::clone(owner)).or_insert_with(|| FairQueue::with_idle_max(self.costs, IDLE_TENANTS_MAX))
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
                && let Some((turn, job)) = self.0.pop(0, |_| true, |_| true)
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
            |of_tenant, of_owner| jobs.0.pop(0, |owner| owner.running < of_owner, |tenant| tenant.running < of_tenant);
        let [first, second] = [take(1, 2).unwrap(), take(1, 2).unwrap()];
        assert_eq!((first.1, second.1), ("one", "two"));
        assert!(take(1, 3).is_none() && take(2, 2).is_none());
        let third = take(2, 3).unwrap();
        jobs.push("quiet", "only");
        let fourth = jobs.0.pop(0, |owner| owner.running < 3, |_| true).unwrap();
        assert_eq!((third.1, fourth.1), ("one", "only"));
        [first, second, third, fourth].into_iter().for_each(|(turn, _)| jobs.0.done(turn, Some(1)));
        assert_eq!(jobs.run(9, |_| 1), ["two"]);
        assert!(jobs.0.is_idle());
    }

    #[test]
    fn what_waits_counts_for_the_owner_and_for_the_tenant() {
        let mut jobs = Jobs::new();
        let numbers = ["one", "one", "two"].map(|tenant| jobs.push("owner", tenant));
        let [owner, one, two, other] = ["owner", "one", "two", "other"].map(Arc::<str>::from);
        let member = |owner, tenant| Member { owner, weight: 1, tenant };
        let has_room = |jobs: &Jobs, tenant, most| jobs.0.has_room(member(&owner, tenant), most, 2);
        assert_eq!(
            [has_room(&jobs, &one, 4), has_room(&jobs, &two, 4), has_room(&jobs, &two, 3)],
            [false, true, false]
        );
        assert!(jobs.0.has_room(member(&other, &one), 1, 1));
        jobs.0.remove("owner", "one", numbers[0]);
        assert!(has_room(&jobs, &one, 3));
    }

    #[test]
    fn a_removed_job_does_not_run() {
        let mut jobs = Jobs::new();
        let [one, two] = ["one", "two"].map(|tenant| jobs.push("owner", tenant));
        assert_eq!((jobs.0.remove("owner", "one", one), jobs.0.remove("owner", "one", one)), (Some("one"), None));
        assert_eq!((jobs.run(9, |_| 1), jobs.0.is_idle()), (vec!["two"], true));
        assert_eq!(jobs.0.remove("owner", "two", two), None, "it ran");
    }

    #[test]
    fn owners_and_their_tenants_are_forgotten() {
        let mut jobs = Jobs::new();
        for number in 0..50_000_u32 {
            jobs.push(&number.to_string(), "only");
            assert_eq!(jobs.run(1, |_| 1), ["only"]);
        }
        assert!(jobs.0.tenants.len() < 40_000);
        let owner: Arc<str> = "owner".into();
        for number in 0..1000 {
            jobs.0.push(Member { owner: &owner, weight: 1, tenant: &number.to_string().into() }, 0, "one of many");
            assert_eq!(jobs.run(1, |_| 1).len(), 1);
        }
        let remembered = (0..1000).filter(|number: &u32| jobs.0.tenants[&owner].contains(&number.to_string())).count();
        assert_eq!(remembered, IDLE_TENANTS_MAX);
    }
}
