//! Receives messages, each with a handle to acknowledge it once it is dealt with.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    connection::Connection,
    endpoint::Endpoint,
    lost::Lost,
    packet::{Event, PACKET_BYTES_MAX, Received, Role},
    protocol::Protocol,
};
use crate::{
    backoff::Backoff,
    delivery::{Ack, Delivery},
};

/// After how long without a message the broker has no more that it kept.
const IDLE_TIME: Duration = Duration::from_secs(3);

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
            let opened = tokio::select! {
                opened = Connection::open(&self.endpoint, choice.next(), role) => opened,
                () = self.drained.cancelled() => return,
            };
            let (has_connected, lost) = match opened {
                Ok(mut connection) => match self.serve(&mut connection).await {
                    Some(lost) => (true, lost),
                    None => return connection.disconnect().await,
                },
                Err(lost) => (false, lost),
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

    /// Receives until the connection is lost; none when the subscription is drained.
    async fn serve(&mut self, connection: &mut Connection) -> Option<Lost> {
        loop {
            let event = tokio::select! {
                event = connection.next() => event,
                () = self.drained.cancelled() => return None,
            };
            let handled = match event {
                Ok(event) => self.handle(event, connection).await,
                Err(lost) => Err(lost),
            };
            if let Err(lost) = handled {
                return Some(lost);
            }
        }
    }

    async fn handle(&mut self, event: Event, connection: &mut Connection) -> Result<(), Lost> {
        match event {
            Event::Connected(broker) => {
                self.has_shared_subscriptions = broker.has_shared_subscriptions && !self.is_sharing_refused;
                self.subscribe(connection)?;
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
            Event::Received(received) => self.receive(received, connection).await?,
            Event::Unsubscribed | Event::Confirmed { .. } | Event::Pong => {}
        }
        Ok(())
    }

    fn subscribe(&self, connection: &mut Connection) -> Result<(), Lost> {
        let Subscription { filters, group, .. } = &self.subscription;
        if let Some(group) = group {
            let shared: Vec<_> = filters.iter().map(|filter| format!("$share/{}/{filter}", group.name)).collect();
            if self.is_leaving() {
                return connection.unsubscribe(&[filters.as_slice(), &shared].concat());
            }
            let wants_share = group.membership == Membership::Shared;
            let is_shared = wants_share && self.has_shared_subscriptions;
            if wants_share && !is_shared {
                tracing::warn!(
                    broker = %self.endpoint.url,
                    "the broker has no shared subscriptions: run only one such process, or each gets every message"
                );
            }
            let (wanted, former) = if is_shared { (&shared, filters) } else { (filters, &shared) };
            // The session may still have the other form, from an earlier run with other settings: a message that
            // matches both would come twice.
            connection.unsubscribe(former)?;
            connection.subscribe(wanted)
        } else {
            connection.subscribe(filters)
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
    async fn receive(&self, received: Received, connection: &mut Connection) -> Result<(), Lost> {
        self.received.fetch_add(1, Ordering::Relaxed);
        let Received { topic, payload, packet, is_repeated } = received;
        if self.draining.is_cancelled() {
            return Ok(());
        }
        let Some(permit) = self.permit(packet, connection).await? else {
            crate::metrics::dropped("too many in progress");
            return Ok(());
        };
        let acknowledger = connection.acknowledger();
        let acknowledge = async move {
            if let Some(packet) = packet {
                acknowledger.acknowledge(packet).await;
            }
        };
        let ack = Ack::new(acknowledge, permit);
        if payload.len() <= PACKET_BYTES_MAX as usize {
            (self.receive)(Delivery { topic, payload, is_repeated, ack });
            return Ok(());
        }
        tracing::error!(topic, bytes = payload.len(), "dropped a message that is too large");
        crate::metrics::dropped("too large");
        connection.write_until(ack.acknowledge()).await
    }

    /// A place among the messages in progress; none for a message that does not wait for one.
    async fn permit(
        &self,
        packet: Option<u16>,
        connection: &mut Connection,
    ) -> Result<Option<OwnedSemaphorePermit>, Lost> {
        if let Ok(permit) = self.in_flight.clone().try_acquire_owned() {
            return Ok(Some(permit));
        }
        // It was sent at most once: nobody keeps it.
        if packet.is_none() && self.subscription.on_granted.is_none() {
            return Ok(None);
        }
        // It fails only for a closed semaphore, which this one never is.
        Ok(connection.write_until(self.in_flight.clone().acquire_owned()).await?.ok())
    }
}

/// Ends the session that a broker keeps, and drops what is in it; false if the broker cannot be reached.
pub(crate) async fn end_session(endpoint: &Endpoint) -> bool {
    let role = Role::Subscriber { in_flight_max: 1, keeps_session: false };
    for protocol in [Protocol::V5, Protocol::V4] {
        if let Ok(connection) = Connection::open(endpoint, protocol, role).await {
            connection.disconnect().await;
            return true;
        }
    }
    false
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
