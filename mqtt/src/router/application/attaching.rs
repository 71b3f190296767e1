//! Gives clients sessions that are stored, and takes over those that nobody serves.

use std::{
    collections::{HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use server::ledger::Exceeded;
use store::Error;
use tokio::time::timeout;
use types::Timestamp;

use super::{ATTACH_LOCKS, Application, backlog::Unread};
use crate::session::{
    Attachment, Session, SessionOwner, SessionRequest,
    disconnect::Disconnect,
    durable::{AdoptedSessions, Claimed, Durable, LiveProcesses, WholeLog},
};

/// Maximum number of attempts to attach a session that others take or remove meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// Time that a client that wants nothing stored waits for a look into the store.
const LOOK_UP_WAIT: Duration = Duration::from_secs(1);

/// Reasons for refusing a client its session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] Error),
    /// It takes too long.
    #[error("the store did not answer in time")]
    Late,
    /// All sessions of the application are in use.
    #[error("the application has too many MQTT sessions")]
    Full,
    /// The owner of the application has more memory than its share.
    #[error(transparent)]
    Memory(#[from] Exceeded),
}

impl Application {
    /// Gives a client its session, which may be stored.
    ///
    /// Between processes, the store decides whose a session is.
    pub(in crate::router) async fn attach_stored(
        self: &Arc<Self>,
        durable: &Arc<Durable>,
        request: SessionRequest,
        disconnect: Disconnect,
        now: Timestamp,
    ) -> Result<Attachment, AttachError> {
        let _lock = self.attach_lock(&request.id).lock().await;
        if request.expiry.is_zero() && !self.has_stored(durable, &request).await? {
            if self.lock().is_crowded() {
                // A client that wants nothing stored is not refused because of the store.
                _ = timeout(LOOK_UP_WAIT, self.read_all(durable)).await;
            }
            return self.attach(request, disconnect, now);
        }
        for _ in 0..ATTEMPTS_MAX {
            let (session, session_present) = match self.usable(durable, &request, now).await? {
                Some(session) => (session, true),
                None => self.claim(durable, &request, now).await?,
            };
            self.complete(durable, &session).await?;
            let subscribers = self.lock();
            if subscribers.is_current(&session) {
                return Ok(session.attach(request.session_owner, request.expiry, disconnect, session_present));
            }
        }
        Err(AttachError::Late)
    }

    /// Returns true if the store has the session that a client wants to continue, whoever owns it. If the client
    /// wants a new one, it is deleted. Fails if the store does, or does not answer in time.
    async fn has_stored(&self, durable: &Durable, request: &SessionRequest) -> Result<bool, AttachError> {
        let id = &request.id;
        let owners = match timeout(LOOK_UP_WAIT, durable.owners(&self.app_id, std::slice::from_ref(id))).await {
            Ok(Ok(owners)) => owners,
            // It is removed here, and there when that is possible again.
            _ if request.clean => return Ok(false),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(AttachError::Late),
        };
        if owners.contains_key(id) && !request.clean {
            return Ok(true);
        }
        if owners.contains_key(id) {
            durable.delete(&self.app_id, id).await?;
        }
        self.forget_deleted(id);
        Ok(false)
    }

    /// Forgets a session that is not in the store any more.
    fn forget_deleted(&self, id: &str) {
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(id).filter(|session| session.is_stored()).cloned() {
            subscribers.forget_deleted(&session);
        }
    }

    /// The session if it is here, and still this process's.
    async fn usable(
        self: &Arc<Self>,
        durable: &Arc<Durable>,
        request: &SessionRequest,
        now: Timestamp,
    ) -> Result<Option<Arc<Session>>, AttachError> {
        let found = self.session(&request.id).filter(|session| !request.clean && !session.is_expired(now));
        let Some(session) = found else { return Ok(None) };
        if let Some(version) = session.ownership.version() {
            let owners = durable.owners(&self.app_id, std::slice::from_ref(&request.id)).await?;
            if owners.get(&request.id) == Some(&version) {
                return Ok(Some(session));
            }
            self.lock().lose(&session.ownership);
            return Ok(None);
        }
        // It is connected, and was to end with its connection until now.
        self.make_room_to_store(durable, request, now).await?;
        let claimed = durable.claim(&self.app_id, &request.id, true, request.session_owner.presented.as_ref()).await?;
        let mut subscribers = self.lock();
        if !subscribers.is_current(&session) {
            return Ok(None);
        }
        session.own(claimed.owner, claimed.name, None);
        subscribers.store_all(&self.app_id, durable, &session);
        Ok(Some(session))
    }

    /// Takes the session over from whoever has it, or creates it; returns true if it was there.
    async fn claim(
        self: &Arc<Self>,
        durable: &Arc<Durable>,
        request: &SessionRequest,
        now: Timestamp,
    ) -> Result<(Arc<Session>, bool), AttachError> {
        self.finish_removal(durable, &request.id).await?;
        self.make_room_to_store(durable, request, now).await?;
        let memory = self.lock().reserve_memory(&request.session_owner)?;
        let presented = request.session_owner.presented.as_ref();
        let claimed = durable.claim(&self.app_id, &request.id, request.clean, presented).await?;
        let Claimed { owner, name, record, .. } = claimed;
        let log = if record.is_some() { durable.log(&self.app_id).await? } else { WholeLog::default() };
        let mut subscribers = self.lock();
        if let Some(old) = subscribers.sessions.get(&request.id).cloned() {
            if request.clean {
                subscribers.forget_deleted(&old);
            } else {
                subscribers.lose(&old.ownership);
            }
        }
        let id = Arc::clone(&request.id);
        let session = subscribers.insert(&self.app_id, id, (request.session_owner.clone(), memory), now);
        session.own(owner, name, record.as_ref());
        let session_present = record.is_some();
        if let Some(record) = record {
            let record = subscribers.restore(&session, record, now);
            subscribers.restore_messages(&[Unread::new(&session, &record, u64::MAX)], log.messages, |_| true);
        }
        Ok((session, session_present))
    }

    async fn make_room_to_store(
        self: &Arc<Self>,
        durable: &Arc<Durable>,
        request: &SessionRequest,
        now: Timestamp,
    ) -> Result<(), AttachError> {
        if self.lock().is_crowded() {
            // Only then it is known which sessions have no messages.
            self.read_all(durable).await?;
        }
        let has_room = self.lock().make_room_to_store(&self.app_id, &request.id, now);
        if has_room { Ok(()) } else { Err(AttachError::Full) }
    }

    /// Waits until a session that was removed is deleted in the store: until then, that has a part of it.
    async fn finish_removal(self: &Arc<Self>, durable: &Arc<Durable>, id: &str) -> Result<(), AttachError> {
        for _ in 0..ATTEMPTS_MAX {
            if !self.lock().log.is_removing(id) {
                return Ok(());
            }
            let saved = self.saved();
            self.start_saving(durable);
            _ = saved.await;
        }
        if self.lock().log.is_removing(id) { Err(AttachError::Late) } else { Ok(()) }
    }

    /// Takes over the sessions whose processes no longer live; returns the processes that own others.
    ///
    /// After an error, some may be claimed and not here: then [`Application::reclaim`] is needed.
    pub(in crate::router) async fn adopt(
        &self,
        durable: &Durable,
        live_processes: &LiveProcesses,
        now: Timestamp,
    ) -> Result<HashSet<String>, Error> {
        self.adopt_all(durable, live_processes, now, |_| false).await
    }

    /// Takes the sessions into memory that this process owns and does not have there.
    pub(in crate::router) async fn reclaim(
        &self,
        durable: &Durable,
        live_processes: &LiveProcesses,
        now: Timestamp,
    ) -> Result<(), Error> {
        // A client that is being given its session has claimed it and does not have it yet.
        let mut locks = Vec::with_capacity(ATTACH_LOCKS);
        for lock in &self.attach_locks {
            locks.push(lock.lock().await);
        }
        let misses = |id: &str| {
            let subscribers = self.lock();
            !subscribers.sessions.contains_key(id) && !subscribers.log.is_removing(id)
        };
        self.adopt_all(durable, live_processes, now, misses).await.map(drop)
    }

    async fn adopt_all(
        &self,
        durable: &Durable,
        live_processes: &LiveProcesses,
        now: Timestamp,
        misses: impl Fn(&str) -> bool,
    ) -> Result<HashSet<String>, Error> {
        let room = self.lock().room();
        let AdoptedSessions { sessions, processes } = durable.adopt(&self.app_id, live_processes, room, misses).await?;
        if sessions.is_empty() {
            return Ok(processes);
        }
        let next = self.lock().log.next;
        let next = durable.next_number(&self.app_id, next).await?;
        let mut subscribers = self.lock();
        subscribers.log.next = subscribers.log.next.max(next);
        let mut adopted = Vec::new();
        for (id, Claimed { owner, name, presented, record }) in sessions {
            // If its client has come in the meantime, it has its session.
            let Some(record) = record.filter(|_| !subscribers.sessions.contains_key(id.as_str())) else { continue };
            let session_owner = SessionOwner { presented, ..SessionOwner::default() };
            let memory = subscribers.memory.reserve_session(session_owner.session_bytes());
            let session = subscribers.add(id.into(), session_owner, memory);
            session.own(owner, name, Some(&record));
            let record = subscribers.restore(&session, record, now);
            adopted.push((session, record));
        }
        let below = subscribers.log.next;
        for (session, record) in adopted {
            subscribers.backlog.add(Unread::new(&session, &record, below));
        }
        Ok(processes)
    }

    fn attach_lock(&self, id: &str) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % ATTACH_LOCKS as u64).unwrap_or_default();
        &self.attach_locks[at]
    }
}
