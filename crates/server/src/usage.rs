//! Use of a process by a request, and the tenant who makes it.

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

use crate::ledger::{LongWork, Owner, OwnerTurn};

/// Costs are in fuel, the unit of the sandbox, of which a processor uses about this much.
const FUEL_PER_MICROSECOND: u64 = 10_000;
/// The costs of a request, of checking a credential that turns out to be wrong, of a byte of a body, and of an entry of
/// a list.
const REQUEST_FUEL: u64 = 500_000;
const UNKNOWN_CALLER_FUEL: u64 = 1_000_000;
const BYTE_FUEL: u64 = 100;
const ENTRY_FUEL: u64 = 50_000;
/// The cost of giving up a place to wait for a body, and of taking it again.
const ABSENCE_FUEL: u64 = 50_000;
/// Number of entries of a list that are read, converted or written before others take their turn, and the number of
/// bytes of such entries: work that takes a processor 0.1 to 0.2 ms.
const PIECE_ENTRIES: usize = 32;
const PIECE_ENTRY_BYTES: usize = 16 * 1024;
/// A body of up to this many bytes is parsed in less than half a millisecond, which is not worth a turn.
const PIECE_BYTES: usize = 64 * 1024;
/// Weight of a network, in callers.
const NETWORK_WEIGHT: u64 = 8;

/// A party in the turns of requests: a caller, or all callers of an address that are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) name: Arc<str>,
    /// Number of others that it counts for.
    pub(crate) weight: u64,
}

/// The tenant of a request, and its use so far. The tenant is charged when the request ends.
///
/// It is in the extensions of every request that a [`crate::serve::Server`] serves. Clones share what they count.
#[derive(Clone, Debug, Default)]
pub struct Usage(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    fuel: AtomicU64,
    /// The tenant of earlier requests with the same credential.
    known: Option<Tenant>,
    caller: OnceLock<Arc<str>>,
    is_network: AtomicBool,
    /// The owner charged for the request; `None` outside of a server.
    owner: Option<Owner>,
    /// The turns for long work; `None` outside of a server.
    long_work: Option<Arc<LongWork>>,
}

/// A turn for work that takes a processor for long, until it is dropped.
///
/// While it lasts, no other work of this kind of the same owner is done, and little of others.
#[derive(Debug)]
pub struct LongTurn<'a> {
    usage: &'a Usage,
    piece: Option<OwnerTurn>,
    /// Number of entries of this piece that were begun, and their bytes.
    entries: usize,
    bytes: usize,
}

impl Tenant {
    /// A tenant that counts for itself alone.
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), weight: 1 }
    }

    /// The bearer of a token; the user whose gateway or component bears it.
    pub(crate) fn of(Claims { iss, kind, sub, owner, .. }: &Claims) -> Self {
        // None of them contains a line feed.
        match owner {
            Some(user_id) => Self::new(format!("{iss}\nuser\n{user_id}")),
            None => Self::new(format!("{iss}\n{kind}\n{sub}")),
        }
    }
}

impl Usage {
    /// Returns the usage of a request, with its tenant if the caller is known, and with the turns and the owner for
    /// long work.
    pub(crate) fn of(known: Option<Tenant>, long_work: Option<(Arc<LongWork>, Owner)>) -> Self {
        let (long_work, owner) = long_work.unzip();
        Self(Arc::new(Counted { known, owner, long_work, ..Counted::default() }))
    }

    /// The usage of a part of the request, which is charged when the part ends.
    pub(crate) fn of_part(&self) -> Self {
        let Counted { known, caller, owner, long_work, .. } = &*self.0;
        let (known, caller) = (known.clone(), caller.clone());
        let (owner, long_work) = (owner.clone(), long_work.clone());
        Self(Arc::new(Counted { known, caller, owner, long_work, ..Counted::default() }))
    }

    /// The usage of something else than a request, which is charged to this owner.
    pub fn of_owner(owner: Owner) -> Self {
        Self(Arc::new(Counted { owner: Some(owner), ..Counted::default() }))
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

    /// Returns the owner charged for the request; `None` outside of a server.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_ref()
    }

    /// Adds entries that are read from the store.
    pub fn add_entries(&self, entries: usize) {
        self.add_fuel(entries_fuel(entries));
    }

    /// Waits until another list of its owner may be in memory: until the turn is dropped, which should be when the
    /// response has been made. `None` outside of a server.
    pub async fn turn_for_list(&self) -> Option<OwnerTurn> {
        self.0.long_work.as_ref()?.lists.take(self.owner()?).await
    }

    /// Waits for a turn to read, convert or write the entries of a list; call [`LongTurn::next_entry`] before each of
    /// them. Adds nothing. Nobody may wait for another turn meanwhile.
    pub async fn turn_for_entries(&self) -> LongTurn<'_> {
        self.turn(entries_fuel(PIECE_ENTRIES)).await
    }

    /// Waits for a turn to parse this many bytes, if there are so many that it takes long. Adds nothing.
    pub async fn turn_for_bytes(&self, bytes: usize) -> Option<LongTurn<'_>> {
        if bytes <= PIECE_BYTES { None } else { Some(self.turn(BYTE_FUEL.saturating_mul(bytes as u64)).await) }
    }

    /// Converts all entries of a list in pieces that take turns with the long work of other owners.
    pub async fn map_in_pieces<T, R>(&self, entries: Vec<T>, mut convert: impl FnMut(T) -> R) -> Vec<R> {
        let mut turn = self.turn_for_entries().await;
        let mut converted = Vec::with_capacity(entries.len());
        for entry in entries {
            turn.next_entry().await;
            converted.push(convert(entry));
        }
        converted
    }

    async fn turn(&self, cost: u64) -> LongTurn<'_> {
        LongTurn { usage: self, piece: self.piece(cost).await, entries: 0, bytes: 0 }
    }

    /// Waits for the turn of a piece of work. `None` outside of a server, which bounds the number of waiting requests.
    async fn piece(&self, fuel: u64) -> Option<OwnerTurn> {
        let turns = &self.0.long_work.as_ref()?.pieces;
        turns.take_costing(self.owner()?, fuel / FUEL_PER_MICROSECOND).await
    }

    pub(crate) fn add_absence(&self) {
        self.add_fuel(ABSENCE_FUEL);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.add_fuel(BYTE_FUEL.saturating_mul(bytes));
    }

    /// Returns the cost of the whole request for its tenant, in fuel.
    pub(crate) fn cost(&self) -> u64 {
        // Whoever sends wrong credentials makes us verify each of them.
        let is_unknown = self.0.caller.get().is_none() && self.0.known.is_none();
        let unknown = if is_unknown { UNKNOWN_CALLER_FUEL } else { 0 };
        self.fuel().saturating_add(REQUEST_FUEL + unknown)
    }

    /// Returns the fuel added so far.
    pub fn fuel(&self) -> u64 {
        self.0.fuel.load(Ordering::Relaxed)
    }

    /// The caller, once it was verified.
    pub(crate) fn caller(&self) -> Option<Tenant> {
        let known_weight = self.0.known.as_ref().map_or(1, |known| known.weight);
        let weight = if self.0.is_network.load(Ordering::Relaxed) { NETWORK_WEIGHT } else { known_weight };
        self.0.caller.get().map(|name| Tenant { name: Arc::clone(name), weight })
    }
}

impl LongTurn<'_> {
    /// Begins the next entry of a list. After some, other owners and all tasks that are ready go first.
    pub async fn next_entry(&mut self) {
        if self.entries == PIECE_ENTRIES || self.bytes >= PIECE_ENTRY_BYTES {
            drop(self.piece.take());
            tokio::task::yield_now().await;
            self.piece = self.usage.piece(entries_fuel(PIECE_ENTRIES)).await;
            (self.entries, self.bytes) = (0, 0);
        }
        self.entries += 1;
    }

    /// Adds bytes that an entry has taken, so that the piece ends earlier.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

fn entries_fuel(entries: usize) -> u64 {
    ENTRY_FUEL.saturating_mul(entries as u64)
}

impl<S: Sync> FromRequestParts<S> for Usage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::in_extensions(&parts.extensions))
    }
}

/// Clients do not see it.
impl OperationInput for Usage {}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;
    use crate::ledger::{BudgetSettings, Ledger};

    fn usage_of(ledger: &Ledger, name: &str) -> Usage {
        Usage::of(None, Some((Arc::clone(&ledger.long_work), Owner::User(name.into()))))
    }

    #[test]
    fn a_component_counts_as_the_user_to_whom_it_belongs() {
        let tenant = |claims: serde_json::Value| Tenant::of(&serde_json::from_value(claims).unwrap());
        let token =
            |kind: &str, sub: &str| serde_json::json!({"iss": "a", "sub": sub, "type": kind, "iat": 0, "exp": 1});
        let (user_id, mut component) = ("0102030405060708090a0b0c", token("router", "hers"));
        assert_ne!(tenant(component.clone()), tenant(token("user", user_id)), "the operator's own");
        component["owner"] = user_id.into();
        assert_eq!(tenant(component), tenant(token("user", user_id)));
    }

    #[tokio::test]
    async fn one_owner_has_few_lists_in_memory_and_leaves_some_to_others() {
        let ledger = Ledger::new(&BudgetSettings::default());
        let (large, small) = (usage_of(&ledger, "large"), usage_of(&ledger, "small"));
        let mut lists = Vec::new();
        while let Some(Some(turn)) = large.turn_for_list().now_or_never() {
            lists.push(turn);
        }
        assert_eq!(lists.len(), 4);
        assert!(small.turn_for_list().now_or_never().is_some());
        lists.pop();
        assert!(large.turn_for_list().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_piece_ends_after_some_entries_or_bytes() {
        let ledger = Ledger::new(&BudgetSettings::default());
        let usage = usage_of(&ledger, "large");
        for (bytes, entries) in [(0, PIECE_ENTRIES), (PIECE_ENTRY_BYTES / 4, 4), (PIECE_ENTRY_BYTES * 2, 1)] {
            let mut turn = usage.turn_for_entries().await;
            for _ in 0..entries {
                turn.next_entry().now_or_never().expect("the piece goes on");
                turn.add_bytes(bytes);
            }
            assert!(turn.next_entry().now_or_never().is_none(), "others go first after {entries} entries");
        }
    }

    #[tokio::test]
    async fn one_owner_does_one_piece_at_a_time() {
        let ledger = Ledger::new(&BudgetSettings::default());
        let usages: Vec<_> = (0..64).map(|_| usage_of(&ledger, "large")).collect();
        let first = usages[0].turn_for_entries().await;
        let mut others: Vec<_> = usages[1..].iter().map(|usage| Box::pin(usage.turn_for_entries())).collect();
        for other in &mut others {
            assert!(poll!(other.as_mut()).is_pending());
        }
        assert!(usages[0].turn_for_bytes(1000).await.is_none(), "what is small takes no turn");
        drop(first);
        let mut begun = 0;
        for other in &mut others {
            begun += usize::from(poll!(other.as_mut()).is_ready());
        }
        // The turn of whoever is ready ends with it.
        assert!(begun >= 1);
    }
}
