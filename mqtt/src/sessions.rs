//! The connections that are open now: how many there may be, and which must end.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use types::{AppId, Credential};

use crate::{
    authenticator::{Gate, Refusal},
    scope::Tenant,
};
use crate::metrics;

/// How many credentials are checked at the same time.
const CHECKS_MAX: usize = 16;

/// Every connection, by application and by number.
pub(crate) struct Live {
    per_application_max: usize,
    next: AtomicU64,
    connections: Mutex<HashMap<AppId, HashMap<u64, Connection>>>,
}

struct Connection {
    tenant: Tenant,
    credential: Credential,
    ended: CancellationToken,
}

/// A connection's place among the others; given back when it is dropped.
pub(crate) struct Place {
    live: Arc<Live>,
    app_id: AppId,
    number: u64,
    /// Cancelled when the connection must end.
    pub(crate) ended: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::mqtt_disconnected();
        let mut connections = self.live.connections();
        if let Some(own) = connections.get_mut(&self.app_id) {
            own.remove(&self.number);
            if own.is_empty() {
                connections.remove(&self.app_id);
            }
        }
    }
}

impl Live {
    /// Takes in up to `per_application_max` connections of each application.
    pub(crate) fn new(per_application_max: usize) -> Self {
        Self { per_application_max, next: AtomicU64::new(0), connections: Mutex::default() }
    }

    /// Takes a connection in, unless its application has too many already.
    pub(crate) fn enter(self: &Arc<Self>, tenant: Tenant, credential: Credential) -> Option<Place> {
        let app_id = tenant.app_id.clone();
        let mut connections = self.connections();
        let own = connections.entry(app_id.clone()).or_default();
        if own.len() >= self.per_application_max {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let ended = CancellationToken::new();
        own.insert(number, Connection { tenant, credential, ended: ended.clone() });
        metrics::mqtt_connected();
        Some(Place { live: Arc::clone(self), app_id, number, ended })
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        self.connections().values().map(HashMap::len).sum()
    }

    /// Ends the connections of an application.
    pub(crate) fn end(&self, app_id: &AppId) {
        self.end_where(app_id, |_| true);
    }

    /// Asks again about every credential, and ends the connections of those that changed or are gone.
    ///
    /// A credential that cannot be checked now stays: an account service that is away must not cut everyone off.
    pub(crate) async fn check(&self, gate: &dyn Gate) {
        stream::iter(self.credentials())
            .for_each_concurrent(CHECKS_MAX, |(app_id, credential)| async move {
                let now = match gate.claims(&app_id, &credential).await {
                    Ok(claims) => Some(Tenant::new(app_id.clone(), &claims)),
                    Err(Refusal::Invalid) => None,
                    Err(Refusal::Unavailable) => return,
                };
                self.end_where(&app_id, |it| it.credential == credential && Some(&it.tenant) != now.as_ref());
            })
            .await;
    }

    /// Each credential once, however many connections use it.
    fn credentials(&self) -> HashSet<(AppId, Credential)> {
        let connections = self.connections();
        let all = connections.values().flat_map(HashMap::values);
        all.map(|it| (it.tenant.app_id.clone(), it.credential.clone())).collect()
    }

    fn end_where(&self, app_id: &AppId, matches: impl Fn(&Connection) -> bool) {
        let connections = self.connections();
        let own = connections.get(app_id).into_iter().flat_map(HashMap::values);
        own.filter(|connection| matches(connection)).for_each(|connection| connection.ended.cancel());
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<AppId, HashMap<u64, Connection>>> {
        // A panic elsewhere cannot leave a map half changed.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
