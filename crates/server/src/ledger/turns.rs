//! Waits for a budget in fair order, where it is better to wait than to be refused.

use std::{fmt, mem, sync::Arc};

use fair_queue::{Costs, FairQueue};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::{Budget, Charge, Owner};

/// A turn costs its time in microseconds, unless its cost was known before, and this.
const COSTS: Costs = Costs { job: 100, slack: 0 };

/// Lets owners take turns with a budget: never more than its total, and next is whoever has used it the least.
///
/// Only its turns may be charged to the budget.
pub struct Turns {
    budget: Arc<Budget>,
    queue: Mutex<FairQueue<WaitingOwner>>,
}

/// One unit of the budget, until it is dropped.
#[must_use = "a turn ends when it is dropped"]
pub struct OwnerTurn {
    turns: Arc<Turns>,
    charge: Option<Charge>,
    began: Instant,
    cost: Option<u64>,
    turn: Option<fair_queue::Turn>,
}

struct WaitingOwner {
    owner: Owner,
    cost: Option<u64>,
    begin: oneshot::Sender<OwnerTurn>,
}

/// Leaves the queue if whoever waits gives up.
struct WaitingPlace<'a> {
    turns: &'a Turns,
    name: Arc<str>,
    number: u64,
}

impl Turns {
    /// Turns with this budget.
    pub fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { budget, queue: Mutex::new(FairQueue::new(COSTS)) })
    }

    /// Waits until it is the turn of this owner; `None` if that can never be.
    pub async fn take(self: &Arc<Self>, owner: &Owner) -> Option<OwnerTurn> {
        self.take_at(owner, None).await
    }

    /// Like [`Self::take`], for work whose cost is known, in microseconds of a processor: it is charged before the work
    /// is done.
    pub async fn take_costing(self: &Arc<Self>, owner: &Owner, cost_us: u64) -> Option<OwnerTurn> {
        self.take_at(owner, Some(cost_us)).await
    }

    async fn take_at(self: &Arc<Self>, owner: &Owner, cost: Option<u64>) -> Option<OwnerTurn> {
        let (begin, begins) = oneshot::channel();
        let name: Arc<str> = owner.to_string().into();
        let waiting = WaitingOwner { owner: owner.clone(), cost, begin };
        let number = match cost {
            Some(cost) => self.queue.lock().push_known(&name, 1, cost, waiting),
            None => self.queue.lock().push(&name, 0, waiting),
        };
        let _place = WaitingPlace { turns: self, name, number };
        self.begin_next();
        begins.await.ok()
    }

    /// Returns the number of jobs that wait for a turn of this owner.
    pub fn waiting(&self, owner: &Owner) -> usize {
        self.queue.lock().waiting(&owner.to_string())
    }

    /// Begins as many turns as the budget allows.
    fn begin_next(self: &Arc<Self>) {
        while let Some((begin, turn)) = self.next() {
            // Whoever has given up returns it.
            drop(begin.send(turn));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<OwnerTurn>, OwnerTurn)> {
        let mut queue = self.queue.lock();
        let share = self.budget.share_of_room();
        let (turn, WaitingOwner { owner, cost, begin }) = queue.pop(0, |next| (next.running as u64) < share)?;
        let charge = self.budget.charge(&owner, 1).ok();
        let turn = OwnerTurn { turns: Arc::clone(self), charge, began: Instant::now(), cost, turn: Some(turn) };
        Some((begin, turn))
    }
}

impl Drop for OwnerTurn {
    fn drop(&mut self) {
        let took = || u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let cost = self.cost.unwrap_or_else(took);
        drop(mem::take(&mut self.charge));
        if let Some(turn) = self.turn.take() {
            self.turns.queue.lock().done(turn, Some(cost));
        }
        self.turns.begin_next();
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        drop(self.turns.queue.lock().remove(&self.name, self.number));
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Turns").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnerTurn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OwnerTurn").field("cost", &self.cost).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::ledger::{Limits, Resource};

    fn turns(total: u64, owner_max: u64) -> Arc<Turns> {
        let limits = Limits { total, owner_max, owner_min: 1 };
        Turns::new(Arc::new(Budget::new(Resource::Deliveries, limits)))
    }

    fn user(name: &str) -> Owner {
        Owner::User(name.into())
    }

    #[tokio::test]
    async fn an_owner_waits_for_its_own_turns_and_not_for_those_of_others() {
        let turns = turns(8, 2);
        let (a, b) = (user("a"), user("b"));
        let mut held = vec![turns.take(&a).await.unwrap(), turns.take(&a).await.unwrap()];
        let mut third = Box::pin(turns.take(&a));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(turns.take(&b).now_or_never().is_some());
        held.pop();
        assert!(third.await.is_some());
    }

    #[tokio::test]
    async fn never_more_than_the_total_have_a_turn_and_who_gives_up_leaves_no_trace() {
        let turns = turns(2, 2);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(user);
        let (first, second) = (turns.take(&a).await, turns.take(&b).await);
        let (mut waiting, mut giving_up) = (Box::pin(turns.take(&c)), Box::pin(turns.take(&d)));
        assert!(waiting.as_mut().now_or_never().is_none() && giving_up.as_mut().now_or_never().is_none());
        assert_eq!((turns.waiting(&c), turns.waiting(&d)), (1, 1));
        drop(giving_up);
        assert_eq!(turns.waiting(&d), 0);
        drop(first);
        let third = waiting.await;
        assert!(third.is_some());
        drop((second, third));
        assert_eq!(turns.budget.used(), 0);
    }

    #[tokio::test]
    async fn who_has_used_less_is_next() {
        let turns = turns(1, 1);
        let (busy, calm) = (user("busy"), user("calm"));
        let running = turns.take(&busy).await.unwrap();
        let (mut again, mut first) = (Box::pin(turns.take(&busy)), Box::pin(turns.take(&calm)));
        assert!(again.as_mut().now_or_never().is_none() && first.as_mut().now_or_never().is_none());
        drop(running);
        assert!(again.as_mut().now_or_never().is_none());
        assert!(first.now_or_never().flatten().is_some());
    }
    #[tokio::test]
    async fn a_known_cost_counts_before_the_work_is_done() {
        let turns = turns(1, 1);
        let (cheap, costly) = (user("cheap"), user("costly"));
        let first = turns.take(&user("first")).await;
        let mut waiting: Vec<_> = (0..20)
            .flat_map(|_| [(&cheap, 1_000), (&costly, 50_000)])
            .map(|(owner, cost)| (owner, Box::pin(turns.take_costing(owner, cost))))
            .collect();
        assert!(waiting.iter_mut().all(|(_, turn)| turn.as_mut().now_or_never().is_none()));
        drop(first);
        let mut begun = Vec::new();
        while begun.len() < 20 {
            let next = waiting
                .iter_mut()
                .enumerate()
                .find_map(|(place, (_, turn))| Some((place, turn.as_mut().now_or_never()?)));
            let (place, turn) = next.unwrap();
            assert!(turn.is_some());
            begun.push(waiting.remove(place).0);
        }
        assert_eq!(begun.iter().filter(|owner| **owner == &costly).count(), 1, "{begun:?}");
    }
}
