//! The handler's own connection to the MQTT broker, embedded or not: kept up, and never waited for.

mod inbox;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use rumqttc::{AsyncClient, ConnectionError, Event, EventLoop, MqttOptions, Outgoing, Packet, QoS, Request};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::Random;

pub use self::inbox::{Arrival, Inbox};
use mqtt::{Endpoint, PACKET_BYTES_MAX};

use crate::{
    Error, metrics,
    share::{Share, Shares},
};

/// How many messages the library holds; few, because after a reconnection it sends those slowly.
const LIBRARY_QUEUE_MAX: usize = 64;

/// How many messages are kept that the library had taken when connections broke in quick succession.
const UNSENT_MAX: usize = 4 * LIBRARY_QUEUE_MAX;

/// Room for what MQTT puts before a topic and a body.
const HEADER_BYTES_MAX: usize = 16;

const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The wait after the first failure; each further one doubles it, up to the longest.
const RETRY_WAIT: Duration = Duration::from_millis(100);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

/// A connection to a broker that comes back by itself.
///
/// What is published while the broker is away waits in a bounded queue and goes out in order once it is back.
pub struct Bus {
    queue: mpsc::Sender<Publication>,
    shares: Arc<Shares>,
    dropped: Arc<Dropped>,
    connected: watch::Receiver<bool>,
    closing: CancellationToken,
    closed: CancellationToken,
    /// Ends with the bus, whether or not it was closed.
    _task: AbortOnDropHandle<()>,
}

struct Publication {
    topic: String,
    body: Bytes,
    /// Its place in the queue.
    _share: Share,
}

/// Messages that were given up and not yet reported.
#[derive(Default)]
struct Dropped(AtomicU64);

impl Dropped {
    /// Counts messages; says so at once only for the first, because many follow.
    fn add(&self, messages: u64) {
        metrics::output_dropped(messages);
        if messages > 0 && self.0.fetch_add(messages, Ordering::Relaxed) == 0 {
            tracing::warn!("messages are dropped: more wait for the MQTT broker than may");
        }
    }

    /// Says how many there were since the last time.
    fn report(&self) {
        let messages = self.0.swap(0, Ordering::Relaxed);
        if messages > 0 {
            tracing::warn!(messages, "messages were dropped while the MQTT broker was away or too slow");
        }
    }
}

impl Bus {
    /// Connects in the background; `queue_max` messages may wait.
    pub fn connect(endpoint: &Endpoint, queue_max: usize, random: Arc<dyn Random>) -> Result<Self, Error> {
        let (client, events) = AsyncClient::new(options(endpoint, "outbox", random.as_ref())?, LIBRARY_QUEUE_MAX);
        let (queue, waiting) = mpsc::channel(queue_max);
        let dropped = Arc::new(Dropped::default());
        let (connected_now, connected) = watch::channel(false);
        let line = Line { events, unsent: VecDeque::new(), dropped: dropped.clone(), connected: connected_now, random };
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let pump = pump(waiting, client, dropped.clone(), closing.clone());
        let guard = closed.clone().drop_guard();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::join!(line.keep(), pump);
            drop(guard);
        }));
        Ok(Self { queue, shares: Arc::default(), dropped, connected, closing, closed, _task: task })
    }

    /// Puts a message into the queue, or drops it when that is full or the message is too large.
    ///
    /// The queue is full for an application, which is the first level of the topic, once it has as many messages there
    /// as there is room left for others.
    pub fn publish(&self, topic: String, body: Bytes) {
        if !self.is_taken(topic, body) {
            self.dropped.add(1);
        }
    }

    fn is_taken(&self, topic: String, body: Bytes) -> bool {
        let owner = topic.split('/').next().unwrap_or_default();
        if topic.len() + body.len() + HEADER_BYTES_MAX > PACKET_BYTES_MAX {
            return false;
        }
        let share = self.shares.take(owner, self.queue.capacity());
        share.is_some_and(|share| self.queue.try_send(Publication { topic, body, _share: share }).is_ok())
    }

    /// Whether the broker is there now.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Returns once the broker is there.
    pub async fn connected(&self) {
        // The sender lives as long as the task, and a task that ended has nobody to wait for.
        _ = self.connected.clone().wait_for(|connected| *connected).await;
    }

    /// Returns once the broker is away.
    pub async fn disconnected(&self) {
        _ = self.connected.clone().wait_for(|connected| !*connected).await;
    }

    /// Takes no more, publishes what waits, then leaves; gives up after `wait`.
    pub async fn close(&self, wait: Duration) {
        self.closing.cancel();
        if timeout(wait, self.closed.cancelled()).await.is_err() {
            tracing::warn!("the MQTT broker did not take the last messages in time");
        }
        self.dropped.report();
    }
}

/// Reads `host:port` and puts everything else down that a connection needs.
///
/// `role` keeps the connections of one handler apart at the broker.
fn options(endpoint: &Endpoint, role: &str, random: &dyn Random) -> Result<MqttOptions, Error> {
    let parts = endpoint.address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| {
        Error::invalid("MQTT broker address", format!("must be <host>:<port>, but is `{}`", endpoint.address))
    })?;
    let mut id = [0; 8];
    random.fill(&mut id);
    let mut options = MqttOptions::new(format!("handler-{role}-{:016x}", u64::from_be_bytes(id)), host, port);
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_credentials(endpoint.username.as_str(), endpoint.password.expose())
        .set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
    Ok(options)
}

/// Hands messages to the library one by one, and leaves when there will be no more.
async fn pump(
    mut waiting: mpsc::Receiver<Publication>,
    client: AsyncClient,
    dropped: Arc<Dropped>,
    closing: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            next = waiting.recv() => next,
            () = closing.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
        };
        let Some(Publication { topic, body, .. }) = next else { break };
        if client.publish_bytes(topic, QoS::AtMostOnce, false, body).await.is_err() {
            dropped.add(1);
        }
    }
    // It fails only when the connection is given up already.
    _ = client.disconnect().await;
}

/// The connection itself.
struct Line {
    events: EventLoop,
    /// What the library had taken but not sent when the connection broke; it would forget it.
    unsent: VecDeque<Request>,
    dropped: Arc<Dropped>,
    connected: watch::Sender<bool>,
    random: Arc<dyn Random>,
}

impl Line {
    /// Keeps the connection up until it is told to leave.
    async fn keep(mut self) {
        let mut network = self.events.network_options();
        network.set_tcp_nodelay(true);
        self.events.set_network_options(network);
        let mut failures = 0;
        loop {
            match self.events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    failures = 0;
                    self.up();
                }
                Ok(Event::Outgoing(Outgoing::Disconnect)) => return,
                Ok(Event::Outgoing(Outgoing::PingReq)) => self.dropped.report(),
                Ok(_) => {}
                Err(error) => {
                    self.down(&error, failures);
                    sleep(retry_wait(failures, self.random.as_ref())).await;
                    failures += 1;
                }
            }
        }
    }

    fn up(&mut self) {
        self.events.pending.append(&mut self.unsent);
        self.dropped.report();
        self.connected.send_replace(true);
        tracing::info!("connected to the MQTT broker");
    }

    fn down(&mut self, error: &ConnectionError, failures: u32) {
        self.connected.send_replace(false);
        self.unsent.append(&mut self.events.pending);
        let over = self.unsent.len().saturating_sub(UNSENT_MAX);
        self.unsent.truncate(UNSENT_MAX);
        self.dropped.add(over as u64);
        if failures == 0 {
            tracing::warn!(%error, "no connection to the MQTT broker: messages wait until it is back");
        } else {
            tracing::debug!(%error, failures, "still no connection to the MQTT broker");
        }
    }
}

/// Between half and all of what doubles with every failure, so that many clients do not come back at once.
fn retry_wait(failures: u32, random: &dyn Random) -> Duration {
    let longest = RETRY_WAIT.saturating_mul(1 << failures.min(16)).min(RETRY_WAIT_MAX);
    let mut byte = [0];
    random.fill(&mut byte);
    longest / 2 + longest / 2 * u32::from(byte[0]) / 255
}
