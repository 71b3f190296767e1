//! A budget: the use of one resource, in total and by owner.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use types::{Kind, Kinded};

use super::{
    Owner,
    metrics::{self, Sample},
};

/// A single owner may have at most this many times what is left for all: three quarters of an otherwise unused total.
const SHARE_OF_ROOM: u64 = 3;

/// Limited resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Records in the store, in bytes.
    StoredBytes,
    /// Memory of sessions, and of messages that wait in them, in bytes.
    QueuedBytes,
    /// Bodies of requests that have not been read completely, in bytes.
    BodyBytes,
    /// Responses that have not been sent completely, in bytes.
    ResponseBytes,
    /// Open connections to the HTTP and gRPC listeners.
    HttpConnections,
    /// Open connections to the MQTT broker.
    MqttConnections,
    /// Messages on their way to webhooks and other receivers.
    Deliveries,
    /// Host names that are being resolved.
    LookUps,
    /// Downlinks that are on their way to the queues of their devices.
    Downlinks,
    /// Pieces of work that take a processor for long.
    LongWork,
    /// Large lists in memory.
    Lists,
    /// Passwords that are being hashed.
    PasswordChecks,
    /// Questions to an account service about credentials.
    Questions,
    /// Live views that are open in the console.
    LiveViews,
}

/// The size of a budget, in the unit of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum of all owners together.
    pub total: u64,
    /// Maximum of one owner.
    pub owner_max: u64,
    /// Amount that an owner may have even if others use up the total, so that many large owners never refuse a small
    /// one.
    pub owner_min: u64,
}

/// The use of one resource, in total and by owner.
#[derive(Debug)]
pub struct Budget {
    pub(super) resource: Resource,
    pub(super) limits: Limits,
    state: Mutex<BudgetUse>,
}

#[derive(Debug, Default)]
pub(super) struct BudgetUse {
    pub(super) used: u64,
    pub(super) owners: HashMap<Owner, u64>,
}

/// An owner's use of a budget, until it is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    owner: Owner,
    amount: u64,
}

/// An owner has used up its share of a budget. The owner is not named: others may read the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the budget of {} is used up: its owner has {used} and asks for {asked} more, and may have {share} at the moment; \
     {}",
    .resource.noun(), .resource.remedy()
)]
pub struct Exceeded {
    /// The resource that is used up.
    pub resource: Resource,
    /// Amount that the owner uses already.
    pub used: u64,
    /// Amount that was refused.
    pub asked: u64,
    /// Amount that the owner may use at the moment.
    pub share: u64,
}

impl Resource {
    /// Its name in settings and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::StoredBytes => "stored_bytes",
            Self::QueuedBytes => "queued_bytes",
            Self::BodyBytes => "body_bytes",
            Self::ResponseBytes => "response_bytes",
            Self::HttpConnections => "http_connections",
            Self::MqttConnections => "mqtt_connections",
            Self::Deliveries => "deliveries",
            Self::LookUps => "look_ups",
            Self::Downlinks => "downlinks",
            Self::LongWork => "long_work",
            Self::Lists => "lists",
            Self::PasswordChecks => "password_checks",
            Self::Questions => "questions",
            Self::LiveViews => "live_views",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::StoredBytes => "stored bytes",
            Self::QueuedBytes => "bytes of sessions and waiting messages",
            Self::BodyBytes => "bytes of unfinished bodies",
            Self::ResponseBytes => "bytes of unread responses",
            Self::HttpConnections => "HTTP connections",
            Self::MqttConnections => "MQTT connections",
            Self::Deliveries => "deliveries in flight",
            Self::LookUps => "look-ups of host names",
            Self::Downlinks => "downlinks being processed",
            Self::LongWork => "pieces of long work",
            Self::Lists => "large lists",
            Self::PasswordChecks => "passwords being checked",
            Self::Questions => "questions about credentials",
            Self::LiveViews => "live views",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::StoredBytes => "delete something, or ask the operator for more",
            Self::QueuedBytes => "read what waits, or end sessions that are not used",
            Self::BodyBytes | Self::ResponseBytes => "finish other requests first, then try again",
            Self::HttpConnections | Self::MqttConnections => "close other connections first",
            Self::Downlinks => "publish fewer at once",
            Self::LiveViews => "close another one first",
            Self::Deliveries | Self::LookUps => "the service tries again by itself",
            Self::LongWork | Self::Lists | Self::PasswordChecks | Self::Questions => "it waits for its turn",
        }
    }
}

impl Kinded for Exceeded {
    fn kind(&self) -> Kind {
        match self.resource {
            Resource::StoredBytes => Kind::Full,
            _ => Kind::Exhausted,
        }
    }
}

impl Limits {
    /// Returns the amount that one owner may have while all have `used`.
    pub(super) fn share(self, used: u64) -> u64 {
        let room = self.total.saturating_sub(used);
        room.saturating_mul(SHARE_OF_ROOM).min(self.owner_max).max(self.owner_min.min(self.owner_max))
    }
}

impl Budget {
    /// A budget of which nothing is used.
    pub fn new(resource: Resource, limits: Limits) -> Self {
        Self { resource, limits, state: Mutex::default() }
    }

    /// Charges an owner with `amount`, unless that exceeds its share.
    pub fn charge(self: &Arc<Self>, owner: &Owner, amount: u64) -> Result<Charge, Exceeded> {
        self.take(owner, amount).inspect_err(|_| metrics::refused(self.resource))?;
        Ok(Charge { budget: Arc::clone(self), owner: owner.clone(), amount })
    }

    /// Returns the amount that all owners use.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// Returns the amount that any one owner may use at the moment, for work that can wait. It is 0 once the total is
    /// used up, even for owners below their minimum.
    pub(super) fn share_of_room(&self) -> u64 {
        let used = self.lock().used;
        if used < self.limits.total { self.limits.share(used) } else { 0 }
    }

    /// Returns the values that the metrics report.
    pub(super) fn sample(&self) -> Sample {
        let state = self.lock();
        let largest = state.owners.values().max().copied().unwrap_or_default();
        let part = largest as f64 / self.limits.share(state.used) as f64;
        Sample { resource: self.resource, total: self.limits.total, used: state.used, nearest: part }
    }

    /// Replaces a part of an owner's use, even if it exceeds its share then.
    pub(super) fn replace(&self, owner: &Owner, before: u64, after: u64) {
        if before > after {
            return self.give_back(owner, before - after);
        }
        if before < after {
            let mut state = self.lock();
            state.used += after - before;
            *state.owners.entry(owner.clone()).or_default() += after - before;
        }
    }

    /// Takes a part for an owner, unless that exceeds its share. The caller counts the refusal.
    pub(super) fn take(&self, owner: &Owner, amount: u64) -> Result<(), Exceeded> {
        let mut state = self.lock();
        let used = state.owners.get(owner).copied().unwrap_or_default();
        let share = self.limits.share(state.used);
        if used.saturating_add(amount) > share {
            return Err(Exceeded { resource: self.resource, used, asked: amount, share });
        }
        state.used += amount;
        match state.owners.get_mut(owner) {
            Some(used) => *used += amount,
            None => _ = state.owners.insert(owner.clone(), amount),
        }
        Ok(())
    }

    fn give_back(&self, owner: &Owner, amount: u64) {
        let mut state = self.lock();
        state.used = state.used.saturating_sub(amount);
        if let Some(used) = state.owners.get_mut(owner) {
            *used = used.saturating_sub(amount);
            if *used == 0 {
                state.owners.remove(owner);
            }
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BudgetUse> {
        // Nothing that runs under this lock leaves it half changed.
        self.state.lock()
    }
}

impl Charge {
    /// Charges its owner with more, unless that exceeds its share.
    pub fn grow(&mut self, more: u64) -> Result<(), Exceeded> {
        self.try_grow(more).inspect_err(|_| metrics::refused(self.budget.resource))
    }

    /// Like [`Self::grow`], for callers that can do with less: a refusal is not counted.
    pub fn try_grow(&mut self, more: u64) -> Result<(), Exceeded> {
        self.budget.take(&self.owner, more)?;
        self.amount += more;
        Ok(())
    }

    /// Gives a part back.
    pub fn shrink(&mut self, less: u64) {
        let less = less.min(self.amount);
        self.budget.give_back(&self.owner, less);
        self.amount -= less;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(&self.owner, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 100, owner_max: 90, owner_min: 2 };

    fn budget() -> Arc<Budget> {
        Arc::new(Budget::new(Resource::Deliveries, LIMITS))
    }

    fn user(name: &str) -> Owner {
        Owner::User(name.into())
    }

    /// Charges as often as it may.
    fn fill(budget: &Arc<Budget>, owner: &Owner) -> Vec<Charge> {
        std::iter::from_fn(|| budget.charge(owner, 1).ok()).collect()
    }

    #[test]
    fn the_first_owner_may_have_most_and_each_further_one_less() {
        let budget = budget();
        let held: Vec<_> = ["a", "b", "c"].map(|name| fill(&budget, &user(name))).into_iter().collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [75, 19, 5]);
    }

    #[test]
    fn a_small_owner_is_not_refused_when_others_use_up_the_total() {
        let budget = budget();
        let _large: Vec<_> = (0..20).map(|name| fill(&budget, &user(&name.to_string()))).collect();
        assert!(budget.used() >= LIMITS.total);
        let small = fill(&budget, &user("small"));
        assert_eq!(small.len(), 2);
    }

    #[test]
    fn what_is_given_back_can_be_charged_again() {
        let budget = budget();
        let mut charge = budget.charge(&user("a"), 60).unwrap();
        assert!(charge.grow(31).is_err());
        charge.shrink(50);
        charge.grow(30).unwrap();
        assert_eq!(budget.usage(Some(&user("a"))).owners[0].used, 40);
        drop(charge);
        let usage = budget.usage(None);
        assert_eq!((usage.used, usage.owners), (0, Vec::new()), "an owner without charges is forgotten");
    }

    #[test]
    fn a_refusal_names_the_budget_and_not_its_owner() {
        let budget = budget();
        let text = budget.charge(&user("alice"), 91).unwrap_err().to_string();
        assert!(text.contains("deliveries in flight") && !text.contains("alice"), "{text}");
    }
}
