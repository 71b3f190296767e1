//! Brings messages of the log into memory. At the start of a process only the sessions are read. Their messages follow
//! when a client comes back, when another message comes for it, or when its session ends and leaves them to be deleted.

use std::{collections::HashMap, sync::Arc};

use server::status::ErrorChain;
use store::Error;
use types::Timestamp;

use super::{Application, backlog::Unread, subscribers::Subscribers};
use crate::session::{
    Session,
    durable::{Durable, Logged, SessionRecord},
    message::{Delivery, DeliveryQos, Message},
};

impl Application {
    /// Starts to read wanted messages, unless that is in progress. After a failure it is left to
    /// [`Application::read_again`], because this is called with every publication.
    pub(super) fn start_reading(self: &Arc<Self>, durable: &Arc<Durable>) {
        let begins = {
            let backlog = &mut self.lock().backlog;
            !backlog.is_failing() && backlog.begin()
        };
        if begins {
            self.spawn_read(durable);
        }
    }

    /// Reads again what could not be read, if the pause since then is over.
    pub(in crate::router) fn read_again(self: &Arc<Self>, durable: &Arc<Durable>) {
        let begins = {
            let backlog = &mut self.lock().backlog;
            backlog.is_failing() && backlog.is_due() && backlog.begin()
        };
        if begins {
            self.spawn_read(durable);
        }
    }

    fn spawn_read(self: &Arc<Self>, durable: &Arc<Durable>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (this, durable) = (Arc::clone(self), Arc::clone(durable));
            runtime.spawn(async move { this.read(&durable).await });
        }
    }

    /// Waits until a session has all of its messages.
    pub(super) async fn complete(
        self: &Arc<Self>,
        durable: &Arc<Durable>,
        session: &Arc<Session>,
    ) -> Result<(), Error> {
        if session.has_backlog() { self.read_all(durable).await } else { Ok(()) }
    }

    /// Waits until all sessions have all of their messages.
    pub(super) async fn read_all(self: &Arc<Self>, durable: &Arc<Durable>) -> Result<(), Error> {
        let (this, durable) = (Arc::clone(self), Arc::clone(durable));
        // In a task of its own, which goes on if the client does not wait, so that it need not begin anew the next time.
        let reading = tokio::spawn(async move { this.read_backlog(&durable).await });
        let failed = |_| Error::Unavailable { what: "read the messages of MQTT sessions", source: None };
        reading.await.map_err(failed)?
    }

    async fn read(&self, durable: &Durable) {
        let read = self.read_backlog(durable).await;
        let backlog = &mut self.lock().backlog;
        backlog.is_reading = false;
        if let Err(error) = read.as_ref() {
            if !backlog.is_failing() {
                let error = ErrorChain(error);
                tracing::warn!(app_id = %self.app_id, %error, "cannot read the messages of MQTT sessions: trying again");
            }
            backlog.failed();
        }
    }

    async fn read_backlog(&self, durable: &Durable) -> Result<(), Error> {
        let _only_one = self.reading.lock().await;
        let numbers = self.lock().backlog.numbers();
        if numbers.is_empty() {
            return Ok(());
        }
        let log = durable.log(&self.app_id).await?;
        // Read after the log, these are all that may need a message there.
        let stored = durable.session_ids(&self.app_id).await?;
        let mut subscribers = self.lock();
        subscribers.backlog.succeeded();
        let unread = subscribers.backlog.take(&numbers);
        let id = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        subscribers.restore_messages(&unread, log.messages, |name| stored.contains(&id(name)));
        Ok(())
    }
}

/// A recipient of messages in the log.
struct Recipient<'a> {
    unread: &'a Unread,
    /// True if the session still exists.
    is_present: bool,
}

impl Subscribers {
    /// Puts a session into place that the store had, without its messages.
    pub(super) fn restore(
        &mut self,
        session: &Arc<Session>,
        record: SessionRecord,
        now: Timestamp,
    ) -> Arc<SessionRecord> {
        self.log.next = self.log.next.max(record.waiting_from);
        let record = session.restore(record, now);
        for (filter, subscription) in session.filters() {
            self.filters.insert(&filter, Arc::clone(session), subscription);
        }
        record
    }

    /// Queues what the log has for sessions that were restored, before what has come for them since. Of other
    /// recipients, `is_elsewhere` says whether they may still need a message.
    pub(super) fn restore_messages(
        &mut self,
        unread: &[Unread],
        log: Vec<Logged>,
        is_elsewhere: impl Fn(&str) -> bool,
    ) {
        let ours = unread.iter().map(|it| {
            let is_present = self.is_current(&it.session);
            (it.recipient(), Recipient { unread: it, is_present })
        });
        let ours: HashMap<String, Recipient<'_>> = ours.collect();
        let newer: Vec<_> = unread.iter().map(|it| it.session.take_waiting()).collect();
        let below = unread.iter().map(|it| it.below).max().unwrap_or_default();
        for logged in log {
            self.log.next = self.log.next.max(logged.number + 1);
            let named = logged.record.recipients.iter().filter_map(|(name, _)| ours.get(&**name));
            let last = named.map(|recipient| recipient.unread.below).max().unwrap_or(below);
            // What has come since is in memory, or another process's.
            if logged.number < last {
                self.restore_message(logged, &ours, &is_elsewhere);
            }
        }
        for (it, newer) in unread.iter().zip(newer) {
            it.session.finish_restoring(newer, it.below.min(self.log.next));
        }
    }

    fn restore_message(
        &self,
        Logged { key, number, mut record }: Logged,
        ours: &HashMap<String, Recipient<'_>>,
        is_elsewhere: impl Fn(&str) -> bool,
    ) {
        let named = record.recipients.iter().filter_map(|(name, _)| ours.get(&**name));
        let owners = named.map(|recipient| Arc::clone(&recipient.unread.session.ownership)).collect();
        let stored = self.log.stored(number, key, owners);
        let is_needed = |name: &str| ours.get(name).map_or_else(|| is_elsewhere(name), |it| number >= it.unread.below);
        if record.recipients.iter().any(|(name, _)| is_needed(name)) {
            // Another process may need it, or a session that has it in memory: then it expires.
            stored.disown();
        }
        let recipients = std::mem::take(&mut record.recipients);
        let message = Arc::new(Message::from(record).counted(&self.memory));
        for (name, subscription_ids) in recipients {
            let Some(Recipient { unread, is_present }) = ours.get(&*name).filter(|it| it.unread.owes(number)) else {
                continue;
            };
            if !is_present {
                self.counters.dropped(u64::from(unread.is_discarded()));
                continue;
            }
            let (message, stored) = (Arc::clone(&message), Some(Arc::clone(&stored)));
            let delivery = Delivery { message, qos: DeliveryQos::AtLeastOnce, subscription_ids, stored };
            match unread.record.packet_id(number) {
                Some(packet_id) => unread.session.restore_in_flight(packet_id, delivery),
                None => unread.session.push(delivery),
            }
        }
        if self.memory.is_exceeded() {
            self.shrink();
        }
    }
}
