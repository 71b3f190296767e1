//! The open connections of a service: the share of an address, and the choice of one to close when there are too many.

use std::{collections::HashMap, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{ServeSettings, activity::Activity, metrics};
use crate::ledger::{Budget, Charge, Ledger, Limits, Owner, Resource};

/// Number of connections that an address may have even if others have all there are: some of those are closed for it.
const PER_ADDRESS_MIN: u64 = 64;
/// Minimum idle time of a connection that is closed for another of an address that has as many: a new one is about to
/// be used.
const IDLE_MIN: Duration = Duration::from_secs(1);
/// Time after which another connection is looked for that can be closed.
const RETRY: Duration = Duration::from_millis(100);
/// Time after which a connection is closed although a request runs on it.
const BUSY_AFTER: Duration = Duration::from_secs(1);

/// The open connections of a service.
pub(super) struct OpenConnections {
    places: Arc<Semaphore>,
    budget: Arc<Budget>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    of_owners: HashMap<Owner, HashMap<u64, Arc<Activity>>>,
    next: u64,
}

/// An open connection, until it is dropped.
pub(super) struct OpenConnection {
    pub(super) activity: Arc<Activity>,
    connections: Arc<OpenConnections>,
    owner: Owner,
    number: u64,
    _charge: Charge,
    _place: OwnedSemaphorePermit,
}

impl OpenConnections {
    /// Returns an empty set of connections.
    pub(super) fn new(settings: &ServeSettings, ledger: &Ledger) -> Arc<Self> {
        let total = settings.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        let owner_max = settings.connections_per_address_max.max(1) as u64;
        let limits = Limits { total: total as u64, owner_max, owner_min: PER_ADDRESS_MIN };
        let budget = ledger.budget(Resource::HttpConnections, limits);
        Arc::new(Self { places: Arc::new(Semaphore::new(total)), budget, open: Mutex::default() })
    }

    /// Waits until another connection of this address is allowed; `None` if it has its share.
    ///
    /// While all are open, one of the address that has most is closed: the longest idle, or after a second a busy one.
    /// An address that has as many as the others is refused at once, so that nobody waits behind it; only where there are
    /// no others, it waits itself.
    pub(super) async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<OpenConnection> {
        let owner = Owner::of_address(address);
        let charge = self.budget.charge(&owner, 1).ok()?;
        let place = self.place(&owner).await?;
        let activity = Activity::new();
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.of_owners.entry(owner.clone()).or_default().insert(number, Arc::clone(&activity));
        drop(open);
        let connections = Arc::clone(self);
        Some(OpenConnection { activity, connections, owner, number, _charge: charge, _place: place })
    }

    async fn place(&self, owner: &Owner) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let mut place = pin!(Arc::clone(&self.places).acquire_owned());
        let started = Instant::now();
        loop {
            let is_closed = self.close_one(owner, started.elapsed() >= BUSY_AFTER);
            if !is_closed && self.open.lock().has_like_others(owner) {
                return None;
            }
            // What was closed needs a moment to end.
            let pause = if is_closed { BUSY_AFTER } else { RETRY };
            if let Ok(place) = timeout(pause, &mut place).await {
                return place.ok();
            }
        }
    }

    /// Closes a connection of the address that has most, if that has more than `owner`; or as many, and the connection is
    /// idle for long.
    fn close_one(&self, owner: &Owner, busy_too: bool) -> bool {
        let mut open = self.open.lock();
        let own = open.of_owners.get(owner).map_or(0, HashMap::len);
        let candidates = open.of_owners.iter().filter_map(|(owner, of_owner)| {
            let idle = |activity: &Activity| activity.idle().or(busy_too.then_some(Duration::ZERO));
            let idle = of_owner.iter().filter_map(|(number, activity)| Some((idle(activity)?, *number)));
            let (idle, number) = idle.max()?;
            let may_close = of_owner.len() > own || (of_owner.len() == own && idle >= IDLE_MIN);
            may_close.then_some(((of_owner.len(), idle), owner, number))
        });
        let chosen = candidates.max_by_key(|(rank, ..)| *rank).map(|(_, owner, number)| (owner.clone(), number));
        let closed = chosen.and_then(|(owner, number)| open.remove(&owner, number));
        if let Some(activity) = &closed {
            metrics::connection_closed(if activity.idle().is_some() { "idle" } else { "busy" });
            activity.close();
        }
        closed.is_some()
    }
}

impl Open {
    /// Returns true if an address has connections, and others have, too.
    fn has_like_others(&self, owner: &Owner) -> bool {
        self.of_owners.len() > 1 && self.of_owners.contains_key(owner)
    }

    fn remove(&mut self, owner: &Owner, number: u64) -> Option<Arc<Activity>> {
        let of_owner = self.of_owners.get_mut(owner)?;
        let removed = of_owner.remove(&number);
        if of_owner.is_empty() {
            self.of_owners.remove(owner);
        }
        removed
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().remove(&self.owner, self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::ledger::BudgetSettings;

    fn connections(connections_max: usize) -> Arc<OpenConnections> {
        let settings = ServeSettings { connections_max, ..ServeSettings::default() };
        OpenConnections::new(&settings, &Ledger::new(&BudgetSettings::default()))
    }

    fn address(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    /// Opens as many as the address may have while nothing is closed.
    fn fill(connections: &Arc<OpenConnections>, address: IpAddr) -> Vec<OpenConnection> {
        std::iter::from_fn(|| connections.admit(address).now_or_never().flatten()).collect()
    }

    /// Returns true if a connection was told to close.
    fn is_closed(connection: &OpenConnection) -> bool {
        connection.activity.closed().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_more_are_open_the_fewer_an_address_may_have() {
        let connections = connections(4096);
        let held: Vec<_> = (0..4).map(|number| fill(&connections, address(number))).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [2048, 1536, 384, 96]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_one_of_the_largest_is_closed_for_a_newcomer() {
        let connections = connections(8);
        let small = fill(&connections, address(1)).into_iter().take(2).collect::<Vec<_>>();
        tokio::time::advance(IDLE_MIN).await;
        let mut large = fill(&connections, address(2));
        assert_eq!(large.len(), 6);
        let _running = large[0].activity.begin_request();
        tokio::time::advance(IDLE_MIN).await;
        drop(large[1].activity.begin_request());
        tokio::time::advance(IDLE_MIN).await;
        let mut newcomer = pin!(connections.admit(address(3)));
        assert!((&mut newcomer).now_or_never().is_none());
        let closed: Vec<_> = large.iter().map(is_closed).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
        assert!(!closed[0] && !closed[1], "one is busy, and one was used last");
        large.remove(closed.iter().position(|closed| *closed).unwrap());
        assert!(newcomer.await.is_some());
        assert!(!small.iter().any(is_closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_address_closes_none_of_a_smaller_one() {
        let connections = connections(4);
        let small = fill(&connections, address(1)).into_iter().take(1).collect::<Vec<_>>();
        let large = fill(&connections, address(2));
        let _running: Vec<_> = large.iter().map(|connection| connection.activity.begin_request()).collect();
        tokio::time::advance(2 * IDLE_MIN).await;
        assert!(connections.admit(address(2)).await.is_none(), "refused, so that others are accepted");
        assert!(!is_closed(&small[0]));
    }

    /// Whoever has many addresses can send requests on all of them.
    #[tokio::test(start_paused = true)]
    async fn connections_of_many_addresses_that_are_hardly_idle_lock_nobody_out() {
        let connections = connections(8);
        let open = |number| connections.admit(address(number)).now_or_never().flatten().unwrap();
        let mut held: Vec<_> = (0..8).map(|number| open(number / 2)).collect();
        let mut newcomer = pin!(connections.admit(address(8)));
        assert!((&mut newcomer).now_or_never().is_none());
        held.retain(|connection| !is_closed(connection));
        assert_eq!(held.len(), 7);
        let newcomer = newcomer.await.unwrap();

        let _running: Vec<_> = held.iter().map(|connection| connection.activity.begin_request()).collect();
        let _also_running = newcomer.activity.begin_request();
        let mut second = pin!(connections.admit(address(9)));
        assert!(timeout(BUSY_AFTER + RETRY / 2, &mut second).await.is_err());
        held.retain(|connection| !is_closed(connection));
        assert_eq!(held.len(), 6, "one of them is closed although it is busy");
        assert!(second.await.is_some());
    }
}
