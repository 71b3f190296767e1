//! The queue of requests: fair between owners and their tenants by what their requests cost, and bounded.
//!
//! A request starts, and runs from then on. Few start at once, because the processors take new work in the order in
//! which it arrives: only what has not started can still be overtaken. As soon as a request waits for something itself,
//! such as the store or a sandbox, the next one starts.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use fair_queue::{Costs, Member, MemberTurn, NextJob, OwnerQueue};
use metrics::Gauge;
use tokio::{sync::oneshot, time::timeout};

use super::{super::ServeSettings, Refusal, limits::Limits, metrics as reported, recent_owners::RecentOwners};
use crate::{ledger::Owner, usage::Tenant};

/// Requests that wait, and the number of those that run.
pub(super) struct RequestQueue {
    limits: Limits,
    state: Mutex<QueueState>,
}

struct QueueState {
    waiting: OwnerQueue<(Arc<str>, oneshot::Sender<Permit>)>,
    recent: RecentOwners,
    waiting_count: usize,
    /// Running requests, those that are starting included.
    running: usize,
    starting: usize,
    waiting_gauge: Gauge,
    running_gauge: Gauge,
}

/// A request that waits for its turn, until it is dropped.
struct WaitingRequest {
    turn: oneshot::Receiver<Permit>,
    queue: Arc<RequestQueue>,
    owner: Arc<str>,
    tenant: Arc<str>,
    number: u64,
}

/// Permission to handle a request, until it is dropped.
pub(super) struct Permit {
    queue: Arc<RequestQueue>,
    /// None once it was returned.
    turn: Option<MemberTurn>,
    is_starting: bool,
    /// `None` if the request was not handled.
    cost: Option<u64>,
}

impl RequestQueue {
    pub(super) fn new(service: &'static str, settings: &ServeSettings) -> Arc<Self> {
        Arc::new(Self::with(service, Limits::of(settings)))
    }

    fn with(service: &'static str, limits: Limits) -> Self {
        let state = Mutex::new(QueueState {
            waiting: OwnerQueue::new(Costs { job: 0, slack: 0 }),
            recent: RecentOwners::default(),
            waiting_count: 0,
            running: 0,
            starting: 0,
            waiting_gauge: reported::waiting(service),
            running_gauge: reported::running(service),
        });
        Self { limits, state }
    }

    /// Takes a place in the queue, and waits for the turn of an owner and its tenant, but not for long.
    pub(super) fn turn(
        self: &Arc<Self>,
        owner: &Owner,
        tenant: &Tenant,
    ) -> impl Future<Output = Result<Permit, Refusal>> + Send + use<> {
        let (waiting, limit) = (self.enqueue(&owner.to_string().into(), tenant), self.limits.waiting_timeout);
        async move {
            let mut waiting = waiting?;
            let turn = timeout(limit, &mut waiting.turn).await;
            turn.ok().and_then(Result::ok).ok_or(Refusal::TimedOut)
        }
    }

    fn enqueue(self: &Arc<Self>, owner: &Arc<str>, tenant: &Tenant) -> Result<WaitingRequest, Refusal> {
        let mut state = self.lock();
        let space = self.limits.waiting_max.saturating_sub(state.waiting_count);
        if space == 0 {
            return Err(Refusal::Full);
        }
        let member = Member { owner, weight: tenant.weight, tenant: &tenant.name };
        // No more than the remaining space, so that whoever fills the queue leaves space for others.
        if !state.waiting.has_room(member, space, self.limits.tenant_waiting_max(tenant.weight)) {
            return Err(Refusal::TenantFull);
        }
        let (sender, turn) = oneshot::channel();
        let number = state.waiting.push(member, 0, (Arc::clone(owner), sender));
        state.waiting_count += 1;
        self.start_next(&mut state);
        state.report();
        Ok(WaitingRequest {
            turn,
            queue: Arc::clone(self),
            owner: Arc::clone(owner),
            tenant: Arc::clone(&tenant.name),
            number,
        })
    }

    /// Starts as many waiting requests as may start now.
    fn start_next(self: &Arc<Self>, state: &mut QueueState) {
        while state.starting < self.limits.starting_max && state.running < self.limits.running_max {
            // The same rule as for waiting: what one owner may have shrinks with what is left for all.
            let room = self.limits.running_max - state.running;
            let is_only_one = state.recent.is_only_one();
            let owner_has_room =
                |owner: NextJob| owner.running < self.limits.owner_running_max(owner, is_only_one).min(room);
            let tenant_has_room = |tenant: NextJob| tenant.running < self.limits.tenant_running_max(tenant.weight);
            let Some((turn, (owner, sender))) = state.waiting.pop(0, owner_has_room, tenant_has_room) else { return };
            state.waiting_count -= 1;
            let permit = Permit { queue: Arc::clone(self), turn: Some(turn), is_starting: true, cost: None };
            match sender.send(permit) {
                Ok(()) => {
                    state.recent.note_start(&owner);
                    state.starting += 1;
                    state.running += 1;
                }
                // The client has gone. The lock is held, so the permit must not return its turn itself.
                Err(mut permit) => permit.turn.take().into_iter().for_each(|turn| state.waiting.done(turn, None)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Nothing that runs under this lock leaves it half changed.
        self.state.lock()
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        // None if it got its turn. If nobody has seen that, the permit is dropped with the receiver.
        if state.waiting.remove(&self.owner, &self.tenant, self.number).is_some() {
            state.waiting_count -= 1;
            state.report();
        }
    }
}

impl QueueState {
    fn report(&self) {
        self.waiting_gauge.set(self.waiting_count as f64);
        self.running_gauge.set(self.running as f64);
    }
}

impl Permit {
    /// Ends the turn, and charges the tenant.
    pub(super) fn end(mut self, cost: u64) {
        self.cost = Some(cost);
    }

    /// Lets the next request start: this one has ended, or waits for something itself.
    pub(super) fn note_started(&mut self) {
        if std::mem::take(&mut self.is_starting) {
            let mut state = self.queue.lock();
            state.starting -= 1;
            self.queue.start_next(&mut state);
            state.report();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let mut state = self.queue.lock();
        state.waiting.done(turn, self.cost);
        state.running -= 1;
        state.starting -= usize::from(self.is_starting);
        self.queue.start_next(&mut state);
        state.report();
    }
}
