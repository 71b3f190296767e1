//! Cost of each delivery of an uplink to many subscribers, and whether those that keep up get all of them.
//!
//! Starts `airlock serve` as a process of its own, and then Mosquitto; `AIRLOCK_BINARY` names another binary than the one
//! built with this bench. `UPLINKS_PER_SECOND` (1,000 by default) pass the demo's three functions, first without
//! subscribers and then with ten at QoS 1; Mosquitto gets the same messages from a publisher. What a broker uses more of
//! CPU time, from /proc, is divided by the deliveries. Each row takes `UPLINK_SECONDS`, 10 by default.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod server_process;

use std::{
    env,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use server_process::{DEVICE, ServerProcess};
use testing::{Mosquitto, load::Load, process::cpu_time};
use tokio::{task::JoinSet, time::interval};

const SUBSCRIBERS: usize = 10;
/// Number of connections that send uplinks.
const CONNECTIONS: usize = 16;
/// A row ends when all is delivered, or nothing arrives for this long.
const QUIET: Duration = Duration::from_millis(500);
const TOPIC: &str = "bench-app/devices/dev/up";

/// Where, and as whom, subscribers connect.
struct Account {
    address: SocketAddr,
    credentials: Option<(String, String)>,
}

/// Deliveries that the subscribers have received.
#[derive(Default)]
struct Received {
    deliveries: AtomicUsize,
    payload: Mutex<Bytes>,
}

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let number = |name, default| env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap());
    let (per_second, time) = (number("UPLINKS_PER_SECOND", 1000), Duration::from_secs(number("UPLINK_SECONDS", 10)));
    println!(
        "| broker | messages/s | CPU per message without subscribers | CPU per delivery to {SUBSCRIBERS} | delivered |"
    );
    println!("|---|--:|--:|--:|--:|");
    let per_second = u32::try_from(per_second).unwrap();
    let payload = airlock(per_second, time).await;
    mosquitto(per_second, time, &payload).await;
}

/// Prints the row of Airlock; returns what a message looks like.
async fn airlock(per_second: u32, time: Duration) -> Bytes {
    let server = ServerProcess::start("history = { bytes_max = 0 }").await;
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    let credentials = Some((application.id.clone(), application.key.clone()));
    let account = Account { address: server.mqtt, credentials };
    let load = Load::new(server.handler, &application.uplink(DEVICE), CONNECTIONS).at(per_second);
    load.clone().run_for(time / 5).await.all(200);
    let send = || async {
        let taken = load.clone().run_for(time).await;
        taken.all(200);
        taken.of(200)
    };
    row("Airlock", &account, time, || server.cpu_time(), send).await
}

/// Prints the row of Mosquitto, for messages with this payload.
async fn mosquitto(per_second: u32, time: Duration, payload: &Bytes) {
    let Some(broker) = Mosquitto::start_with("allow_anonymous true\nmax_queued_messages 0") else { return };
    let account = Account { address: broker.address(), credentials: None };
    let send = || async {
        let (client, mut events) = account.connect();
        let connection = tokio::spawn(async move { while events.poll().await.is_ok() {} });
        let (mut ticks, end, mut sent) = (interval(Duration::from_secs(1) / per_second), Instant::now() + time, 0);
        while Instant::now() < end {
            ticks.tick().await;
            client.publish(TOPIC, QoS::AtLeastOnce, false, payload.clone()).await.unwrap();
            sent += 1;
        }
        client.disconnect().await.unwrap();
        connection.await.unwrap();
        sent
    };
    row("Mosquitto", &account, time, || cpu_time(broker.id()), send).await;
}

/// Measures a broker while `send` sends messages, without subscribers and with them.
async fn row<Sent: Future<Output = usize>>(
    broker: &str,
    account: &Account,
    time: Duration,
    cpu_time: impl Fn() -> Duration,
    send: impl Fn() -> Sent,
) -> Bytes {
    let before = cpu_time();
    let messages = send().await;
    let alone = (cpu_time() - before).as_secs_f64() / messages as f64;

    let received = Arc::new(Received::default());
    let mut subscribers = JoinSet::new();
    for _ in 0..SUBSCRIBERS {
        let (client, events) = account.subscribe().await;
        subscribers.spawn(receive(client, events, Arc::clone(&received)));
    }
    let before = cpu_time();
    let messages = send().await;
    received.all(messages * SUBSCRIBERS).await;
    let cpu = (cpu_time() - before).as_secs_f64() - alone * messages as f64;
    let deliveries = received.deliveries.load(Ordering::Relaxed);
    println!(
        "| {broker} | {:.0} | {:.1} µs | {:.1} µs | {deliveries} of {} |",
        messages as f64 / time.as_secs_f64(),
        alone * 1e6,
        cpu * 1e6 / deliveries as f64,
        messages * SUBSCRIBERS
    );
    received.payload.lock().unwrap().clone()
}

impl Account {
    fn connect(&self) -> (AsyncClient, EventLoop) {
        let mut options = MqttOptions::new("", self.address.ip().to_string(), self.address.port());
        if let Some((id, key)) = &self.credentials {
            options.set_credentials(id, key);
        }
        AsyncClient::new(options, 100)
    }

    async fn subscribe(&self) -> (AsyncClient, EventLoop) {
        let (client, mut events) = self.connect();
        client.subscribe(TOPIC, QoS::AtLeastOnce).await.unwrap();
        while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
        (client, events)
    }
}

impl Received {
    /// Waits for so many deliveries, as long as any arrive.
    async fn all(&self, expected: usize) {
        let mut last = usize::MAX;
        loop {
            let deliveries = self.deliveries.load(Ordering::Relaxed);
            if deliveries == expected || deliveries == last {
                return;
            }
            last = deliveries;
            tokio::time::sleep(QUIET).await;
        }
    }
}

/// Counts what a subscriber gets. Without the client, the event loop would end.
async fn receive(_client: AsyncClient, mut events: EventLoop, received: Arc<Received>) {
    loop {
        if let Event::Incoming(Packet::Publish(publish)) = events.poll().await.unwrap()
            && received.deliveries.fetch_add(1, Ordering::Relaxed) == 0
        {
            *received.payload.lock().unwrap() = publish.payload;
        }
    }
}
