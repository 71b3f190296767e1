//! The queue between the client and a stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use futures::task::AtomicWaker;
use link::mqtt::Acknowledger;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use types::{DevId, Kind};

use super::message::Message;

/// Maximum number of messages queued for a slow program. Those that arrive at a full queue are dropped and counted.
pub const QUEUE_MAX: usize = 1000;

/// A message that arrived.
///
/// The broker learns that it was received when all streams and listeners that hear it have dropped it.
#[derive(Clone, Debug)]
pub struct Received {
    /// The device.
    pub dev_id: DevId,
    /// The message itself.
    pub message: Arc<Message>,
    pub(super) _acknowledger: Option<Arc<Acknowledger>>,
}

impl Received {
    /// A message from elsewhere, by the levels of its topic below the device, such as `up` or `events/down/sent`.
    pub fn new(dev_id: DevId, levels: &str, payload: &[u8]) -> Self {
        Self { dev_id, message: Arc::new(Message::parse(levels, payload)), _acknowledger: None }
    }
}

/// The client's end of a stream.
#[derive(Debug)]
pub(super) struct Queue {
    messages: mpsc::Sender<Received>,
    shared: Arc<Shared>,
}

/// State that the stream reads beside its messages: the number of dropped ones, and a refusal.
#[derive(Debug, Default)]
pub(super) struct Shared {
    missed: AtomicU64,
    /// Wakes the stream when it misses messages while none arrive.
    waker: AtomicWaker,
    refusal: Mutex<Option<(Kind, String)>>,
}

/// Makes a queue; returns both of its ends.
pub(super) fn queue() -> (Queue, mpsc::Receiver<Received>, Arc<Shared>) {
    let (messages, receiver) = mpsc::channel(QUEUE_MAX);
    let shared = Arc::new(Shared::default());
    (Queue { messages, shared: shared.clone() }, receiver, shared)
}

impl Queue {
    pub(super) fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }

    pub(super) fn push(&self, received: Received) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(received) {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts messages that the broker has dropped.
    pub(super) fn miss(&self, count: u64) {
        self.shared.missed.fetch_add(count, Ordering::Relaxed);
        self.shared.waker.wake();
    }

    /// Lets the stream end with an error.
    pub(super) fn refuse(self, kind: Kind, message: &str) {
        *self.shared.refusal.lock() = Some((kind, message.to_owned()));
    }
}

impl Shared {
    /// Returns the number of messages dropped because the queue was full.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Wakes this task when messages are missed.
    pub(super) fn wakes(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Takes the broker's reason for refusing the credential. Later calls return `None`.
    pub(super) fn refusal(&self) -> Option<(Kind, String)> {
        self.refusal.lock().take()
    }
}
