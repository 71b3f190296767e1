//! Receives messages, each once from the processes that subscribe, and those of a device in their order.
//!
//! The processes share a subscription. Where the broker has no shared ones, they take turns with one session.
//!
//! A broker may give a message to a session whose process is away, although others are there. So a process that is
//! stopped leaves, and ends its session. The last one does not: what comes waits there until it starts again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use link::{
    backoff::Backoff,
    delivery::Delivery,
    mqtt::{Endpoint, Group, Membership, Subscriber, Subscription, end_session},
};
use server::telemetry::Health;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::leases::{ReceiveLease, ReceiveLeases};
use crate::{
    environment::state_dir::StateDir,
    metrics,
    receive::{receive, report_connection},
};

/// The processes that share what matches.
const GROUP: &str = "airlock";
/// Maximum number of messages that are not acknowledged yet. So few that one application alone is not refused for
/// having too many in progress.
const IN_FLIGHT_MAX: u16 = 64;
/// Interval at which a process checks whether it is its turn.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Time without a connection after which a process leaves its turn to others, which may have one.
const UNCONNECTED_MAX: Duration = Duration::from_secs(10);

/// Number of failures after which a message is given up.
const FAILURES_MAX: u32 = 5;
/// Maximum time that a stopping process spends on leaving.
const LEAVE_MAX: Duration = Duration::from_secs(10);

/// A message of the broker.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// Topic on which it was published.
    pub topic: String,
    /// Its content.
    pub payload: Bytes,
    /// True if the broker may have kept the message while others received what was published later.
    pub is_late: bool,
    /// True if one more failure drops the message.
    pub is_last_attempt: bool,
}

/// Result of an attempt to deal with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is dealt with.
    Done,
    /// It cannot be dealt with now. It comes again until it can.
    Unavailable,
    /// Something is broken. It comes again, but not for ever: it holds a place that others need.
    Failed,
}

/// Deals with messages.
pub trait BrokerReceiver: Send + Sync {
    /// Deals with a message. Those of a topic come one after the other.
    fn receive(&self, message: ReceivedMessage) -> BoxFuture<'_, Attempt>;
}

/// A subscription that is made again whenever the connection is lost.
pub struct BrokerSubscription {
    /// True while this process receives, or another one does in its place.
    received: watch::Receiver<bool>,
    stopping: CancellationToken,
    task: AbortOnDropHandle<()>,
    _state_dir: StateDir,
}

impl BrokerSubscription {
    pub(super) fn start(
        endpoint: Endpoint,
        filter: &str,
        receiver: impl BrokerReceiver + 'static,
        leases: impl ReceiveLeases + 'static,
        state_dir: StateDir,
    ) -> Self {
        Self::run((endpoint, filter, receiver), state_dir, |receiving| async move { receiving.run(&leases).await })
    }

    /// Receives nothing new, but deals with what the broker has kept for this process, and ends its session.
    pub(super) fn leave(
        endpoint: Endpoint,
        filter: &str,
        receiver: impl BrokerReceiver + 'static,
        state_dir: StateDir,
    ) -> Self {
        Self::run((endpoint, filter, receiver), state_dir, |receiving| async move { receiving.leave_for_good().await })
    }

    fn run<F: Future<Output = ()> + Send>(
        (endpoint, filter, receiver): (Endpoint, &str, impl BrokerReceiver + 'static),
        state_dir: StateDir,
        work: impl FnOnce(Receiving) -> F + Send + 'static,
    ) -> Self {
        let (sender, received) = watch::channel(false);
        let stopping = CancellationToken::new();
        let receiving = Receiving {
            endpoint,
            filter: filter.to_owned(),
            receiver: Arc::new(receiver),
            received: sender,
            stopping: stopping.clone(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(async move { work(receiving).await }));
        Self { received, stopping, task, _state_dir: state_dir }
    }

    /// Reports the connection as a health check.
    pub fn report_to(&self, health: &Health) {
        report_connection(health, "subscribed to the MQTT broker", &self.received);
    }

    /// Leaves what comes to other processes that share or take turns, and disconnects. That takes some seconds.
    pub async fn stop(self) {
        self.stopping.cancel();
        // A panic of the task has been logged.
        _ = self.task.await;
    }
}

struct Receiving {
    endpoint: Endpoint,
    filter: String,
    receiver: Arc<dyn BrokerReceiver>,
    received: watch::Sender<bool>,
    stopping: CancellationToken,
}

impl Receiving {
    async fn run(self, leases: &dyn ReceiveLeases) {
        let subscriber = self.subscribe(self.endpoint.clone(), Membership::SharedOnly, &self.stopping);
        let can_share = tokio::select! {
            () = self.stopping.cancelled() => true,
            () = subscriber.cannot_share() => false,
            () = self.follow(subscriber.connection().connected()) => true,
            () = self.take_part(subscriber.connection().connected(), leases) => true,
        };
        subscriber.drain().await;
        if can_share {
            self.leave_to_others(leases).await;
        } else {
            tracing::info!(
                broker = %self.endpoint.url,
                "the broker has no shared subscriptions: of the handlers with one store, one at a time receives"
            );
            // It stops by itself only between two turns, so that each ends properly.
            self.acquire_leases(leases).await;
        }
    }

    fn subscribe(&self, endpoint: Endpoint, membership: Membership, stopping: &CancellationToken) -> Subscriber {
        let subscription = Subscription {
            group: Some(Group { name: GROUP, membership }),
            keeps_session: true,
            tries_mqtt5: true,
            drops_retained: true,
            ..Subscription::to([self.filter.clone()], IN_FLIGHT_MAX)
        };
        let (receiver, stopping) = (self.receiver.clone(), stopping.clone());
        let work = move |delivery| -> BoxFuture<'static, ()> {
            let (receiver, stopping) = (receiver.clone(), stopping.clone());
            Box::pin(async move { deal_with(delivery, receiver.as_ref(), &stopping).await })
        };
        receive(endpoint, subscription, str::to_owned, work)
    }

    /// Tells the others that this process takes part, once the broker gives it a share.
    async fn take_part(&self, mut subscribed: watch::Receiver<bool>, leases: &dyn ReceiveLeases) {
        // It fails only when the subscriber has ended.
        _ = subscribed.wait_for(|subscribed| *subscribed).await;
        leases.take_part(&self.endpoint.client_id).await;
    }

    /// Leaves, if there are others to take what comes.
    async fn leave_to_others(&self, leases: &dyn ReceiveLeases) {
        self.received.send_replace(false);
        match leases.leave(&self.endpoint.client_id).await {
            Ok(true) => return self.leave(sleep(LEAVE_MAX)).await,
            Ok(false) => {}
            Err(error) => tracing::warn!(error, "cannot find out whether other handlers receive downlinks"),
        }
        let Endpoint { url, client_id, .. } = &self.endpoint;
        tracing::info!(
            broker = %url, client_id,
            "downlinks wait in the broker for this handler: start it again with the same data directory within a day"
        );
    }

    async fn leave_for_good(&self) {
        self.received.send_replace(true);
        self.leave(self.stopping.cancelled()).await;
    }

    /// Deals with what the broker has kept for this process, and ends its session, unless `over` comes first.
    async fn leave(&self, over: impl Future) {
        let giving_up = CancellationToken::new();
        let subscriber = self.subscribe(self.endpoint.clone(), Membership::Leaving, &giving_up);
        let is_done = tokio::select! {
            () = subscriber.idle() => true,
            _ = over => false,
        };
        giving_up.cancel();
        subscriber.drain().await;
        let Endpoint { url, client_id, .. } = &self.endpoint;
        if is_done && end_session(&self.endpoint).await {
            tracing::info!(broker = %url, client_id, "this handler leaves downlinks to the others");
        } else {
            tracing::warn!(
                broker = %url, client_id,
                "the broker may have kept downlinks for this handler: start it again with the same data directory \
                 within a day"
            );
        }
    }

    /// Reports a subscription for as long as it lasts.
    async fn follow(&self, mut subscribed: watch::Receiver<bool>) {
        loop {
            let is_subscribed = *subscribed.borrow_and_update();
            self.received.send_replace(is_subscribed);
            if subscribed.changed().await.is_err() {
                return;
            }
        }
    }

    async fn acquire_leases(&self, leases: &dyn ReceiveLeases) {
        let mut is_failing = false;
        loop {
            match leases.acquire().await {
                Ok(Some(lease)) => {
                    self.serve(lease.as_ref()).await;
                    lease.release().await;
                    is_failing = false;
                }
                Ok(None) => {
                    self.received.send_replace(true);
                    is_failing = false;
                }
                Err(error) => {
                    self.received.send_replace(false);
                    if !is_failing {
                        tracing::warn!(error, "cannot find out whether another handler receives downlinks");
                    }
                    is_failing = true;
                }
            }
            if self.stopping.run_until_cancelled(sleep(LOOK_INTERVAL)).await.is_none() {
                return;
            }
        }
    }

    /// Receives until another process may, the connection is lost for good, or this process stops.
    async fn serve(&self, lease: &dyn ReceiveLease) {
        tracing::info!(broker = %self.endpoint.url, "this handler receives downlinks");
        let over = self.stopping.child_token();
        let endpoint = self.endpoint.with_client_id(lease.client_id().to_owned());
        let subscriber = self.subscribe(endpoint, Membership::Alone, &over);
        let is_lost = tokio::select! {
            () = self.stopping.cancelled() => false,
            () = lease.lost() => true,
            () = unconnected(subscriber.connection().connected()) => true,
            () = self.follow(subscriber.connection().connected()) => true,
        };
        self.received.send_replace(false);
        // What is in progress then goes to the next process, unless it is done already.
        over.cancel();
        if is_lost {
            tracing::info!(broker = %self.endpoint.url, "this handler leaves downlinks to another");
        } else {
            subscriber.drain().await;
        }
    }
}

/// Waits until there was no connection for so long that another process may be better off.
async fn unconnected(mut subscribed: watch::Receiver<bool>) {
    loop {
        let connected = timeout(UNCONNECTED_MAX, subscribed.wait_for(|subscribed| *subscribed)).await;
        let is_connected = connected.is_ok_and(|connected| connected.is_ok());
        if !is_connected || subscribed.wait_for(|subscribed| !subscribed).await.is_err() {
            return;
        }
    }
}

/// Offers a message until it is dealt with or given up, and acknowledges it then. What is not dealt with when the
/// process stops comes again on its next start.
async fn deal_with(delivery: Delivery, receiver: &dyn BrokerReceiver, stopping: &CancellationToken) {
    let Delivery { topic, payload, is_late, ack, .. } = delivery;
    // What is repeated waits behind the first in its lane.
    if ack.is_settled() {
        tracing::debug!(topic, "a message was repeated that is dealt with");
        return ack.acknowledge().await;
    }
    let (mut backoff, mut failures) = (Backoff::default(), 0);
    loop {
        let is_last_attempt = failures + 1 == FAILURES_MAX;
        let message = ReceivedMessage { topic: topic.clone(), payload: payload.clone(), is_late, is_last_attempt };
        match receiver.receive(message).await {
            Attempt::Done => break,
            Attempt::Unavailable => {}
            Attempt::Failed if is_last_attempt => {
                metrics::dropped("failed");
                break;
            }
            Attempt::Failed => failures += 1,
        }
        metrics::retried();
        if stopping.run_until_cancelled(backoff.pause()).await.is_none() {
            return;
        }
    }
    ack.acknowledge().await;
}
