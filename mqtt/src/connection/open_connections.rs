//! The open connections: how many each application may have, and which to end because of their credential.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use server::ledger::{Budget, Charge, Exceeded, Owner};
use types::{AppId, Credential};

use crate::{
    Authenticator, Refusal, Router,
    access::permissions::Permissions,
    metrics,
    session::disconnect::{Disconnect, DisconnectReason},
};

/// Maximum number of credentials checked at the same time.
const CHECKS_MAX: usize = 16;

/// The open connections, by application and number.
pub(crate) struct OpenConnections {
    budget: Arc<Budget>,
    per_application_max: usize,
    next: AtomicU64,
    open: Mutex<HashMap<AppId, HashMap<u64, Connection>>>,
}

struct Connection {
    /// The id of the session that it uses.
    session: Arc<str>,
    permissions: Permissions,
    credential: Credential,
    disconnect: Disconnect,
    /// Charges the owner of the application.
    place: Charge,
}

/// Reasons for refusing a client another connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("the application has as many MQTT connections as it may have: close others first")]
    OfApplication,
    #[error(transparent)]
    OfOwner(#[from] Exceeded),
}

/// Keeps a connection registered until it is dropped.
pub(crate) struct OpenConnection {
    connections: Arc<OpenConnections>,
    app_id: AppId,
    number: u64,
    pub(crate) disconnect: Disconnect,
    /// The connection that the client had before, which does not count any more, and has to end.
    pub(crate) previous: Option<Disconnect>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::disconnected();
        let mut open = self.connections.open.lock();
        if let Some(connections) = open.get_mut(&self.app_id) {
            connections.remove(&self.number);
            if connections.is_empty() {
                open.remove(&self.app_id);
            }
        }
    }
}

impl OpenConnections {
    pub(crate) fn new(budget: Arc<Budget>, per_application_max: usize) -> Self {
        Self { budget, per_application_max, next: AtomicU64::new(0), open: Mutex::default() }
    }

    /// Returns the budget of connections by owner, or by address until a client has presented a credential.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// A number that is unique in this process.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers the connection of a client under its `number`, and charges `owner` with it, unless its application or
    /// that owner has as many as they may have. A connection that already uses the `session` makes room: the client may
    /// have lost it without a word.
    pub(crate) fn open(
        self: &Arc<Self>,
        number: u64,
        session: &Arc<str>,
        (permissions, credential): (Permissions, Credential),
        owner: &Owner,
    ) -> Result<OpenConnection, TooMany> {
        let app_id = permissions.app_id.clone();
        let mut open = self.open.lock();
        let present = open.get(&app_id);
        let mut uses = present.into_iter().flatten().filter(|(_, connection)| connection.session == *session);
        let previous = uses.next().map(|(number, _)| *number);
        if present.map_or(0, HashMap::len) - usize::from(previous.is_some()) >= self.per_application_max {
            return Err(TooMany::OfApplication);
        }
        let previous = previous.and_then(|previous| open.get_mut(&app_id)?.remove(&previous));
        let (previous, place) = match previous {
            Some(Connection { disconnect, place, .. }) => (Some(disconnect), place),
            None => (None, self.budget.charge(owner, 1)?),
        };
        let connections = open.entry(app_id.clone()).or_default();
        let disconnect = Disconnect::default();
        let session = Arc::clone(session);
        connections
            .insert(number, Connection { session, permissions, credential, disconnect: disconnect.clone(), place });
        metrics::connected();
        Ok(OpenConnection { connections: Arc::clone(self), app_id, number, disconnect, previous })
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().map(HashMap::len).sum()
    }

    /// Checks credentials again, as they come, and ends the connections of those that are invalid or have other rights
    /// now. What `router` keeps for their clients that are away is deleted.
    ///
    /// The authenticator decides how long a credential counts that cannot be checked.
    pub(crate) async fn check(
        &self,
        authenticator: &dyn Authenticator,
        router: &Router,
        credentials: impl Stream<Item = (AppId, Credential)>,
    ) {
        credentials
            .for_each_concurrent(CHECKS_MAX, |(app_id, credential)| async move {
                match authenticator.authenticate(&app_id, &credential, None).await {
                    Ok(claims) => {
                        let permissions = Permissions::new(app_id.clone(), &claims);
                        self.end(&app_id, &credential, |connection| {
                            (connection.permissions != permissions).then_some(DisconnectReason::Revoked)
                        });
                        router.remove_revoked(&app_id, &credential, Some(&permissions));
                    }
                    Err(Refusal::Invalid) => {
                        self.end(&app_id, &credential, |_| Some(DisconnectReason::Revoked));
                        router.remove_revoked(&app_id, &credential, None);
                    }
                    Err(Refusal::Unavailable(_)) => {
                        self.end(&app_id, &credential, |_| Some(DisconnectReason::Unconfirmed));
                    }
                }
            })
            .await;
    }

    /// The credentials of the applications that are due, each once, however many connections use it.
    pub(crate) fn credentials(&self, is_due: impl Fn(&AppId) -> bool) -> HashSet<(AppId, Credential)> {
        let open = self.open.lock();
        let due = open.iter().filter(|(app_id, _)| is_due(app_id));
        let used: HashSet<_> =
            due.flat_map(|(app_id, of)| of.values().map(move |it| (app_id, &it.credential))).collect();
        used.into_iter().map(|(app_id, credential)| (app_id.clone(), credential.clone())).collect()
    }

    /// Ends the connections of a credential for which there is a `reason`.
    fn end(&self, app_id: &AppId, credential: &Credential, reason: impl Fn(&Connection) -> Option<DisconnectReason>) {
        let open = self.open.lock();
        let connections = open.get(app_id).into_iter().flat_map(HashMap::values);
        for connection in connections.filter(|connection| connection.credential == *credential) {
            reason(connection).into_iter().for_each(|reason| connection.disconnect.end(reason));
        }
    }
}
