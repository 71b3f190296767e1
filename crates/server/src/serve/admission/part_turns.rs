//! Turns for the parts of a request that goes on after its response has begun.
//!
//! Such a request has given its place to others. Each of its parts waits for one as a request does, and pays for what
//! it uses.

use std::{convert::Infallible, future::poll_fn, pin::pin, sync::Arc};

use aide::OperationInput;
use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use parking_lot::Mutex;

use super::{Refusal, RequestPlace, Shared, metrics, owner::owner_of_caller, request_queue::Permit};
use crate::{
    ledger::{Charge, Exceeded, Owner},
    usage::{Tenant, Usage},
};

/// Turns for which the parts of a request wait.
#[derive(Clone, Default)]
pub struct PartTurns(Option<Request>);

/// The request, as it was admitted.
#[derive(Clone)]
struct Request {
    shared: Arc<Shared>,
    tenant: Tenant,
    owner: Owner,
    usage: Usage,
    /// The memory that its parts take together.
    memory: Option<Arc<Charge>>,
}

/// A part's place among the running requests, until it is dropped. The tenant is charged for what the part used.
pub struct PartTurn {
    service: &'static str,
    /// None outside of a server.
    permit: Mutex<Option<Permit>>,
    usage: Usage,
}

impl PartTurns {
    /// The turns of the request with these extensions. Outside of a server, nobody waits for them.
    pub fn in_extensions(extensions: &Extensions) -> Self {
        let request = |place: Arc<RequestPlace>| Request {
            shared: Arc::clone(&place.shared),
            tenant: place.tenant.clone(),
            owner: place.owner.clone(),
            usage: place.usage.clone(),
            memory: None,
        };
        Self(RequestPlace::of(extensions).map(request))
    }

    /// Takes a place in the queue for a part, of which so many bytes have come, and waits for its turn.
    pub fn take(&self, bytes: usize) -> impl Future<Output = Result<PartTurn, Refusal>> + Send + use<> {
        let waiting = self.0.as_ref().map(|request| {
            let ((tenant, owner), usage) = (request.who(), request.usage.of_part());
            usage.add_bytes(bytes as u64);
            (Arc::clone(&request.shared), request.shared.queue.turn(&owner, &tenant), usage)
        });
        async move {
            let Some((shared, turn, usage)) = waiting else { return Ok(PartTurn::unlimited()) };
            match turn.await {
                Ok(permit) => Ok(PartTurn { service: shared.service, permit: Mutex::new(Some(permit)), usage }),
                Err(refusal) => Err(shared.refuse_turn(refusal).await),
            }
        }
    }

    /// Charges the owner's share of bodies for so many bytes, which may be in memory until the last clone of this is
    /// dropped.
    pub fn charge_memory(&mut self, bytes: usize) -> Result<(), Refusal> {
        let Some(request) = &mut self.0 else { return Ok(()) };
        let charge = request.shared.ledger.bodies.charge(&request.who().1, bytes as u64);
        request.memory = Some(Arc::new(charge.map_err(|exceeded| request.shared.refused(exceeded))?));
        Ok(())
    }

    /// Charges the owner for so many bytes of the response, which are in memory until that is dropped. None outside of
    /// a server.
    pub fn charge_response(&self, bytes: usize) -> Result<Option<Charge>, Exceeded> {
        let Some(request) = &self.0 else { return Ok(None) };
        request.shared.ledger.responses.charge(&request.who().1, bytes as u64).map(Some)
    }

    /// Waits until the service is about to stop.
    pub async fn stopping(&self) {
        match &self.0 {
            Some(request) => request.shared.stop.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for PartTurns {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::in_extensions(&parts.extensions))
    }
}

/// Clients do not see it.
impl OperationInput for PartTurns {}

impl Request {
    /// The caller that was verified meanwhile, who may have been unknown when the request was admitted.
    fn who(&self) -> (Tenant, Owner) {
        match self.usage.caller() {
            Some(caller) => {
                let owner = owner_of_caller(&caller, self.shared.owners.as_deref());
                (caller, owner)
            }
            None => (self.tenant.clone(), self.owner.clone()),
        }
    }
}

impl PartTurn {
    fn unlimited() -> Self {
        Self { service: "", permit: Mutex::new(None), usage: Usage::default() }
    }

    /// The usage of the part.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Runs the part. As soon as it waits for something, the next request may start.
    pub async fn run<Part: Future>(&self, part: Part) -> Part::Output {
        let mut part = pin!(part);
        poll_fn(|context| {
            let polled = part.as_mut().poll(context);
            if let Some(permit) = &mut *self.permit.lock() {
                permit.note_started();
            }
            polled
        })
        .await
    }
}

impl Drop for PartTurn {
    fn drop(&mut self) {
        let permit = self.permit.get_mut().take();
        if let Some(permit) = permit {
            let cost = self.usage.cost();
            metrics::charged(self.service, cost);
            permit.end(cost);
        }
    }
}
