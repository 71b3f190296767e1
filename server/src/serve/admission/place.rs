//! A request's place among the running ones, which it gives up while it waits for its body.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use axum::http::Extensions;

use super::{
    Refusal, metrics,
    request_queue::{Absence, Permit, RequestQueue},
};
use crate::usage::{Tenant, Usage};

/// A request's place among the running ones, until it is dropped. Its tenant is charged for what the request used.
pub(in crate::serve) struct Place {
    service: &'static str,
    queue: Arc<RequestQueue>,
    tenant: Tenant,
    usage: Usage,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// None while the request waits for its body.
    permit: Option<Permit>,
    charged: u64,
    /// Why the request is not handled to its end.
    refusal: Option<Refusal>,
}

/// The place of a request, for those who work on it. A response that is still being sent does not keep it.
#[derive(Clone)]
struct PlaceOf(Weak<Place>);

impl Place {
    pub(super) fn new(service: &'static str, tenant: Tenant, permit: Permit, usage: &Usage) -> Arc<Self> {
        let (queue, usage) = (Arc::clone(permit.queue()), usage.clone());
        let state = Mutex::new(State { permit: Some(permit), ..State::default() });
        Arc::new(Self { service, queue, tenant, usage, state })
    }

    /// The place of the request with these extensions; none if it has ended. What keeps it counts as running.
    pub(in crate::serve) fn of(extensions: &Extensions) -> Option<Arc<Self>> {
        extensions.get().and_then(|PlaceOf(place)| place.upgrade())
    }

    pub(super) fn add_to(self: &Arc<Self>, extensions: &mut Extensions) {
        extensions.insert(PlaceOf(Arc::downgrade(self)));
    }

    /// Runs the request. As soon as it waits for something, the next one may start.
    pub(super) async fn run<Request: Future>(&self, request: Request) -> Request::Output {
        let mut request = pin!(request);
        poll_fn(|context| {
            let polled = request.as_mut().poll(context);
            if let Some(permit) = &mut self.lock().permit {
                permit.note_started();
            }
            polled
        })
        .await
    }

    /// Gives the place to others, until [`Self::return_with`]; `bytes` of the request's body have come.
    pub(super) fn leave(&self, bytes: usize) -> Result<Absence, Refusal> {
        let absence = self.queue.leave(&self.tenant, bytes)?;
        self.usage.add_absence();
        self.end_turn(self.usage.fuel());
        Ok(absence)
    }

    /// Waits for another turn.
    pub(super) fn next_turn(&self) -> impl Future<Output = Result<Permit, Refusal>> + Send + use<> {
        let (queue, tenant) = (Arc::clone(&self.queue), self.tenant.clone());
        async move { queue.turn(&tenant).await }
    }

    pub(super) fn return_with(&self, permit: Permit) {
        self.lock().permit = Some(permit);
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.lock().refusal = Some(refusal);
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.lock().refusal
    }

    /// Charges what was used since the last turn, of `cost` in all.
    fn end_turn(&self, cost: u64) {
        let mut state = self.lock();
        let unpaid = cost.saturating_sub(state.charged);
        state.charged += unpaid;
        let permit = state.permit.take();
        drop(state);
        metrics::charged(self.service, unpaid);
        if let Some(permit) = permit {
            permit.end(unpaid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under this lock leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end_turn(self.usage.cost());
    }
}
