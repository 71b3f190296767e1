//! The newest messages of each destination that were delivered or given up: when, and how long it took. They are in
//! memory, in a ring for each destination. All rings have a limit; beyond it, the owner who has most of them loses one.

mod left;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use server::ledger::Owner;
use types::Timestamp;

pub use self::left::RecentDelivery;
pub(crate) use self::left::{About, FinishedDelivery, Timing};
use crate::{Settings, destination::Destination};

/// Bytes of a ring without messages, with the names that lead to it, rounded up.
const RING_BYTES: usize = 512;
/// The part of all rings that makes room at once: to choose them, it takes a look at all.
const ROOM_SHARE: usize = 16;

/// The rings of all destinations. Workers lock them once, and then only the ring of their destination.
pub(crate) struct RecentDeliveries {
    messages_max: usize,
    rings_max: usize,
    /// Orders rings by their last use.
    uses: AtomicU64,
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    owners: HashMap<Owner, HashMap<Destination, Arc<Ring>>>,
    count: usize,
}

/// The last messages that left the queue of one destination.
pub(crate) struct Ring {
    used: AtomicU64,
    /// None once others have its place: a worker then asks for another.
    messages: Mutex<Option<VecDeque<FinishedDelivery>>>,
}

impl RecentDeliveries {
    pub(crate) fn new(settings: &Settings) -> Self {
        let messages_max = settings.recent_deliveries_max;
        // A ring grows to a power of two.
        let places = messages_max.checked_next_power_of_two().unwrap_or(usize::MAX);
        let ring_bytes = places.saturating_mul(size_of::<FinishedDelivery>()).saturating_add(RING_BYTES);
        let rings_max = if messages_max == 0 { 0 } else { settings.recent_deliveries_bytes_max / ring_bytes };
        Self { messages_max, rings_max, uses: AtomicU64::new(0), rings: Mutex::default() }
    }

    /// Adds messages to the ring of a worker, which gets another if it has none, or has lost it.
    pub(crate) fn record(&self, ring: &mut Option<Arc<Ring>>, of: (&Owner, &Destination), left: &[FinishedDelivery]) {
        if left.is_empty() || self.rings_max == 0 {
            return;
        }
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        if ring.as_ref().is_none_or(|ring| !ring.add(left, used, self.messages_max)) {
            let new = self.ring(of);
            new.add(left, used, self.messages_max);
            *ring = Some(new);
        }
    }

    /// The newest message with this identity that was accepted in this time.
    pub(crate) fn find(
        &self,
        of: (&Owner, &Destination),
        identity: u64,
        accepted: (Timestamp, Option<Timestamp>),
    ) -> Option<RecentDelivery> {
        let ring = self.known(of)?;
        let messages = ring.messages();
        messages.iter().flatten().rev().find(|left| left.is(identity, accepted)).map(FinishedDelivery::shown)
    }

    /// All that is kept of a destination, the newest first.
    pub(crate) fn list(&self, of: (&Owner, &Destination)) -> Vec<RecentDelivery> {
        let Some(ring) = self.known(of) else { return Vec::new() };
        let messages = ring.messages();
        messages.iter().flatten().rev().map(FinishedDelivery::shown).collect()
    }

    /// Forgets a destination, which was deleted.
    pub(crate) fn forget(&self, (owner, destination): (&Owner, &Destination)) {
        self.rings.lock().remove(owner, destination);
    }

    fn known(&self, (owner, destination): (&Owner, &Destination)) -> Option<Arc<Ring>> {
        self.rings.lock().owners.get(owner)?.get(destination).cloned()
    }

    fn ring(&self, (owner, destination): (&Owner, &Destination)) -> Arc<Ring> {
        let mut rings = self.rings.lock();
        if let Some(ring) = rings.owners.get(owner).and_then(|of_owner| of_owner.get(destination)) {
            return ring.clone();
        }
        if rings.count >= self.rings_max {
            rings.make_room(self.rings_max.div_ceil(ROOM_SHARE));
        }
        let used = AtomicU64::new(self.uses.load(Ordering::Relaxed));
        let ring = Arc::new(Ring { used, messages: Mutex::new(Some(VecDeque::new())) });
        rings.owners.entry(owner.clone()).or_default().insert(destination.clone(), ring.clone());
        rings.count += 1;
        ring
    }
}

impl Rings {
    /// Removes so many rings, each of the owner who then has most: the one that was used least recently.
    fn make_room(&mut self, count: usize) {
        for (owner, destination) in self.least_recent(count) {
            self.remove(&owner, &destination);
        }
    }

    fn least_recent(&self, count: usize) -> Vec<(Owner, Destination)> {
        let mut owners: Vec<_> = self.owners.iter().map(|(owner, rings)| (owner, by_use(rings))).collect();
        let place = |index: usize, rings: &[(u64, &Destination)]| Some((rings.len(), Reverse(rings.last()?.0), index));
        let places = owners.iter().enumerate().filter_map(|(index, (_, rings))| place(index, rings));
        let mut places: BinaryHeap<_> = places.collect();
        let mut least_recent = Vec::with_capacity(count);
        while least_recent.len() < count
            && let Some((_, _, index)) = places.pop()
            && let Some((owner, rings)) = owners.get_mut(index)
            && let Some((_, destination)) = rings.pop()
        {
            places.extend(place(index, rings));
            least_recent.push(((*owner).clone(), destination.clone()));
        }
        least_recent
    }

    fn remove(&mut self, owner: &Owner, destination: &Destination) {
        let Some(of_owner) = self.owners.get_mut(owner) else { return };
        if let Some(ring) = of_owner.remove(destination) {
            self.count -= 1;
            *ring.messages() = None;
        }
        if of_owner.is_empty() {
            self.owners.remove(owner);
        }
    }
}

/// The rings of an owner with their last use, the least recent one last.
fn by_use(rings: &HashMap<Destination, Arc<Ring>>) -> Vec<(u64, &Destination)> {
    let mut by_use: Vec<_> = rings.iter().map(|(destination, ring)| (ring.used(), destination)).collect();
    by_use.sort_unstable_by_key(|(used, _)| Reverse(*used));
    by_use
}

impl Ring {
    /// Returns false if the ring is not kept any more.
    fn add(&self, left: &[FinishedDelivery], used: u64, messages_max: usize) -> bool {
        self.used.store(used, Ordering::Relaxed);
        let mut messages = self.messages();
        let Some(messages) = messages.as_mut() else { return false };
        for left in left {
            if messages.len() >= messages_max {
                messages.pop_front();
            }
            messages.push_back(*left);
        }
        true
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn messages(&self) -> MutexGuard<'_, Option<VecDeque<FinishedDelivery>>> {
        self.messages.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sender::SendReceipt;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn owner(name: &str) -> Owner {
        Owner::User(Arc::from(name))
    }

    fn destination(name: &str) -> Destination {
        Destination::new(&"my-app".parse().unwrap(), "webhook", name)
    }

    /// A message that was accepted and delivered at these times.
    fn left(identity: u64, accepted: i64, delivered: i64) -> FinishedDelivery {
        let dev_id = "dev-1".parse().unwrap();
        let about = About { dev_id: Some(&dev_id), event: "up", identity, accepted: at(accepted) };
        let timing = Timing { at: at(delivered), duration: Duration::from_millis(34) };
        FinishedDelivery::new(about, (Ok(SendReceipt { status: Some(200) }), 2), timing)
    }

    fn found(
        recent: &RecentDeliveries,
        of: (&Owner, &Destination),
        (identity, until): (u64, Option<i64>),
    ) -> Option<Timestamp> {
        recent.find(of, identity, (at(1000), until.map(at))).map(|delivery| delivery.at)
    }

    fn recent(messages: usize, rings: usize) -> RecentDeliveries {
        RecentDeliveries { messages_max: messages, rings_max: rings, ..RecentDeliveries::new(&Settings::default()) }
    }

    #[test]
    fn the_newest_messages_of_a_destination_are_kept_as_they_were_delivered() {
        let (recent, alice, hook) = (recent(2, 1), owner("alice"), destination("hook"));
        let (of, mut ring) = ((&alice, &hook), None);
        recent.record(&mut ring, of, &[left(1, 1000, 1001)]);
        recent.record(&mut ring, of, &[left(2, 2000, 2001), left(2, 3000, 3001)]);
        let list = recent.list(of);
        let expected = RecentDelivery {
            dev_id: Some("dev-1".parse().unwrap()),
            event: "up",
            accepted: at(3000),
            at: at(3001),
            is_delivered: true,
            status: Some(200),
            attempts: 2,
            duration: Duration::from_millis(34),
        };
        assert_eq!((list.len(), list.first()), (2, Some(&expected)));
        assert_eq!(found(&recent, of, (1, None)), None, "the oldest one made room");
        assert_eq!(found(&recent, of, (2, None)), Some(at(3001)));
        assert_eq!(found(&recent, of, (2, Some(2500))), Some(at(2001)), "a later one has the same body");
        assert_eq!(found(&recent, of, (2, Some(999))), None);
    }

    #[test]
    fn messages_without_an_identity_are_listed_and_not_taken_for_others() {
        let (recent, alice, hook) = (recent(2, 1), owner("alice"), destination("hook"));
        recent.record(&mut None, (&alice, &hook), &[left(0, 1000, 1001)]);
        assert_eq!(recent.list((&alice, &hook)).len(), 1);
        assert_eq!(found(&recent, (&alice, &hook), (0, None)), None);
    }

    #[test]
    fn whoever_has_most_rings_loses_the_one_that_was_used_least_recently() {
        let (recent, alice, bobby) = (recent(2, 3), owner("alice"), owner("bobby"));
        let names = ["first", "second", "third", "fourth"].map(destination);
        let (mut first, mut second) = (None, None);
        recent.record(&mut second, (&bobby, &names[3]), &[left(1, 1000, 1001)]);
        recent.record(&mut first, (&alice, &names[0]), &[left(1, 1000, 1001)]);
        recent.record(&mut None, (&alice, &names[1]), &[left(1, 1000, 1001)]);
        recent.record(&mut first, (&alice, &names[0]), &[left(2, 1000, 1001)]);
        recent.record(&mut None, (&alice, &names[2]), &[left(1, 1000, 1001)]);
        let lengths = names.each_ref().map(|name| recent.list((&alice, name)).len());
        assert_eq!((lengths, recent.list((&bobby, &names[3])).len()), ([2, 0, 1, 0], 1));
        // A worker whose ring is gone gets another.
        recent.forget((&alice, &names[0]));
        recent.record(&mut first, (&alice, &names[0]), &[left(3, 1000, 1001)]);
        assert_eq!(recent.list((&alice, &names[0])).len(), 1);
    }

    #[test]
    fn room_is_made_for_several_rings_and_not_by_who_has_few() {
        let (recent, alice, bobby) = (recent(1, 32), owner("alice"), owner("bobby"));
        let names: Vec<_> = (0..31).map(|number| destination(&format!("hook-{number}"))).collect();
        recent.record(&mut None, (&bobby, &names[0]), &[left(1, 1000, 1001)]);
        for name in &names {
            recent.record(&mut None, (&alice, name), &[left(1, 1000, 1001)]);
        }
        recent.record(&mut None, (&bobby, &names[1]), &[left(1, 1000, 1001)]);
        let kept = |owner: &Owner| names.iter().filter(|name| !recent.list((owner, *name)).is_empty()).count();
        assert_eq!([&alice, &bobby].map(kept), [29, 2]);
        let is_kept = |number: usize| !recent.list((&alice, &names[number])).is_empty();
        assert_eq!([0, 1, 2].map(is_kept), [false, false, true]);
    }

    #[test]
    fn rings_stay_within_their_bytes() {
        assert_eq!(size_of::<FinishedDelivery>(), 72);
        let settings = |messages, bytes| Settings {
            recent_deliveries_max: messages,
            recent_deliveries_bytes_max: bytes,
            ..Settings::default()
        };
        assert_eq!(RecentDeliveries::new(&settings(100, 1 << 20)).rings_max, (1 << 20) / (128 * 72 + RING_BYTES));
        for none in [settings(0, 1 << 20), settings(100, 0), settings(usize::MAX, 1 << 20)] {
            let (recent, alice, hook) = (RecentDeliveries::new(&none), owner("alice"), destination("hook"));
            recent.record(&mut None, (&alice, &hook), &[left(1, 1000, 1001)]);
            assert!(recent.list((&alice, &hook)).is_empty());
        }
    }
}
