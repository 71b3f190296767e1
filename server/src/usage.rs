//! What a request uses, and who makes it.

use std::{
    convert::Infallible,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use aide::OperationInput;
use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use types::Claims;

/// Costs are in fuel, the unit of the sandbox, of which a processor uses about 10,000 per microsecond. These are the
/// costs of a request, of checking a credential that turns out to be wrong, of a byte of a body, and of an entry of a
/// list.
const REQUEST_FUEL: u64 = 500_000;
const UNKNOWN_CALLER_FUEL: u64 = 1_000_000;
const BYTE_FUEL: u64 = 100;
const ENTRY_FUEL: u64 = 50_000;

/// What a request has used so far, and who makes it. Its tenant is charged when it ends.
///
/// It is in the extensions of every request that a [`crate::serve::Server`] serves. Clones share what they count.
#[derive(Clone, Debug, Default)]
pub struct Usage(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    fuel: AtomicU64,
    /// Who made earlier requests with the same credential.
    known: Option<Arc<str>>,
    caller: OnceLock<Arc<str>>,
}

impl Usage {
    pub(crate) fn of(known: Option<Arc<str>>) -> Self {
        Self(Arc::new(Counted { known, ..Counted::default() }))
    }

    /// The usage of a request with these extensions; a new one if nothing is counted.
    pub fn in_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Says who makes the request, once that was verified.
    pub fn set_caller(&self, claims: &Claims) {
        let Claims { iss, kind, sub, .. } = claims;
        self.0.caller.get_or_init(|| match &self.0.known {
            Some(known) => Arc::clone(known),
            // None of the three contains a line feed.
            None => format!("{iss}\n{kind}\n{sub}").into(),
        });
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

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.add_fuel(BYTE_FUEL.saturating_mul(bytes));
    }

    /// What the whole request costs its tenant.
    pub(crate) fn cost(&self) -> u64 {
        // Whoever sends wrong credentials makes us verify each of them.
        let unknown = if self.caller().or(self.0.known.as_ref()).is_none() { UNKNOWN_CALLER_FUEL } else { 0 };
        self.fuel().saturating_add(REQUEST_FUEL + unknown)
    }

    /// What was added so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.0.fuel.load(Ordering::Relaxed)
    }

    pub(crate) fn caller(&self) -> Option<&Arc<str>> {
        self.0.caller.get()
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
