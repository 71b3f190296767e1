//! The sessions of one application, and who subscribed to what.

mod log;
mod saving;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use store::Version;
use tokio::sync::oneshot;
use types::{AppId, Timestamp};

use self::log::{Append, Log};
use crate::{
    durable::{Claimed, Durable, LogRecord, Logged, SessionRecord},
    ending::{Cause, Ending},
    message::{Delivery, Level, Message},
    session::{Attachment, Session, SessionRequest, Subscription},
    topics::Filters,
};

/// Maximum number of subscriptions of a session.
const SUBSCRIPTIONS_MAX: usize = 20;

/// Maximum number of sessions of an application. Beyond that, the one whose client has been away longest is removed.
const SESSIONS_MAX: usize = 200;

/// The sessions of one application.
pub(crate) struct Application {
    app_id: AppId,
    subscribers: Mutex<Subscribers>,
    /// Held while a stored session is attached, which takes several steps.
    attaching: tokio::sync::Mutex<()>,
}

struct Subscribers {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    filters: Filters<Arc<Session>, Subscription>,
    last_number: u64,
    log: Log,
}

impl Application {
    /// An application without sessions; the messages of its log begin with this number.
    pub(super) fn new(app_id: AppId, first_number: u64) -> Self {
        let subscribers = Subscribers {
            sessions: HashMap::new(),
            filters: Filters::default(),
            last_number: 0,
            log: Log::new(first_number),
        };
        Self { app_id, subscribers: Mutex::new(subscribers), attaching: tokio::sync::Mutex::default() }
    }

    /// Gives a client its session; returns whether it is an old one.
    pub(super) fn attach(&self, request: SessionRequest, ending: Ending, now: Timestamp) -> (Attachment, bool) {
        let SessionRequest { id, clean, expiry } = request;
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(&id).cloned() {
            if !clean && !session.is_expired(now) {
                return (session.attach(expiry, ending), true);
            }
            session.end(Cause::TakenOver);
            subscribers.remove(&session);
        }
        (subscribers.insert(id).attach(expiry, ending), false)
    }

    /// Gives a client its session, which is stored; returns whether it is an old one.
    ///
    /// Between instances, the store decides whose a session is.
    pub(super) async fn attach_stored(
        &self,
        durable: &Durable,
        request: SessionRequest,
        ending: Ending,
        now: Timestamp,
    ) -> Result<(Attachment, bool), store::Error> {
        let _turn = self.attaching.lock().await;
        let known = self.session(&request.id).filter(|session| !request.clean && !session.is_expired(now));
        let owner = known.as_ref().map(|session| session.owner());
        let is_present = match owner {
            Some(Some(version)) if durable.is_owner(&self.app_id, &request.id, version).await? => true,
            // It is connected, and was to end with its connection until now.
            Some(None) => {
                let claimed = durable.claim(&self.app_id, &request.id, true).await?;
                known.iter().for_each(|session| session.own(claimed.owner));
                true
            }
            _ => {
                if let Some(Some(version)) = owner {
                    self.lose(&request.id, version);
                }
                let claimed = durable.claim(&self.app_id, &request.id, request.clean).await?;
                let is_present = claimed.record.is_some();
                let log = if is_present { durable.log(&self.app_id).await? } else { Vec::new() };
                self.restore(&request, claimed, log, now);
                is_present
            }
        };
        let request = SessionRequest { clean: false, ..request };
        Ok((self.attach(request, ending, now).0, is_present))
    }

    /// Puts a session into place that the store had, or a new one, and forgets the one that was there.
    fn restore(&self, request: &SessionRequest, claimed: Claimed, log: Vec<Logged>, now: Timestamp) {
        let mut subscribers = self.lock();
        if let Some(session) = subscribers.sessions.get(&request.id).cloned() {
            session.end(Cause::TakenOver);
            subscribers.forget(&session);
        }
        let expiry_ms = u64::try_from(request.expiry.as_millis()).unwrap_or(u64::MAX);
        let record = claimed.record.unwrap_or_else(|| SessionRecord { expiry_ms, ..SessionRecord::default() });
        let session = subscribers.insert(Arc::clone(&request.id));
        session.restore(&record, now);
        session.own(claimed.owner);
        for (filter, subscription) in session.filters() {
            subscribers.filters.insert(&filter, Arc::clone(&session), subscription);
        }
        subscribers.restore_messages(&[(&session, &record)], log);
    }

    /// Puts the sessions into place that this instance had before it was restarted.
    pub(super) async fn load(&self, durable: &Durable, now: Timestamp) -> Result<(), store::Error> {
        let stored = durable.claim_own(&self.app_id).await?;
        if stored.is_empty() {
            return Ok(());
        }
        let log = durable.log(&self.app_id).await?;
        let mut subscribers = self.lock();
        let mut sessions = Vec::new();
        for (id, claimed) in stored {
            let record = claimed.record.unwrap_or_default();
            let session = subscribers.insert(id.into());
            session.restore(&record, now);
            session.own(claimed.owner);
            for (filter, subscription) in session.filters() {
                subscribers.filters.insert(&filter, Arc::clone(&session), subscription);
            }
            sessions.push((session, record));
        }
        let sessions: Vec<_> = sessions.iter().map(|(session, record)| (session, record)).collect();
        subscribers.restore_messages(&sessions, log);
        Ok(())
    }

    /// Ends a client's use of its session; removes the session if it does not outlive its connection.
    pub(super) fn detach(&self, attachment: &Attachment, now: Timestamp) {
        let mut subscribers = self.lock();
        if attachment.detach(now) && attachment.session.is_expired(now) {
            subscribers.remove(&attachment.session);
        }
    }

    /// Subscribes; returns false if the session has the maximum number of subscriptions.
    pub(crate) fn subscribe(&self, attachment: &Attachment, filter: &str, subscription: Subscription) -> bool {
        let mut subscribers = self.lock();
        // A session that was removed must not come back as a subscriber.
        let is_current = subscribers.sessions.get(&attachment.session.id) == Some(&attachment.session);
        let Some(mut state) = attachment.state().filter(|_| is_current) else { return true };
        if state.filters.len() >= SUBSCRIPTIONS_MAX && !state.filters.contains_key(filter) {
            return false;
        }
        state.subscribed(filter, subscription);
        subscribers.filters.insert(filter, Arc::clone(&attachment.session), subscription);
        true
    }

    /// Unsubscribes; returns false if there was no such subscription.
    pub(crate) fn unsubscribe(&self, attachment: &Attachment, filter: &str) -> bool {
        let mut subscribers = self.lock();
        let Some(mut state) = attachment.state() else { return true };
        subscribers.filters.remove(filter, &attachment.session);
        state.unsubscribed(filter)
    }

    /// Gives messages to all sessions that subscribed to them. One lock for all keeps them in the same order for
    /// every subscriber.
    ///
    /// Returns what resolves when the messages are saved, unless no stored session gets one of them. If too much waits
    /// to be saved, they are refused.
    pub(super) fn publish(
        &self,
        durable: Option<&Durable>,
        messages: impl Iterator<Item = Arc<Message>>,
    ) -> Option<oneshot::Receiver<bool>> {
        let mut subscribers = self.lock();
        if subscribers.log.is_full() {
            // Dropping the sender says that they are not saved.
            return Some(oneshot::channel().1);
        }
        let mut is_stored = false;
        for message in messages {
            let mut deliveries = subscribers.deliveries(&message);
            if let Some(durable) = durable {
                is_stored |= subscribers.store(&self.app_id, durable, &message, &mut deliveries);
            }
            for (session, delivery) in deliveries {
                session.push(delivery);
            }
        }
        is_stored.then(|| subscribers.log.saved())
    }

    /// Resolves when everything is saved that has been done so far.
    pub(super) fn saved(&self) -> oneshot::Receiver<bool> {
        self.lock().log.saved()
    }

    pub(super) fn remove(&self, session: &Arc<Session>) {
        self.lock().remove(session);
    }

    /// Leaves a session to the instance that owns it now.
    fn lose(&self, id: &str, version: Version) {
        let mut subscribers = self.lock();
        let Some(session) = subscribers.sessions.get(id).filter(|it| it.owner() == Some(version)).cloned() else {
            return;
        };
        session.end(Cause::TakenOver);
        session.disown();
        subscribers.forget(&session);
    }

    /// Removes the sessions that have expired.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut subscribers = self.lock();
        let expired: Vec<_> =
            subscribers.sessions.values().filter(|session| session.is_expired(now)).cloned().collect();
        expired.iter().for_each(|session| subscribers.remove(session));
    }

    /// Whether there is something to save.
    pub(super) fn has_changes(&self) -> bool {
        let subscribers = self.lock();
        let log = &subscribers.log;
        log.is_urgent()
            || log.has_released()
            || !log.removed.is_empty()
            || subscribers.sessions.values().any(|session| session.is_changed())
    }

    fn take_work(&self) -> Option<log::Work> {
        let mut subscribers = self.lock();
        let next = subscribers.log.next;
        let changed = subscribers.sessions.values();
        let changed = changed.filter_map(|session| Some((Arc::clone(session), session.take_record(next)?))).collect();
        let work = subscribers.log.take(changed);
        subscribers.log.is_saving = !work.is_empty();
        (!work.is_empty()).then_some(work)
    }

    pub(super) fn is_empty(&self) -> bool {
        let subscribers = self.lock();
        subscribers.sessions.is_empty() && !subscribers.log.is_saving
    }

    pub(super) fn end_all(&self, cause: Cause) {
        self.lock().sessions.values().for_each(|session| session.end(cause));
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().sessions.get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers> {
        // No panic can leave it half changed.
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers {
    fn insert(&mut self, id: Arc<str>) -> Arc<Session> {
        if self.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) =
                self.sessions.values().filter_map(|it| Some((it.away_since()?, it))).min_by_key(|it| it.0)
        {
            let oldest = Arc::clone(oldest.1);
            tracing::warn!("removed the MQTT session whose client was away longest: its application has too many");
            self.remove(&oldest);
        }
        self.last_number += 1;
        let session = Arc::new(Session::new(self.last_number, Arc::clone(&id)));
        self.sessions.insert(id, Arc::clone(&session));
        session
    }

    /// Removes a session here and in the store.
    fn remove(&mut self, session: &Arc<Session>) {
        if self.sessions.get(&session.id) == Some(session) {
            self.log.removed.extend(session.owner().map(|owner| (Arc::clone(&session.id), owner)));
        }
        self.forget(session);
        session.clear();
    }

    /// Removes a session here.
    fn forget(&mut self, session: &Arc<Session>) {
        if self.sessions.get(&session.id) == Some(session) {
            self.sessions.remove(&session.id);
        }
        for filter in session.take_filters().into_keys() {
            self.filters.remove(&filter, session);
        }
    }

    /// What each session gets: a message that several of its filters match only once, with the highest QoS.
    fn deliveries(&mut self, message: &Arc<Message>) -> Vec<(Arc<Session>, Delivery)> {
        let mut deliveries: Vec<(Arc<Session>, Delivery)> = Vec::new();
        let mut add = |session: &Arc<Session>, subscription: &Subscription| {
            if subscription.no_local && message.publisher == Some(session.number) {
                return;
            }
            let level = subscription.level.min(message.level);
            let known = deliveries.iter_mut().find(|(other, _)| other == session);
            match known {
                Some((_, delivery)) => {
                    delivery.level = delivery.level.max(level);
                    delivery.subscription_ids.extend(subscription.id);
                }
                None => {
                    let subscription_ids = subscription.id.into_iter().collect();
                    let delivery = Delivery { message: Arc::clone(message), level, subscription_ids, stored: None };
                    deliveries.push((Arc::clone(session), delivery));
                }
            }
        };
        self.filters.for_each_match(&message.topic, |session| session.is_connected(), &mut add);
        deliveries
    }

    /// Appends a message to the log, if stored sessions get it with QoS 1; returns whether.
    fn store(
        &mut self,
        app_id: &AppId,
        durable: &Durable,
        message: &Message,
        deliveries: &mut [(Arc<Session>, Delivery)],
    ) -> bool {
        let is_stored = |(session, delivery): &&mut (Arc<Session>, Delivery)| {
            delivery.level == Level::AtLeastOnce && session.owner().is_some()
        };
        let deliveries: Vec<_> = deliveries.iter_mut().filter(is_stored).collect();
        let Some(key) = (!deliveries.is_empty()).then(|| durable.message_key(app_id, self.log.next)) else {
            return false;
        };
        let Ok(key) = key else { return false };
        let recipients =
            deliveries.iter().map(|(session, delivery)| (session.id.to_string(), delivery.subscription_ids.clone()));
        let value =
            LogRecord::new(&message.topic, &message.payload, message.properties.as_deref(), recipients.collect())
                .encode();
        let stored = self.log.stored(self.log.next, key);
        self.log.next += 1;
        let mut recipients = Vec::new();
        for (session, delivery) in deliveries {
            delivery.stored = Some(Arc::clone(&stored));
            recipients.push(Arc::clone(session));
        }
        self.log.append(Append { stored, value, recipients });
        true
    }

    /// Queues what the log has for sessions that were stored.
    fn restore_messages(&mut self, sessions: &[(&Arc<Session>, &SessionRecord)], log: Vec<Logged>) {
        let waiting_from = sessions.iter().map(|(_, record)| record.waiting_from);
        self.log.next = waiting_from.fold(self.log.next, u64::max);
        for Logged { key, number, record } in log {
            self.log.next = self.log.next.max(number + 1);
            let stored = self.log.stored(number, key);
            let is_ours = |id: &str| sessions.iter().find(|(session, _)| *session.id == *id);
            if record.recipients.iter().any(|(id, _)| is_ours(id).is_none()) {
                // Another instance may need it: then it expires.
                stored.disown();
            }
            let recipients = record.recipients.clone();
            let message = Arc::new(Message::from(record));
            for (id, subscription_ids) in recipients {
                let Some((session, _)) = is_ours(&id).filter(|(_, session)| session.owes(number)) else { continue };
                let (message, stored) = (Arc::clone(&message), Some(Arc::clone(&stored)));
                session.push(Delivery { message, level: Level::AtLeastOnce, subscription_ids, stored });
            }
        }
    }
}
