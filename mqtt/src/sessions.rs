//! The open connections: how many each application may have, and which to end because of their credential.

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

use crate::{Authenticator, Refusal, metrics, permissions::Permissions};

/// How many credentials are checked at the same time.
const CHECKS_MAX: usize = 16;

/// The open sessions, by application and number.
pub(crate) struct Sessions {
    per_application_max: usize,
    next: AtomicU64,
    open: Mutex<HashMap<AppId, HashMap<u64, Session>>>,
}

struct Session {
    permissions: Permissions,
    credential: Credential,
    revoked: CancellationToken,
    unconfirmed: CancellationToken,
}

/// Keeps a session registered until it is dropped.
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    app_id: AppId,
    number: u64,
    /// Cancelled when the credential is no longer valid.
    pub(crate) revoked: CancellationToken,
    /// Cancelled when the credential has not been confirmed for too long. It may be again.
    pub(crate) unconfirmed: CancellationToken,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        metrics::disconnected();
        let mut open = self.sessions.lock();
        if let Some(sessions) = open.get_mut(&self.app_id) {
            sessions.remove(&self.number);
            if sessions.is_empty() {
                open.remove(&self.app_id);
            }
        }
    }
}

impl Sessions {
    pub(crate) fn new(per_application_max: usize) -> Self {
        Self { per_application_max, next: AtomicU64::new(0), open: Mutex::default() }
    }

    /// Registers a session, unless its application already has the maximum number of them.
    pub(crate) fn open(self: &Arc<Self>, permissions: Permissions, credential: Credential) -> Option<SessionGuard> {
        let app_id = permissions.app_id.clone();
        let mut open = self.lock();
        let sessions = open.entry(app_id.clone()).or_default();
        if sessions.len() >= self.per_application_max {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (revoked, unconfirmed) = (CancellationToken::new(), CancellationToken::new());
        let session = Session { permissions, credential, revoked: revoked.clone(), unconfirmed: unconfirmed.clone() };
        sessions.insert(number, session);
        metrics::connected();
        Some(SessionGuard { sessions: Arc::clone(self), app_id, number, revoked, unconfirmed })
    }

    /// The number of open sessions.
    pub(crate) fn count(&self) -> usize {
        self.lock().values().map(HashMap::len).sum()
    }

    /// Checks every credential again, and ends the sessions of those that are invalid or have other rights now.
    ///
    /// The authenticator decides how long a credential counts that cannot be checked.
    pub(crate) async fn check_credentials(&self, authenticator: &dyn Authenticator) {
        stream::iter(self.credentials())
            .for_each_concurrent(CHECKS_MAX, |(app_id, credential)| async move {
                match authenticator.authenticate(&app_id, &credential).await {
                    Ok(claims) => {
                        let permissions = Permissions::new(app_id.clone(), &claims);
                        self.end(&app_id, &credential, |session| {
                            (session.permissions != permissions).then_some(&session.revoked)
                        });
                    }
                    Err(Refusal::Invalid) => self.end(&app_id, &credential, |session| Some(&session.revoked)),
                    Err(Refusal::Unavailable(_)) => {
                        self.end(&app_id, &credential, |session| Some(&session.unconfirmed));
                    }
                }
            })
            .await;
    }

    /// Each credential once, however many sessions use it.
    fn credentials(&self) -> HashSet<(AppId, Credential)> {
        let open = self.lock();
        let sessions = open.values().flat_map(HashMap::values);
        sessions.map(|session| (session.permissions.app_id.clone(), session.credential.clone())).collect()
    }

    /// Ends the sessions of a credential for which `reason` has one.
    fn end(&self, app_id: &AppId, credential: &Credential, reason: impl Fn(&Session) -> Option<&CancellationToken>) {
        let open = self.lock();
        let sessions = open.get(app_id).into_iter().flat_map(HashMap::values);
        sessions
            .filter(|session| session.credential == *credential)
            .filter_map(reason)
            .for_each(CancellationToken::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AppId, HashMap<u64, Session>>> {
        // No panic can leave the map half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
