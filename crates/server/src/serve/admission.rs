//! Admission control: which request is handled next, before anything but its head is read.
//!
//! Requests of a known caller share its turns, the callers of an owner share the owner's, and all other requests share
//! those of their address. A request that waits costs a connection and nothing else; so does one that is about to be
//! refused, which keeps clients that retry at once from using up the processors with refusals.

mod callers;
mod components;
mod limits;
mod owner;
mod part_turns;
mod place;
mod probes;
mod recent_owners;
mod refusals;
mod request_body;
mod request_queue;

use std::sync::Arc;

use axum::{body::HttpBody, extract::Request, response::Response};
use tokio_util::sync::CancellationToken;
use types::{Kind, Kinded};

pub use self::part_turns::{PartTurn, PartTurns};
pub(super) use self::place::RequestPlace;
use self::{
    callers::Callers,
    components::Components,
    owner::owner_of_caller,
    probes::Probes,
    refusals::{Refusals, invites_retries, is_unauthenticated},
    request_body::read_within_limits,
    request_queue::{Permit, RequestQueue},
};
use super::{Server, VerifyComponent, activity::Activity, metrics, response_body::Reserved};
use crate::{
    ledger::{Exceeded, Ledger, Owner, Owners},
    usage::{Tenant, Usage},
};

/// Time after which a client should retry, in seconds.
pub(super) const RETRY_AFTER_S: u64 = 1;

/// Rate at which a body must arrive once the time to wait for it is used up, in KiB per second.
const BODY_RATE_KIB: u64 = 16;

/// The tenant of requests whose caller is not known: the address that they come from.
#[derive(Clone)]
pub(super) struct AddressTenant(pub(super) Arc<str>);

/// Reasons for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its caller or owner has too many that wait.
    #[error(
        "too many requests of this caller or its owner are waiting: send fewer at once, and retry after {RETRY_AFTER_S} s"
    )]
    TenantFull,
    /// Too many wait.
    #[error("this service is overloaded, too many requests are waiting: retry after {RETRY_AFTER_S} s")]
    Full,
    /// It waited for too long.
    #[error("this service is overloaded, the request waited too long for its turn: retry after {RETRY_AFTER_S} s")]
    TimedOut,
    /// Its body does not come.
    #[error("the body of the request arrives too slowly: send at least {BODY_RATE_KIB} KiB per second")]
    BodyTooSlow,
    /// A budget of its owner is used up.
    #[error(transparent)]
    Budget(#[from] Exceeded),
}

/// State that all requests of a service share.
struct Shared {
    service: &'static str,
    queue: Arc<RequestQueue>,
    ledger: Ledger,
    owners: Option<Arc<Owners>>,
    stop: CancellationToken,
    refusals: Refusals,
}

/// Admits the requests of one service.
pub(super) struct AdmissionControl {
    shared: Arc<Shared>,
    callers: Callers,
    components: Components,
    probes: Probes,
}

impl Kinded for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::TenantFull => Kind::Exhausted,
            Self::Full | Self::TimedOut => Kind::Unavailable,
            Self::BodyTooSlow => Kind::Timeout,
            Self::Budget(exceeded) => exceeded.kind(),
        }
    }
}

impl Refusal {
    fn reason(self) -> &'static str {
        match self {
            Self::TenantFull => "tenant",
            Self::Full => "full",
            Self::TimedOut => "timeout",
            Self::BodyTooSlow => "body",
            Self::Budget(_) => "budget",
        }
    }
}

impl AdmissionControl {
    pub(super) fn new(service: &'static str, server: &Server, verify_component: Option<VerifyComponent>) -> Self {
        let shared = Shared {
            service,
            queue: RequestQueue::new(service, &server.settings),
            ledger: server.ledger.clone(),
            owners: server.owners.clone(),
            stop: server.stop.clone(),
            refusals: Refusals::default(),
        };
        Self {
            shared: Arc::new(shared),
            callers: Callers::default(),
            components: Components::new(verify_component),
            probes: Probes::default(),
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
        let Shared { ledger, owners, .. } = &*self.shared;
        let address = address_tenant(&request);
        let activity = request.extensions().get::<Arc<Activity>>().cloned();
        if self.probes.may_pass(request.uri().path(), &address) {
            let reserved = Reserved::new(&ledger.responses, &Owner::Address(address), activity)?;
            return Ok(reserved.send(handle(request).await).await?);
        }
        let credential = callers::digest(request.headers());
        let known = credential.and_then(|digest| self.callers.get(&digest));
        let component = self.components.tenant(request.headers(), &address);
        let is_component = component.is_some();
        let (tenant, owner) = match component.or_else(|| known.clone()) {
            Some(caller) => (caller.clone(), owner_of_caller(&caller, owners.as_deref())),
            None => (Tenant::new(Arc::clone(&address)), Owner::Address(address)),
        };
        let name = Arc::clone(&tenant.name);
        let permit = self.shared.permit(&owner, &tenant).await?;
        let usage = Usage::of(known, Some((Arc::clone(&ledger.long_work), owner.clone())));
        let reserved =
            Reserved::new(&ledger.responses, &owner, activity).map_err(|error| self.shared.refused(error))?;
        let place = RequestPlace::new(&self.shared, (tenant, owner), permit, &usage);
        request.extensions_mut().insert(usage.clone());
        place.add_to(request.extensions_mut());
        let handled = async { reserved.send(handle(read_within_limits(request, &usage, &place)).await).await };
        let response = place.run(handled).await.map_err(|error| self.shared.refused(error))?;
        usage.add_bytes(response.body().size_hint().lower());
        if let Some(digest) = credential {
            self.callers.note(digest, &usage, is_unauthenticated(&response));
        }
        let refusal = place.refusal();
        // Others take its place while the response is held back.
        drop(place);
        // A component asks for many, and is refused for their sake.
        if !is_component && invites_retries(&response) {
            self.shared.refusals.pause_if_many(&name).await;
        }
        refusal.map_or(Ok(response), |refusal| Err(self.shared.refused(refusal)))
    }
}

impl Shared {
    async fn permit(&self, owner: &Owner, tenant: &Tenant) -> Result<Permit, Refusal> {
        match self.queue.turn(owner, tenant).await {
            Ok(permit) => Ok(permit),
            Err(refusal) => Err(self.refuse_turn(refusal).await),
        }
    }

    /// Takes a while, which keeps those back that would try again at once.
    async fn refuse_turn(&self, refusal: Refusal) -> Refusal {
        if matches!(refusal, Refusal::Full | Refusal::TenantFull) {
            self.refusals.pause().await;
        }
        self.refused(refusal)
    }

    fn refused(&self, refusal: impl Into<Refusal>) -> Refusal {
        let refusal = refusal.into();
        metrics::refused(self.service, refusal.reason());
        refusal
    }
}

fn address_tenant(request: &Request) -> Arc<str> {
    let address = request.extensions().get::<AddressTenant>();
    address.map_or_else(|| Arc::from("no address"), |AddressTenant(tenant)| Arc::clone(tenant))
}
