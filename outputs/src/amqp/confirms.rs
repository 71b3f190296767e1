//! What the broker has not confirmed yet of one channel. One that ends leaves nothing unresolved.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use amqprs::{
    Ack, BasicProperties, Cancel, Close, CloseChannel, Nack, Return,
    callbacks::{ChannelCallback, ConnectionCallback},
    channel::Channel,
    connection::Connection,
    error::Error,
};
use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Taken,
    /// The broker could not take it.
    Rejected,
    /// No queue is bound for it.
    Returned,
    /// The channel ended before the broker answered.
    Ended(End),
}

/// Why a channel ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The reply code of the protocol; 0 if the broker gave none.
    pub(super) code: u16,
    pub(super) text: String,
}

/// The unconfirmed messages of one channel.
pub(super) struct Confirms {
    state: Mutex<State>,
    ended: watch::Sender<bool>,
    /// Whether the broker owes answers that nobody waits for any more. Until they come, nothing more is sent.
    stalled: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<u64, Pending>,
    /// How many of them nobody waits for.
    late: usize,
    end: Option<End>,
}

struct Pending {
    message_id: String,
    outcome: oneshot::Sender<Outcome>,
    is_returned: bool,
    is_late: bool,
    /// Makes room for another message.
    _room: OwnedSemaphorePermit,
}

/// A message that was published, until its outcome is known.
pub(super) struct Published<'a> {
    confirms: &'a Confirms,
    tag: u64,
    outcome: oneshot::Receiver<Outcome>,
}

/// Hands over what the broker says.
pub(super) struct Listener(Arc<Confirms>);

impl Confirms {
    pub(super) fn new() -> Arc<Self> {
        let (ended, stalled) = (watch::Sender::new(false), watch::Sender::new(false));
        Arc::new(Self { state: Mutex::default(), ended, stalled })
    }

    pub(super) fn listener(self: &Arc<Self>) -> Listener {
        Listener(Arc::clone(self))
    }

    /// Expects an outcome for the message with this tag, which is about to be published.
    pub(super) fn expect(&self, tag: u64, message_id: &str, room: OwnedSemaphorePermit) -> oneshot::Receiver<Outcome> {
        let (sender, outcome) = oneshot::channel();
        let message_id = message_id.to_owned();
        let pending = Pending { message_id, outcome: sender, is_returned: false, is_late: false, _room: room };
        let mut state = self.state();
        match &state.end {
            // Nobody may wait for it.
            Some(end) => _ = pending.outcome.send(Outcome::Ended(end.clone())),
            // One with the same tag was never published, because whoever waited for it gave up.
            None => _ = state.pending.insert(tag, pending),
        }
        outcome
    }

    /// The message with this tag was published.
    pub(super) fn published(&self, tag: u64, outcome: oneshot::Receiver<Outcome>) -> Published<'_> {
        Published { confirms: self, tag, outcome }
    }

    /// Waits until the channel has ended, and says why.
    pub(super) async fn ended(&self) -> End {
        // It cannot fail, because the sender is here.
        _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        self.end().unwrap_or_default()
    }

    pub(super) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(super) fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    pub(super) fn is_stalled(&self) -> bool {
        *self.stalled.borrow()
    }

    /// Waits until the broker does, or does not, owe answers that nobody waits for.
    pub(super) async fn stalled(&self, stalled: bool) {
        // It cannot fail, because the sender is here.
        _ = self.stalled.subscribe().wait_for(|now| *now == stalled).await;
    }

    /// Notes why the channel is about to end.
    fn closing(&self, code: u16, text: &str) {
        let mut state = self.state();
        if state.end.is_none() {
            state.end = Some(End { code, text: text.to_owned() });
        }
    }

    fn finish(&self) {
        let mut state = self.state();
        let end = state.end.get_or_insert_with(|| End { code: 0, text: "the connection broke".to_owned() }).clone();
        for pending in std::mem::take(&mut state.pending).into_values() {
            _ = pending.outcome.send(Outcome::Ended(end.clone()));
        }
        state.late = 0;
        drop(state);
        self.ended.send_replace(true);
        self.stalled.send_replace(false);
    }

    fn resolve(&self, tag: u64, is_multiple: bool, outcome: &Outcome) {
        let mut state = self.state();
        let later = if is_multiple { state.pending.split_off(&(tag + 1)) } else { BTreeMap::new() };
        let resolved = match is_multiple {
            true => std::mem::replace(&mut state.pending, later).into_values().collect(),
            false => Vec::from_iter(state.pending.remove(&tag)),
        };
        for pending in resolved {
            state.late -= usize::from(pending.is_late);
            let outcome = if pending.is_returned { Outcome::Returned } else { outcome.clone() };
            _ = pending.outcome.send(outcome);
        }
        self.stalled.send_if_modified(|stalled| std::mem::replace(stalled, state.late > 0) != (state.late > 0));
    }

    fn returned(&self, message_id: &str) {
        let mut state = self.state();
        let waiting = state.pending.values_mut().filter(|pending| pending.message_id == message_id);
        waiting.for_each(|pending| pending.is_returned = true);
    }

    fn give_up(&self, tag: u64) {
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&tag).filter(|pending| !pending.is_late) else { return };
        pending.is_late = true;
        state.late += 1;
        self.stalled.send_replace(true);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Published<'_> {
    /// Waits for the outcome.
    pub(super) async fn outcome(mut self) -> Outcome {
        // A sender without an outcome is gone only with the channel.
        (&mut self.outcome).await.unwrap_or_else(|_| Outcome::Ended(self.confirms.end().unwrap_or_default()))
    }
}

impl Drop for Published<'_> {
    /// If the outcome is not known, nobody will ask for it.
    fn drop(&mut self) {
        self.confirms.give_up(self.tag);
    }
}

impl Drop for Listener {
    /// The client drops it when the channel has ended, for whatever reason.
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[async_trait]
impl ChannelCallback for Listener {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        self.0.closing(close.reply_code(), close.reply_text());
        self.0.finish();
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, _: Cancel) -> Result<(), Error> {
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, Error> {
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        self.0.resolve(ack.delivery_tag(), ack.mutiple(), &Outcome::Taken);
    }

    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        self.0.resolve(nack.delivery_tag(), nack.multiple(), &Outcome::Rejected);
    }

    async fn publish_return(&mut self, _: &Channel, _: Return, properties: BasicProperties, _: Vec<u8>) {
        if let Some(id) = properties.message_id() {
            self.0.returned(id);
        }
    }
}

/// Notes why the broker closes the connection. The end of its channel follows.
pub(super) struct ConnectionListener(pub(super) Arc<Confirms>);

#[async_trait]
impl ConnectionCallback for ConnectionListener {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        self.0.closing(close.reply_code(), close.reply_text());
        Ok(())
    }

    async fn blocked(&mut self, _: &Connection, _: String) {}

    async fn unblocked(&mut self, _: &Connection) {}

    async fn secret_updated(&mut self, _: &Connection) {}
}
