//! Messages of one channel that the broker has not confirmed yet. All are resolved when the channel ends.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

/// Results of sending a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    Acknowledged,
    /// The broker could not take it.
    Rejected,
    /// No queue is bound for it.
    Returned,
    /// The channel ended before the broker answered.
    Ended(End),
}

/// Reply of the broker with which a channel ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The reply code of the protocol; 0 if the broker gave none.
    pub(super) code: u16,
    pub(super) text: String,
}

/// The unconfirmed messages of one channel.
pub(super) struct Confirms {
    state: Mutex<UnconfirmedMessages>,
    ended: watch::Sender<bool>,
    /// True while the broker owes answers that nobody waits for any more. Until they come, nothing more is sent.
    stalled: watch::Sender<bool>,
}

#[derive(Default)]
struct UnconfirmedMessages {
    pending: BTreeMap<u64, Pending>,
    /// Number of pending messages that nobody waits for.
    late: usize,
    end: Option<End>,
}

struct Pending {
    message_id: String,
    confirmation: oneshot::Sender<Confirmation>,
    is_returned: bool,
    is_late: bool,
    /// Makes room for another message.
    _room: OwnedSemaphorePermit,
}

/// A message that was published, until its outcome is known.
pub(super) struct Published<'a> {
    confirms: &'a Confirms,
    tag: u64,
    confirmation: oneshot::Receiver<Confirmation>,
}

impl Confirms {
    pub(super) fn new() -> Arc<Self> {
        let (ended, stalled) = (watch::Sender::new(false), watch::Sender::new(false));
        Arc::new(Self { state: Mutex::default(), ended, stalled })
    }

    /// Expects an outcome for the message with this tag, which is about to be published.
    pub(super) fn expect(
        &self,
        tag: u64,
        message_id: &str,
        room: OwnedSemaphorePermit,
    ) -> oneshot::Receiver<Confirmation> {
        let (sender, confirmation) = oneshot::channel();
        let message_id = message_id.to_owned();
        let pending = Pending { message_id, confirmation: sender, is_returned: false, is_late: false, _room: room };
        let mut state = self.state.lock();
        match &state.end {
            // Nobody may wait for it.
            Some(end) => _ = pending.confirmation.send(Confirmation::Ended(end.clone())),
            // One with the same tag was never published, because whoever waited for it gave up.
            None => _ = state.pending.insert(tag, pending),
        }
        confirmation
    }

    /// The message with this tag was published.
    pub(super) fn published(&self, tag: u64, confirmation: oneshot::Receiver<Confirmation>) -> Published<'_> {
        Published { confirms: self, tag, confirmation }
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
        self.state.lock().end.clone()
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
    pub(super) fn closing(&self, code: u16, text: &str) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(End { code, text: text.to_owned() });
        }
    }

    /// The channel has ended, for whatever reason.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        let end = state.end.get_or_insert_with(|| End { code: 0, text: "the connection broke".to_owned() }).clone();
        for pending in std::mem::take(&mut state.pending).into_values() {
            _ = pending.confirmation.send(Confirmation::Ended(end.clone()));
        }
        state.late = 0;
        drop(state);
        self.ended.send_replace(true);
        self.stalled.send_replace(false);
    }

    /// The broker has answered for the message with this tag; or for all up to it.
    pub(super) fn resolve(&self, tag: u64, is_multiple: bool, confirmation: &Confirmation) {
        let mut state = self.state.lock();
        let later = if is_multiple { state.pending.split_off(&(tag + 1)) } else { BTreeMap::new() };
        let resolved = match is_multiple {
            true => std::mem::replace(&mut state.pending, later).into_values().collect(),
            false => Vec::from_iter(state.pending.remove(&tag)),
        };
        for pending in resolved {
            state.late -= usize::from(pending.is_late);
            let confirmation = if pending.is_returned { Confirmation::Returned } else { confirmation.clone() };
            _ = pending.confirmation.send(confirmation);
        }
        self.stalled.send_if_modified(|stalled| std::mem::replace(stalled, state.late > 0) != (state.late > 0));
    }

    /// The broker has put a message into no queue. That it has taken it follows.
    pub(super) fn returned(&self, message_id: &str) {
        let mut state = self.state.lock();
        let waiting = state.pending.values_mut().filter(|pending| pending.message_id == message_id);
        waiting.for_each(|pending| pending.is_returned = true);
    }

    fn give_up(&self, tag: u64) {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.get_mut(&tag).filter(|pending| !pending.is_late) else { return };
        pending.is_late = true;
        state.late += 1;
        self.stalled.send_replace(true);
    }
}

impl Published<'_> {
    /// Waits for the outcome.
    pub(super) async fn confirmation(mut self) -> Confirmation {
        // A sender without an outcome is gone only with the channel.
        (&mut self.confirmation).await.unwrap_or_else(|_| Confirmation::Ended(self.confirms.end().unwrap_or_default()))
    }
}

impl Drop for Published<'_> {
    /// If the outcome is not known, nobody will ask for it.
    fn drop(&mut self) {
        self.confirms.give_up(self.tag);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::Semaphore;

    use super::*;

    fn publish<'a>(confirms: &'a Confirms, room: &Arc<Semaphore>, tag: u64) -> Option<Published<'a>> {
        let permit = Arc::clone(room).try_acquire_owned().ok()?;
        let confirmation = confirms.expect(tag, &format!("id-{tag}"), permit);
        Some(confirms.published(tag, confirmation))
    }

    #[tokio::test]
    async fn an_answer_may_be_for_several_messages_and_makes_room() {
        let (confirms, room) = (Confirms::new(), Arc::new(Semaphore::new(3)));
        let [first, second, third] = [1, 2, 3].map(|tag| publish(&confirms, &room, tag).unwrap());
        assert!(publish(&confirms, &room, 4).is_none(), "there is no more room");
        confirms.returned("id-2");
        confirms.resolve(2, true, &Confirmation::Acknowledged);
        assert_eq!(
            (first.confirmation().await, second.confirmation().await),
            (Confirmation::Acknowledged, Confirmation::Returned)
        );
        let fourth = publish(&confirms, &room, 4).unwrap();
        confirms.resolve(4, false, &Confirmation::Rejected);
        assert_eq!(fourth.confirmation().await, Confirmation::Rejected);
        confirms.closing(404, "no exchange");
        confirms.finish();
        let end = End { code: 404, text: "no exchange".to_owned() };
        assert_eq!(third.confirmation().await, Confirmation::Ended(end.clone()));
        assert_eq!(publish(&confirms, &room, 5).unwrap().confirmation().await, Confirmation::Ended(end));
    }

    #[tokio::test]
    async fn answers_that_nobody_waits_for_are_owed_until_they_come() {
        let (confirms, room) = (Confirms::new(), Arc::new(Semaphore::new(3)));
        let [first, second, third] = [1, 2, 3].map(|tag| publish(&confirms, &room, tag).unwrap());
        drop((first, second));
        confirms.resolve(1, false, &Confirmation::Acknowledged);
        assert!(confirms.is_stalled() && confirms.stalled(false).now_or_never().is_none());
        confirms.resolve(3, true, &Confirmation::Acknowledged);
        assert_eq!(third.confirmation().await, Confirmation::Acknowledged);
        confirms.stalled(false).await;
        drop(publish(&confirms, &room, 4));
        assert!(confirms.is_stalled());
        confirms.finish();
        assert!(!confirms.is_stalled() && confirms.is_ended());
    }
}
