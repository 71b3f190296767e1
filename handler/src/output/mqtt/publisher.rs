//! Publishes messages on `<app_id>/devices/<dev_id>/<topic>`, through a bounded queue that outlasts lost connections.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use client::mqtt::Connection;
use mqtt::{Endpoint, PACKET_BYTES_MAX};
use rumqttc::{AsyncClient, ConnectionError, Event as MqttEvent, Outgoing, Packet, QoS, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::concurrency_limit::{ConcurrencyLimit, Permit};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::{AppId, Random};

use super::{REQUESTS_MAX, connection, fields};
use crate::{
    metrics,
    output::{Event, Message, Output},
};

/// How many messages are kept that rumqttc had accepted when connections broke in quick succession.
const UNSENT_MAX: usize = 4 * REQUESTS_MAX;

/// Room for the header of a PUBLISH packet, besides topic and body.
const HEADER_BYTES_MAX: usize = 16;

/// What is published over MQTT, and how much may be queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MqttOutputSettings {
    /// How many messages may be queued for the broker before new ones are dropped; one application may use up to half
    /// of the queue.
    pub queue_messages_max: usize,
    /// Whether to publish each field of an uplink on its own topic as well.
    pub field_topics: bool,
}

impl Default for MqttOutputSettings {
    fn default() -> Self {
        Self { queue_messages_max: 10_000, field_topics: false }
    }
}

/// Publishes messages to an MQTT broker with QoS 0.
///
/// While the broker is unreachable, messages stay in the queue; they go out in order after the reconnection.
pub struct MqttOutput {
    queue: mpsc::Sender<Publication>,
    limit: Arc<ConcurrencyLimit>,
    dropped: Arc<Dropped>,
    field_topics: bool,
    connected: watch::Receiver<bool>,
    closing: CancellationToken,
    closed: CancellationToken,
    /// Ends the connection if the output is dropped without being closed.
    _task: AbortOnDropHandle<()>,
}

struct Publication {
    topic: String,
    body: Bytes,
    /// Held while the publication is queued.
    _permit: Permit,
}

impl MqttOutput {
    /// Connects in the background.
    pub fn connect(endpoint: &Endpoint, settings: &MqttOutputSettings, random: &dyn Random) -> Self {
        let (client, connection) = connection(endpoint, "outbox", random);
        let (queue, publications) = mpsc::channel(settings.queue_messages_max.clamp(1, Semaphore::MAX_PERMITS));
        let dropped = Arc::new(Dropped::default());
        let (connected_sender, connected) = watch::channel(false);
        let link =
            Link { connection, unsent: VecDeque::new(), dropped: Arc::clone(&dropped), connected: connected_sender };
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let forward = forward(publications, client, Arc::clone(&dropped), closing.clone());
        let guard = closed.clone().drop_guard();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::join!(link.run(), forward);
            drop(guard);
        }));
        let field_topics = settings.field_topics;
        Self { queue, limit: Arc::default(), dropped, field_topics, connected, closing, closed, _task: task }
    }

    /// Whether the broker is connected, now and as it changes.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Publishes what is queued and disconnects; gives up after `wait`.
    pub async fn close(&self, wait: Duration) {
        self.closing.cancel();
        if timeout(wait, self.closed.cancelled()).await.is_err() {
            tracing::warn!("the MQTT broker did not accept the last messages in time");
        }
        self.dropped.report();
    }

    /// Queues a publication, or drops it if it is too large or the application has used its share of the queue.
    fn enqueue(&self, app_id: &AppId, topic: String, body: Bytes) {
        let is_small = topic.len() + body.len() + HEADER_BYTES_MAX <= PACKET_BYTES_MAX;
        let permit = self.limit.acquire(app_id.as_str(), self.queue.capacity()).filter(|_| is_small);
        let is_queued =
            permit.is_some_and(|permit| self.queue.try_send(Publication { topic, body, _permit: permit }).is_ok());
        if !is_queued {
            self.dropped.add(1);
        }
    }
}

impl Output for MqttOutput {
    fn publish(&self, Message { app_id, dev_id, event }: Message) {
        let topic = format!("{app_id}/devices/{dev_id}/{}", event.topic());
        let body = match serde_json::to_vec(&event) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                tracing::error!(%app_id, %error, topic, "cannot serialize a message");
                return self.dropped.add(1);
            }
        };
        let fields = match &event {
            Event::Up(uplink) if self.field_topics => uplink.payload_fields.as_ref(),
            _ => None,
        };
        let Some(fields) = fields else { return self.enqueue(&app_id, topic, body) };
        self.enqueue(&app_id, topic.clone(), body);
        let each = &mut |topic, value: &str| self.enqueue(&app_id, topic, Bytes::from(value.to_owned()));
        if let Err(error) = fields::for_each(&topic, fields, each) {
            tracing::error!(%app_id, %error, topic, "cannot publish single fields");
        }
    }
}

/// Counts dropped messages that the log does not mention yet.
#[derive(Default)]
struct Dropped(AtomicU64);

impl Dropped {
    /// Counts messages. Only the first is logged at once, because many follow.
    fn add(&self, messages: u64) {
        metrics::output_dropped(messages);
        if messages > 0 && self.0.fetch_add(messages, Ordering::Relaxed) == 0 {
            tracing::warn!("dropping messages: the queue for the MQTT broker is full, or a message is too large");
        }
    }

    /// Logs how many messages were dropped since the last report.
    fn report(&self) {
        let messages = self.0.swap(0, Ordering::Relaxed);
        if messages > 0 {
            tracing::warn!(messages, "messages were dropped while the MQTT broker was unreachable or too slow");
        }
    }
}

/// Hands publications to rumqttc one by one; disconnects after the last.
async fn forward(
    mut publications: mpsc::Receiver<Publication>,
    client: AsyncClient,
    dropped: Arc<Dropped>,
    closing: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            next = publications.recv() => next,
            () = closing.cancelled(), if !publications.is_closed() => {
                publications.close();
                continue;
            }
        };
        let Some(Publication { topic, body, .. }) = next else { break };
        if client.publish_bytes(topic, QoS::AtMostOnce, false, body).await.is_err() {
            dropped.add(1);
        }
    }
    // This fails only if the connection has been given up already.
    _ = client.disconnect().await;
}

/// The connection, and the requests that survive its loss.
struct Link {
    connection: Connection,
    /// Requests that rumqttc had accepted but not sent when the connection broke; it would discard them.
    unsent: VecDeque<Request>,
    dropped: Arc<Dropped>,
    connected: watch::Sender<bool>,
}

impl Link {
    /// Keeps the connection up until the client disconnects.
    async fn run(mut self) {
        let mut is_failing = false;
        loop {
            match self.connection.poll().await {
                Ok(MqttEvent::Incoming(Packet::ConnAck(_))) => {
                    is_failing = false;
                    self.reconnected();
                }
                Ok(MqttEvent::Outgoing(Outgoing::Disconnect)) => return,
                Ok(MqttEvent::Outgoing(Outgoing::PingReq)) => self.dropped.report(),
                Ok(_) => {}
                Err(error) => {
                    self.failed(&error, is_failing);
                    is_failing = true;
                }
            }
        }
    }

    fn reconnected(&mut self) {
        self.connection.events.pending.append(&mut self.unsent);
        self.dropped.report();
        self.connected.send_replace(true);
        tracing::info!("connected to the MQTT broker");
    }

    fn failed(&mut self, error: &ConnectionError, is_failing: bool) {
        self.connected.send_replace(false);
        self.unsent.append(&mut self.connection.events.pending);
        let excess = self.unsent.len().saturating_sub(UNSENT_MAX);
        self.unsent.truncate(UNSENT_MAX);
        self.dropped.add(excess as u64);
        if is_failing {
            tracing::debug!(%error, "still no connection to the MQTT broker");
        } else {
            tracing::warn!(%error, "no connection to the MQTT broker: messages are queued until it is back");
        }
    }
}
