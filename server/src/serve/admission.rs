//! Admission control: which request is handled next, before anything but its head is read.
//!
//! Requests of a known caller share its turns, and all others those of their address. A request that waits costs a
//! connection and nothing else; so does one that is about to be refused, which keeps clients that retry at once from
//! using up the processors with refusals.

mod callers;
mod counted_body;
mod request_queue;

use std::{sync::Arc, time::Duration};

use axum::{extract::Request, response::Response};
use tokio::sync::Semaphore;
use types::{Kind, Kinded};

use self::{
    callers::Callers,
    counted_body::count_body,
    request_queue::{Limits, Permit, RequestQueue},
};
use super::{ServeSettings, metrics};
use crate::usage::{REQUEST_FUEL, UNKNOWN_CALLER_FUEL, Usage};

/// How long a client should wait before it retries, in seconds.
pub(super) const RETRY_AFTER_S: u64 = 1;
/// How long a refusal is held back, so that a client that retries at once is slowed.
const REFUSAL_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of refusals that are held back; further ones are sent at once.
const REFUSALS_HELD_MAX: usize = 4096;

/// The tenant of requests whose caller is not known: the address that they come from.
#[derive(Clone)]
pub(super) struct AddressTenant(pub(super) Arc<str>);

/// Why a request is not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("too many requests of this caller are waiting: send fewer at once, and retry after {RETRY_AFTER_S} s")]
    TenantFull,
    #[error("this service is overloaded, too many requests are waiting: retry after {RETRY_AFTER_S} s")]
    Full,
    #[error("this service is overloaded, the request waited too long for its turn: retry after {RETRY_AFTER_S} s")]
    TimedOut,
}

/// Admits the requests of one service.
pub(super) struct AdmissionControl {
    service: &'static str,
    queue: Arc<RequestQueue>,
    callers: Callers,
    held: Semaphore,
    waiting_timeout: Duration,
}

impl Kinded for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::TenantFull => Kind::Exhausted,
            Self::Full | Self::TimedOut => Kind::Unavailable,
        }
    }
}

impl Refusal {
    fn reason(self) -> &'static str {
        match self {
            Self::TenantFull => "tenant",
            Self::Full => "full",
            Self::TimedOut => "timeout",
        }
    }
}

impl AdmissionControl {
    pub(super) fn new(service: &'static str, settings: &ServeSettings) -> Self {
        Self {
            service,
            queue: Arc::new(RequestQueue::new(Limits::of(settings))),
            callers: Callers::default(),
            held: Semaphore::new(REFUSALS_HELD_MAX),
            waiting_timeout: Duration::from_millis(settings.waiting_timeout_ms),
        }
    }

    /// Handles a request when it is its tenant's turn.
    pub(super) async fn handle<Handled>(
        &self,
        mut request: Request,
        handle: impl FnOnce(Request) -> Handled,
    ) -> Result<Response, Refusal>
    where
        Handled: Future<Output = Response>,
    {
        let credential = callers::digest(request.headers());
        let known = credential.and_then(|digest| self.callers.get(&digest));
        let tenant = known.clone().unwrap_or_else(|| address_tenant(&request));
        let mut permit = self.permit(&tenant).await?;
        let usage = Usage::of(known);
        request.extensions_mut().insert(usage.clone());
        let response = permit.run(handle(count_body(request, &usage)), || cost(&usage)).await;
        metrics::charged(self.service, cost(&usage));
        if let Some(digest) = credential {
            self.callers.note(digest, &usage);
        }
        Ok(response)
    }

    async fn permit(&self, tenant: &Arc<str>) -> Result<Permit, Refusal> {
        let refusal = match self.queue.enqueue(tenant) {
            Ok(turn) => match tokio::time::timeout(self.waiting_timeout, turn).await {
                Ok(Ok(permit)) => return Ok(permit),
                _ => Refusal::TimedOut,
            },
            Err(refusal) => {
                if let Ok(_held) = self.held.try_acquire() {
                    tokio::time::sleep(REFUSAL_PAUSE).await;
                }
                refusal
            }
        };
        metrics::refused(self.service, refusal.reason());
        Err(refusal)
    }
}

fn address_tenant(request: &Request) -> Arc<str> {
    let address = request.extensions().get::<AddressTenant>();
    address.map_or_else(|| Arc::from("no address"), |AddressTenant(tenant)| Arc::clone(tenant))
}

/// What a request costs its tenant.
fn cost(usage: &Usage) -> u64 {
    // Whoever sends wrong credentials makes us verify each of them.
    let unknown = if usage.caller().is_none() { UNKNOWN_CALLER_FUEL } else { 0 };
    usage.fuel().saturating_add(REQUEST_FUEL + unknown)
}
