//! A request's place among the running ones, which it gives up while it waits for its body.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Weak},
};

use axum::http::Extensions;
use parking_lot::Mutex;

use super::{Refusal, Shared, metrics, request_queue::Permit};
use crate::{
    ledger::{Charge, Owner},
    usage::{Tenant, Usage},
};

/// Minimum charge for a request that waits for its body, in bytes: it takes a connection or a stream.
const WAITING_BYTES: u64 = 16 * 1024;

/// A request's place among the running ones, until it is dropped. Its tenant is charged for the use by the request.
pub(in crate::serve) struct RequestPlace {
    pub(super) shared: Arc<Shared>,
    pub(super) tenant: Tenant,
    /// Who is charged for its body.
    pub(super) owner: Owner,
    pub(super) usage: Usage,
    state: Mutex<PlaceState>,
}

#[derive(Default)]
struct PlaceState {
    /// `None` while the request waits for its body.
    permit: Option<Permit>,
    charged: u64,
    /// `None` while little of its body has come.
    body: Option<Charge>,
    body_bytes: u64,
    /// Reason why the request is not handled to its end.
    refusal: Option<Refusal>,
}

/// The place of a request, for those who work on it. A response that is still being sent does not keep it.
#[derive(Clone)]
struct PlaceOf(Weak<RequestPlace>);

impl RequestPlace {
    pub(super) fn new(
        shared: &Arc<Shared>,
        (tenant, owner): (Tenant, Owner),
        permit: Permit,
        usage: &Usage,
    ) -> Arc<Self> {
        let state = Mutex::new(PlaceState { permit: Some(permit), ..PlaceState::default() });
        Arc::new(Self { shared: Arc::clone(shared), tenant, owner, usage: usage.clone(), state })
    }

    /// The place of the request with these extensions; `None` if it has ended. What keeps it counts as running.
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
            if let Some(permit) = &mut self.state.lock().permit {
                permit.note_started();
            }
            polled
        })
        .await
    }

    /// Charges for the part of the request's body that has come, `bytes` in all, until the request ends.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        let more = bytes.saturating_sub(state.body_bytes);
        if more == 0 {
            return Ok(());
        }
        match &mut state.body {
            Some(charge) => charge.grow(more)?,
            None => state.body = Some(self.shared.ledger.bodies.charge(&self.owner, more)?),
        }
        state.body_bytes += more;
        Ok(())
    }

    /// Gives the place to others, until [`Self::return_with`].
    pub(super) fn leave(&self) -> Result<(), Refusal> {
        self.hold(WAITING_BYTES)?;
        self.usage.add_absence();
        self.end_turn(self.usage.fuel());
        Ok(())
    }

    /// Waits for another turn.
    pub(super) fn next_turn(&self) -> impl Future<Output = Result<Permit, Refusal>> + Send + use<> {
        let (shared, tenant, owner) = (Arc::clone(&self.shared), self.tenant.clone(), self.owner.clone());
        async move { shared.queue.turn(&owner, &tenant).await }
    }

    pub(super) fn return_with(&self, permit: Permit) {
        self.state.lock().permit = Some(permit);
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.state.lock().refusal = Some(refusal);
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.state.lock().refusal
    }

    /// Charges for the use since the last turn, of `cost` in all.
    fn end_turn(&self, cost: u64) {
        let mut state = self.state.lock();
        let unpaid = cost.saturating_sub(state.charged);
        state.charged += unpaid;
        let permit = state.permit.take();
        drop(state);
        metrics::charged(self.shared.service, unpaid);
        if let Some(permit) = permit {
            permit.end(unpaid);
        }
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.end_turn(self.usage.cost());
    }
}
