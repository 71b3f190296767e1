//! Receives messages, each with a handle to acknowledge it once it is dealt with.

mod task;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::task::Task;
use super::{
    connection::BrokerConnection, endpoint::Endpoint, lost::Lost, packet::Role, protocol::Protocol, repeats::Repeats,
};
use crate::{
    connection_state::{ConnectionWatch, connection_state},
    delivery::Delivery,
};

/// Time without a message after which the broker is asked whether it has more that it kept.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// A request to receive messages.
pub struct Subscription {
    /// Topic filters to subscribe to.
    pub filters: Vec<String>,
    /// The processes that share the messages; none if this one gets them all.
    pub group: Option<Group>,
    /// Maximum number of messages that are not acknowledged yet.
    pub in_flight_max: u16,
    /// True if the broker keeps messages that arrive while there is no connection.
    pub keeps_session: bool,
    /// True if MQTT 5 is tried before 3.1.1.
    pub tries_mqtt5: bool,
    /// True if retained messages are dropped: they are outdated requests, and the broker would send them on each
    /// connection.
    pub drops_retained: bool,
    /// Called whenever the broker has granted the subscription, before its first message comes. If it is set, no
    /// message is dropped when there are too many: messages that the broker has dropped can be had in another way.
    pub on_granted: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Subscription {
    /// Asks for what matches these filters, in MQTT 3.1.1, for this process alone, and only while it is connected.
    pub fn to(filters: impl IntoIterator<Item = String>, in_flight_max: u16) -> Self {
        Self {
            filters: filters.into_iter().collect(),
            group: None,
            in_flight_max: in_flight_max.max(1),
            keeps_session: false,
            tries_mqtt5: false,
            drops_retained: false,
            on_granted: None,
        }
    }
}

/// Processes that may share messages.
#[derive(Clone, Copy)]
pub struct Group {
    /// The name in `$share/NAME/…`.
    pub name: &'static str,
    /// The part of this process in the group.
    pub membership: Membership,
}

/// The share of a group's messages that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// A share, where the broker can.
    Shared,
    /// A share, and nothing where the broker cannot.
    SharedOnly,
    /// All of them.
    Alone,
    /// No new ones, only those that the broker has kept.
    Leaving,
}

/// A subscription that reconnects by itself.
pub struct Subscriber {
    subscribed: ConnectionWatch,
    /// Cancelled when the broker cannot share, but has to.
    cannot_share: CancellationToken,
    in_flight: Arc<Semaphore>,
    in_flight_max: u16,
    received: Arc<AtomicU64>,
    /// Asks the broker to end the subscriptions once more.
    asking: Arc<Notify>,
    /// Number of times that the broker has answered that they are ended.
    answers: watch::Receiver<u64>,
    draining: CancellationToken,
    drained: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Subscriber {
    /// Connects in the background; `receive` must not block.
    pub fn start(
        endpoint: Endpoint,
        subscription: Subscription,
        receive: impl Fn(Delivery) + Send + Sync + 'static,
    ) -> Self {
        let in_flight_max = subscription.in_flight_max;
        let in_flight = Arc::new(Semaphore::new(in_flight_max.into()));
        let received = Arc::new(AtomicU64::new(0));
        let (subscribed_reporter, subscribed) = connection_state();
        let (draining, drained) = (CancellationToken::new(), CancellationToken::new());
        let cannot_share = CancellationToken::new();
        let (asking, (answered, answers)) = (Arc::<Notify>::default(), watch::channel(0));
        let task = Task {
            endpoint,
            subscription,
            receive,
            in_flight: in_flight.clone(),
            received: received.clone(),
            asking: asking.clone(),
            answered,
            subscribed: subscribed_reporter,
            cannot_share: cannot_share.clone(),
            draining: draining.clone(),
            drained: drained.clone(),
            has_shared_subscriptions: true,
            is_sharing_refused: false,
            late_until: None,
            repeats: Repeats::default(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.run()));
        Self { subscribed, cannot_share, in_flight, in_flight_max, received, asking, answers, draining, drained, task }
    }

    /// Returns what is to be told of the subscription: since when the broker grants it, or why it does not.
    pub fn connection(&self) -> ConnectionWatch {
        self.subscribed.clone()
    }

    /// Returns the number of messages that were received and are not acknowledged yet.
    pub fn in_progress(&self) -> usize {
        usize::from(self.in_flight_max).saturating_sub(self.in_flight.available_permits())
    }

    /// Waits until the broker says that it cannot share messages. Only where nothing else will do.
    pub async fn cannot_share(&self) {
        self.cannot_share.cancelled().await;
    }

    /// Waits until a subscriber that is [`Membership::Leaving`] has everything that the broker kept, and nothing in
    /// progress.
    pub async fn idle(&self) {
        loop {
            let before = self.received.load(Ordering::Relaxed);
            let is_same = || self.received.load(Ordering::Relaxed) == before;
            sleep(IDLE_TIME).await;
            let is_busy = self.in_flight.available_permits() < usize::from(self.in_flight_max);
            // A slow broker sends what it still has before the answer, behind the last acknowledgement.
            if self.subscribed.is_connected() && !is_busy && is_same() && self.has_answered().await && is_same() {
                return;
            }
        }
    }

    /// Waits until the broker has answered; false if the connection's task has ended.
    async fn has_answered(&self) -> bool {
        let mut answers = self.answers.clone();
        answers.mark_unchanged();
        self.asking.notify_one();
        answers.changed().await.is_ok()
    }

    /// Accepts no more messages, waits until those in progress are acknowledged or given up, and disconnects.
    pub async fn drain(self) {
        self.draining.cancel();
        // It fails only for a closed semaphore, which this one never is.
        drop(self.in_flight.acquire_many(self.in_flight_max.into()).await);
        self.drained.cancel();
        // A panic of the task has been logged.
        _ = self.task.await;
    }
}

/// Ends the session that a broker keeps, and drops the messages in it. Returns false if the broker cannot be reached.
pub async fn end_session(endpoint: &Endpoint) -> bool {
    let role = Role::Subscriber { in_flight_max: 1, keeps_session: false };
    for protocol in [Protocol::V5, Protocol::V4] {
        if let Ok(connection) = BrokerConnection::open(endpoint, protocol, role).await {
            connection.disconnect().await;
            return true;
        }
    }
    false
}

/// Number of attempts with MQTT 5 before 3.1.1, for brokers that close the connection without a word.
const V5_TRIES: u32 = 3;

/// Chooses the version of the protocol to connect with: 5, unless the broker does not know it.
#[derive(Default)]
pub(super) struct ProtocolChoice {
    closed: u32,
    is_refused: bool,
    /// True if only 3.1.1 is used.
    is_fixed: bool,
}

impl ProtocolChoice {
    pub(super) fn next(&self) -> Protocol {
        if self.is_fixed || self.is_refused || self.closed >= V5_TRIES { Protocol::V4 } else { Protocol::V5 }
    }

    /// Takes note of the end of a connection, or of an attempt. After a 3.1.1 one, version 5 is tried again.
    pub(super) fn ended(&mut self, has_connected: bool, lost: &Lost) {
        let is_unknown = !has_connected && self.next() == Protocol::V5 && lost.is_protocol_unknown;
        self.is_refused = is_unknown && lost.is_version_refused;
        self.closed = if is_unknown { self.closed + 1 } else { 0 };
    }
}

/// Logs the end of a connection; repeated failures only in detail.
pub(super) fn report(lost: &Lost, endpoint: &Endpoint, is_failing: bool) {
    let (broker, reason) = (&endpoint.url, &lost.reason);
    if is_failing {
        tracing::debug!(%broker, reason, "still no connection to the MQTT broker");
    } else {
        tracing::warn!(%broker, reason, "no connection to the MQTT broker: connecting again");
    }
}
