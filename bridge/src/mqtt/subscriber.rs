//! Receives messages, each with a handle to acknowledge it once it is dealt with.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    connection::{Client, Connection, Event, Lost, PACKET_BYTES_MAX, Protocol, Received, Role},
    endpoint::Endpoint,
};
use crate::{
    backoff::Backoff,
    delivery::{Ack, Delivery},
};

/// After how long without a message the broker has no more that it kept.
const IDLE_TIME: Duration = Duration::from_secs(3);
/// How long the last acknowledgements may take to be sent.
const DISCONNECT_WAIT: Duration = Duration::from_secs(2);

/// What to receive.
pub(crate) struct Subscription {
    /// The filters.
    pub(crate) filters: Vec<String>,
    /// The processes that may share the messages. None: this one gets them all.
    pub(crate) group: Option<Group>,
    /// Maximum number of messages that are not acknowledged yet.
    pub(crate) in_flight_max: u16,
    /// Whether the broker keeps what arrives while there is no connection.
    pub(crate) keeps_session: bool,
    /// Whether MQTT 5 is tried before 3.1.1.
    pub(crate) tries_mqtt5: bool,
    /// Is called whenever the broker has granted the subscription, before its first message comes. Where it is set, no
    /// message is dropped when there are too many: what the broker has dropped meanwhile can be had in another way.
    pub(crate) on_granted: Option<Box<dyn Fn() + Send + Sync>>,
}

/// Processes that may share messages.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) membership: Membership,
}

/// What a process gets of a group's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// A share, where the broker can.
    Shared,
    /// All of them.
    Alone,
    /// No new ones, only what the broker has kept.
    Leaving,
}

/// A subscription that reconnects by itself.
pub(crate) struct Subscriber {
    subscribed: watch::Receiver<bool>,
    in_flight: Arc<Semaphore>,
    in_flight_max: u16,
    received: Arc<AtomicU64>,
    draining: CancellationToken,
    drained: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Subscriber {
    /// Connects in the background; `receive` must not block.
    pub(crate) fn start(
        endpoint: Endpoint,
        subscription: Subscription,
        receive: impl Fn(Delivery) + Send + Sync + 'static,
    ) -> Self {
        let in_flight_max = subscription.in_flight_max;
        let in_flight = Arc::new(Semaphore::new(in_flight_max.into()));
        let received = Arc::new(AtomicU64::new(0));
        let (subscribed_sender, subscribed) = watch::channel(false);
        let (draining, drained) = (CancellationToken::new(), CancellationToken::new());
        let task = Task {
            endpoint,
            subscription,
            receive,
            in_flight: in_flight.clone(),
            received: received.clone(),
            subscribed: subscribed_sender,
            draining: draining.clone(),
            drained: drained.clone(),
            has_shared_subscriptions: true,
            is_sharing_refused: false,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.run()));
        Self { subscribed, in_flight, in_flight_max, received, draining, drained, task }
    }

    /// Whether the broker has granted the subscription, now and as it changes.
    pub(crate) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.clone()
    }

    /// Waits until a connected subscriber has received nothing for a while, and has nothing in progress.
    pub(crate) async fn idle(&self) {
        loop {
            let before = self.received.load(Ordering::Relaxed);
            sleep(IDLE_TIME).await;
            let is_busy = self.in_flight.available_permits() < usize::from(self.in_flight_max);
            if *self.subscribed.borrow() && !is_busy && self.received.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// Accepts no more messages, waits until those in progress are acknowledged or given up, and disconnects.
    pub(crate) async fn drain(self) {
        self.draining.cancel();
        // It fails only for a closed semaphore, which this one never is.
        drop(self.in_flight.acquire_many(self.in_flight_max.into()).await);
        self.drained.cancel();
        // A panic of the task has been logged.
        _ = self.task.await;
    }
}

struct Task<F> {
    endpoint: Endpoint,
    subscription: Subscription,
    receive: F,
    in_flight: Arc<Semaphore>,
    received: Arc<AtomicU64>,
    subscribed: watch::Sender<bool>,
    draining: CancellationToken,
    drained: CancellationToken,
    has_shared_subscriptions: bool,
    is_sharing_refused: bool,
}

impl<F: Fn(Delivery)> Task<F> {
    async fn run(mut self) {
        let Subscription { in_flight_max, keeps_session, tries_mqtt5, .. } = self.subscription;
        let mut choice = ProtocolChoice { is_fixed: !tries_mqtt5, ..ProtocolChoice::default() };
        let (mut backoff, mut is_failing) = (Backoff::new(), false);
        let role = Role::Subscriber { in_flight_max, keeps_session };
        loop {
            let mut connection = Connection::open(&self.endpoint, choice.next(), role);
            let mut has_connected = false;
            let lost = loop {
                let event = tokio::select! {
                    event = connection.next() => event,
                    () = self.drained.cancelled() => return disconnect(connection).await,
                };
                match event {
                    Ok(event) => {
                        has_connected = true;
                        if let Err(lost) = self.handle(event, &connection.client).await {
                            break lost;
                        }
                    }
                    Err(lost) => break lost,
                }
            };
            choice.ended(has_connected, &lost);
            // A connection that was refused its subscription is a failure like any other.
            if self.subscribed.send_replace(false) {
                backoff.reset();
                is_failing = false;
            }
            report(&lost, &self.endpoint, is_failing);
            is_failing = true;
            tokio::select! {
                () = backoff.pause() => {}
                () = self.drained.cancelled() => return,
            }
        }
    }

    async fn handle(&mut self, event: Event, client: &Client) -> Result<(), Lost> {
        match event {
            Event::Connected { has_shared_subscriptions, .. } => {
                self.has_shared_subscriptions = has_shared_subscriptions && !self.is_sharing_refused;
                self.subscribe(client);
            }
            Event::Subscribed { refusal: None } => {
                tracing::info!(broker = %self.endpoint.url, "receiving messages");
                if let Some(on_granted) = &self.subscription.on_granted {
                    on_granted();
                }
                self.subscribed.send_replace(true);
            }
            Event::Subscribed { refusal: Some(reason) } => return self.refused(&reason),
            Event::Unsubscribed if self.is_leaving() => _ = self.subscribed.send_replace(true),
            Event::Received(received) => self.receive(received, client).await,
            Event::Unsubscribed | Event::Sent(_) | Event::Confirmed { .. } => {}
        }
        Ok(())
    }

    fn subscribe(&self, client: &Client) {
        let Subscription { filters, group, .. } = &self.subscription;
        if let Some(group) = group {
            let shared: Vec<_> = filters.iter().map(|filter| format!("$share/{}/{filter}", group.name)).collect();
            if self.is_leaving() {
                client.unsubscribe(filters);
                return client.unsubscribe(&shared);
            }
            let wants_share = group.membership == Membership::Shared;
            let is_shared = wants_share && self.has_shared_subscriptions;
            if wants_share && !is_shared {
                tracing::warn!(
                    broker = %self.endpoint.url,
                    "the broker has no shared subscriptions: run only one bridge, or each publishes every message"
                );
            }
            let (wanted, former) = if is_shared { (&shared, filters) } else { (filters, &shared) };
            // The session may still have the other form, from an earlier run with other settings: a message that
            // matches both would come twice. A new connection has room for both requests.
            client.unsubscribe(former);
            client.subscribe(wanted);
        } else {
            client.subscribe(filters);
        }
    }

    fn is_leaving(&self) -> bool {
        self.subscription.group.is_some_and(|group| group.membership == Membership::Leaving)
    }

    fn refused(&mut self, reason: &str) -> Result<(), Lost> {
        let broker = &self.endpoint.url;
        if self.has_shared_subscriptions && reason == "SharedSubscriptionsNotSupported" {
            self.is_sharing_refused = true;
        } else {
            tracing::error!(
                %broker, reason, filters = ?self.subscription.filters,
                "the broker refused the subscription: let this user read these topics in its access control"
            );
        }
        Err(Lost::because(format!("the subscription was refused: {reason}")))
    }

    /// Hands a message on. When too many are in progress, it waits, and so does whatever the broker sends next.
    async fn receive(&self, message: Received, client: &Client) {
        self.received.fetch_add(1, Ordering::Relaxed);
        let Received { topic, payload, packet, is_repeated } = message;
        if self.draining.is_cancelled() {
            return;
        }
        let permit = match self.in_flight.clone().try_acquire_owned() {
            Ok(permit) => permit,
            // It was sent at most once: nobody keeps it.
            Err(_) if packet.is_none() && self.subscription.on_granted.is_none() => {
                return crate::metrics::dropped("too many in progress");
            }
            Err(_) => match self.in_flight.clone().acquire_owned().await {
                Ok(permit) => permit,
                // Nobody closes it.
                Err(_) => return,
            },
        };
        let client = client.clone();
        let acknowledge = async move {
            if let Some(packet) = packet {
                client.acknowledge(packet).await;
            }
        };
        let ack = Ack::new(acknowledge, permit);
        if payload.len() > PACKET_BYTES_MAX as usize {
            tracing::error!(topic, bytes = payload.len(), "dropped a message that is too large");
            crate::metrics::dropped("too large");
            return ack.acknowledge().await;
        }
        (self.receive)(Delivery { topic, payload, is_repeated, ack });
    }
}

/// Ends the session that a broker keeps, and drops what is in it; false if the broker cannot be reached.
pub(crate) async fn end_session(endpoint: &Endpoint) -> bool {
    let role = Role::Subscriber { in_flight_max: 1, keeps_session: false };
    for protocol in [Protocol::V5, Protocol::V4] {
        let mut connection = Connection::open(endpoint, protocol, role);
        if matches!(connection.next().await, Ok(Event::Connected { .. })) {
            disconnect(connection).await;
            return true;
        }
    }
    false
}

/// Ends a connection behind the acknowledgements that the library has not sent yet.
async fn disconnect(mut connection: Connection) {
    connection.client.disconnect().await;
    // Without a connection there is nothing to send.
    _ = timeout(DISCONNECT_WAIT, async { while connection.next().await.is_ok() {} }).await;
}

/// How often MQTT 5 is tried before 3.1.1, where the broker closes the connection without a word.
const V5_TRIES: u32 = 3;

/// Which version of the protocol to connect with: 5, unless the broker does not know it.
#[derive(Default)]
pub(super) struct ProtocolChoice {
    closed: u32,
    is_refused: bool,
    /// Whether only 3.1.1 is used.
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
