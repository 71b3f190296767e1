//! The task of a subscriber: connects, subscribes, and hands messages on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{Group, Membership, ProtocolChoice, Subscription, report};
use crate::{
    backoff::Backoff,
    connection_state::ConnectionReporter,
    delivery::{Ack, Delivery},
    mqtt::{
        connection::BrokerConnection,
        endpoint::Endpoint,
        lost::Lost,
        packet::{Event, PACKET_BYTES_MAX, Received, Role},
        repeats::Repeats,
    },
};

/// Time after a connection was resumed within which messages may be those that the broker kept meanwhile. It does not
/// say which of them are.
const LATE_TIME: Duration = Duration::from_secs(10);

/// A connection has one request of each kind.
const SUBSCRIBE_PACKET: u16 = 1;
const UNSUBSCRIBE_PACKET: u16 = 2;

pub(super) struct Task<F> {
    pub(super) endpoint: Endpoint,
    pub(super) subscription: Subscription,
    pub(super) receive: F,
    pub(super) in_flight: Arc<Semaphore>,
    pub(super) received: Arc<AtomicU64>,
    pub(super) asking: Arc<Notify>,
    pub(super) answered: watch::Sender<u64>,
    pub(super) subscribed: ConnectionReporter,
    pub(super) cannot_share: CancellationToken,
    pub(super) draining: CancellationToken,
    pub(super) drained: CancellationToken,
    pub(super) has_shared_subscriptions: bool,
    pub(super) is_sharing_refused: bool,
    /// End of the time in which messages may be late.
    pub(super) late_until: Option<Instant>,
    pub(super) repeats: Repeats,
}

impl<F: Fn(Delivery)> Task<F> {
    pub(super) async fn run(mut self) {
        let Subscription { in_flight_max, keeps_session, tries_mqtt5, .. } = self.subscription;
        let mut choice = ProtocolChoice { is_fixed: !tries_mqtt5, ..ProtocolChoice::default() };
        let (mut backoff, mut is_failing) = (Backoff::default(), false);
        let role = Role::Subscriber { in_flight_max, keeps_session };
        loop {
            let opened = tokio::select! {
                opened = BrokerConnection::open(&self.endpoint, choice.next(), role) => opened,
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
            if self.subscribed.lost(&lost.reason) {
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

    /// Receives until the connection is lost; `None` when the subscription is drained.
    async fn serve(&mut self, connection: &mut BrokerConnection) -> Option<Lost> {
        loop {
            let event = tokio::select! {
                event = connection.next() => event,
                () = self.asking.notified() => match self.subscribe(connection) {
                    Ok(()) => continue,
                    Err(lost) => Err(lost),
                },
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

    async fn handle(&mut self, event: Event, connection: &mut BrokerConnection) -> Result<(), Lost> {
        match event {
            Event::Connected(broker) => {
                self.late_until = broker.has_session.then(|| Instant::now() + LATE_TIME);
                if !broker.has_session {
                    self.repeats.forget();
                }
                self.has_shared_subscriptions = broker.has_shared_subscriptions && !self.is_sharing_refused;
                self.subscribe(connection)?;
            }
            Event::Subscribed { refusal: None, .. } => {
                tracing::info!(broker = %self.endpoint.url, "receiving messages");
                if let Some(on_granted) = &self.subscription.on_granted {
                    on_granted();
                }
                self.subscribed.made();
            }
            Event::Subscribed { refusal: Some(reason), .. } => return self.refused(&reason),
            Event::Unsubscribed if self.is_leaving() => {
                self.subscribed.made();
                self.answered.send_modify(|answers| *answers += 1);
            }
            Event::Received(received) => self.receive(received, connection).await?,
            Event::Pong => self.repeats.answered(),
            Event::Unsubscribed | Event::Confirmed { .. } => {}
        }
        Ok(())
    }

    fn subscribe(&self, connection: &mut BrokerConnection) -> Result<(), Lost> {
        let Subscription { filters, group, .. } = &self.subscription;
        if let Some(group) = group {
            let shared: Vec<_> = filters.iter().map(|filter| format!("$share/{}/{filter}", group.name)).collect();
            if self.is_leaving() {
                return connection.unsubscribe(UNSUBSCRIBE_PACKET, &[filters.as_slice(), &shared].concat());
            }
            let wants_share = matches!(group.membership, Membership::Shared | Membership::SharedOnly);
            let is_shared = wants_share && self.has_shared_subscriptions;
            if group.membership == Membership::SharedOnly && !is_shared {
                self.cannot_share.cancel();
                return connection.unsubscribe(UNSUBSCRIBE_PACKET, &[filters.as_slice(), &shared].concat());
            }
            if wants_share && !is_shared {
                tracing::warn!(
                    broker = %self.endpoint.url,
                    "the broker has no shared subscriptions: run only one such process, or each gets every message"
                );
            }
            let (wanted, former) = if is_shared { (&shared, filters) } else { (filters, &shared) };
            // The session may still have the other form, from an earlier run with other settings: a message that
            // matches both would come twice.
            connection.unsubscribe(UNSUBSCRIBE_PACKET, former)?;
            connection.subscribe(SUBSCRIBE_PACKET, wanted)
        } else {
            connection.subscribe(SUBSCRIBE_PACKET, filters)
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

    /// Returns true if repeated messages can be recognized, which holds where the broker shares. Others may repeat
    /// messages under other numbers.
    fn tells_repeats(&self) -> bool {
        let is_shared = |group: Group| group.membership == Membership::SharedOnly;
        self.has_shared_subscriptions && self.subscription.group.is_some_and(is_shared)
    }

    /// Hands a message on. When too many are in progress, it waits, and so do the broker's next messages.
    async fn receive(&mut self, received: Received, connection: &mut BrokerConnection) -> Result<(), Lost> {
        self.received.fetch_add(1, Ordering::Relaxed);
        let Received { topic, payload, packet, is_duplicate, is_retained } = received;
        if self.draining.is_cancelled() {
            return Ok(());
        }
        let is_late = is_duplicate || self.late_until.is_some_and(|until| Instant::now() < until);
        let Some(permit) = self.permit(packet, connection).await? else {
            crate::metrics::dropped("too many in progress");
            return Ok(());
        };
        let acknowledger = packet.map(|packet| connection.arrived(packet));
        let acknowledge = async move {
            if let Some(acknowledger) = acknowledger {
                acknowledger.acknowledge().await;
            }
        };
        let ack = Ack::new(acknowledge, permit);
        if is_retained && self.subscription.drops_retained {
            tracing::warn!(topic, "dropped a retained message: publish it without the retain flag");
            crate::metrics::dropped("retained");
            return connection.write_until(ack.acknowledge()).await;
        }
        if payload.len() > PACKET_BYTES_MAX as usize {
            tracing::error!(topic, bytes = payload.len(), "dropped a message that is too large");
            crate::metrics::dropped("too large");
            return connection.write_until(ack.acknowledge()).await;
        }
        let ack = match packet {
            Some(packet) if self.tells_repeats() => {
                ack.settling(self.repeats.note(packet, is_duplicate, &topic, &payload))
            }
            _ => ack,
        };
        (self.receive)(Delivery { topic, payload, is_duplicate, is_late, ack });
        Ok(())
    }

    /// A place among the messages in progress; none for a message that does not wait for one.
    async fn permit(
        &self,
        packet: Option<u16>,
        connection: &mut BrokerConnection,
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
