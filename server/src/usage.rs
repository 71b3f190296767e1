//! What a request uses, and who makes it.

use std::{
    convert::Infallible,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use aide::OperationInput;
use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use types::{Claims, ComponentId, ServiceName};

/// Costs are in fuel, the unit of the sandbox, of which a processor uses about 10,000 per microsecond. These are the
/// costs of a request, of checking a credential that turns out to be wrong, of a byte of a body, and of an entry of a
/// list.
const REQUEST_FUEL: u64 = 500_000;
const UNKNOWN_CALLER_FUEL: u64 = 1_000_000;
const BYTE_FUEL: u64 = 100;
const ENTRY_FUEL: u64 = 50_000;
/// The cost of giving up a place to wait for a body, and of taking it again.
const ABSENCE_FUEL: u64 = 50_000;
/// How many callers a network counts for.
const NETWORK_WEIGHT: u64 = 8;

/// Whose turn it is: a caller, or all callers of an address that are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    /// How many others it counts for.
    pub(crate) weight: u64,
}

/// What a request has used so far, and who makes it. Its tenant is charged when it ends.
///
/// It is in the extensions of every request that a [`crate::serve::Server`] serves. Clones share what they count.
#[derive(Clone, Debug, Default)]
pub struct Usage(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    fuel: AtomicU64,
    /// Who made earlier requests with the same credential.
    known: Option<Tenant>,
    caller: OnceLock<Arc<str>>,
    is_network: AtomicBool,
}

impl Tenant {
    /// A tenant that counts for itself alone.
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), weight: 1 }
    }

    /// The bearer of a token.
    pub(crate) fn of(Claims { iss, kind, sub, .. }: &Claims) -> Self {
        // None of the three contains a line feed.
        Self::new(format!("{iss}\n{kind}\n{sub}"))
    }
}

impl Usage {
    pub(crate) fn of(known: Option<Tenant>) -> Self {
        Self(Arc::new(Counted { known, ..Counted::default() }))
    }

    /// The usage of a request with these extensions; a new one if nothing is counted.
    pub fn in_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Says who makes the request, once that was verified.
    pub fn set_caller(&self, claims: &Claims) {
        self.0.caller.get_or_init(|| match &self.0.known {
            Some(known) => Arc::clone(&known.name),
            None => Tenant::of(claims).name,
        });
    }

    /// Says which component makes the request, once its own token was verified.
    pub fn set_component(&self, service: ServiceName, id: &ComponentId) {
        self.0.caller.get_or_init(|| Arc::from(format!("{service}\n{id}")));
    }

    /// Says that the request brought the key of the service, whose bearers share their turns.
    pub fn set_key_holder(&self) {
        self.0.caller.get_or_init(|| Arc::from("key"));
    }

    /// Says that the caller brings the messages of a whole network, so that it gets the turns of several callers.
    pub fn set_network(&self) {
        self.0.is_network.store(true, Ordering::Relaxed);
    }

    /// Adds fuel that a sandbox used.
    pub fn add_fuel(&self, fuel: u64) {
        let add = |sum: u64| Some(sum.saturating_add(fuel));
        let _ = self.0.fuel.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Adds entries that were read from the store.
    pub fn add_entries(&self, entries: usize) {
        self.add_fuel(ENTRY_FUEL.saturating_mul(entries as u64));
    }

    pub(crate) fn add_absence(&self) {
        self.add_fuel(ABSENCE_FUEL);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.add_fuel(BYTE_FUEL.saturating_mul(bytes));
    }

    /// What the whole request costs its tenant.
    pub(crate) fn cost(&self) -> u64 {
        // Whoever sends wrong credentials makes us verify each of them.
        let is_unknown = self.0.caller.get().is_none() && self.0.known.is_none();
        let unknown = if is_unknown { UNKNOWN_CALLER_FUEL } else { 0 };
        self.fuel().saturating_add(REQUEST_FUEL + unknown)
    }

    /// What was added so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.0.fuel.load(Ordering::Relaxed)
    }

    /// The caller, once it was verified.
    pub(crate) fn caller(&self) -> Option<Tenant> {
        let known_weight = self.0.known.as_ref().map_or(1, |known| known.weight);
        let weight = if self.0.is_network.load(Ordering::Relaxed) { NETWORK_WEIGHT } else { known_weight };
        self.0.caller.get().map(|name| Tenant { name: Arc::clone(name), weight })
    }
}

impl<S: Sync> FromRequestParts<S> for Usage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::in_extensions(&parts.extensions))
    }
}

/// Clients do not see it.
impl OperationInput for Usage {}
