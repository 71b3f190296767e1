//! Cost of an uplink in a batch, from frame to the embedded broker, without HTTP: CPU time and throughput.
//!
//! Batches of 256 uplinks, each of another device, pass the demo's three functions, first without a subscriber, then
//! with one at QoS 1 that is connected over loopback. The subscriber runs on a thread of its own, whose CPU time does
//! not count; sending to it and reading its acknowledgements do. Each row takes `UPLINK_SECONDS`, 10 by default.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
// The path has more cases than this bench uses.
#![allow(dead_code)]

mod path;

use std::{
    fs,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use handler::{output::mqtt::MqttOutput, uplink::Uplinks};
use mqtt::{
    Accepted, Authenticator, Broker, BrokerServices, BrokerSettings, DownlinkRefusal, DownlinkSink, PublishedDownlink,
    Refusal, Router,
};
use path::{APP_ID, CASES, pool};
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use server::{
    ledger::{BudgetSettings, Ledger},
    system::{OsRandom, SystemClock},
    usage::Usage,
};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};
use types::{AppId, ApplicationRight, Claims, Clock, Credential, Scope};

/// Uplinks in a batch, and devices that send one each.
const BATCH: usize = 256;

/// The CPU time includes delivery, so a row ends only when no message arrives for this long.
const QUIET: Duration = Duration::from_millis(300);

/// Clock ticks per second in /proc, the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Lets every credential read.
struct AllowAll;

#[async_trait]
impl Authenticator for AllowAll {
    async fn authenticate(
        &self,
        app_id: &AppId,
        _credential: &Credential,
        _from: Option<IpAddr>,
    ) -> Result<Claims, Refusal> {
        let claims = serde_json::json!({
            "iss": "account", "sub": app_id, "type": "application", "iat": 0, "exp": u64::MAX,
            "scope": [Scope::App(app_id.clone())], "apps": { app_id.as_str(): [ApplicationRight::MessagesUpRead] },
        });
        Ok(serde_json::from_value(claims).unwrap())
    }
}

/// Nobody sends downlinks here.
struct NoDownlinks;

#[async_trait]
impl DownlinkSink for NoDownlinks {
    async fn accept(&self, _downlink: PublishedDownlink, _accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        Ok(())
    }
}

/// A subscriber on a thread of its own.
struct Subscriber {
    delivered: Arc<AtomicUsize>,
    /// The statistics of its thread in /proc.
    stat: PathBuf,
}

fn main() {
    let seconds = std::env::var_os("UPLINK_SECONDS").map_or(10.0, |text| text.to_str().unwrap().parse().unwrap());
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(run(Duration::from_secs_f64(seconds)));
}

async fn run(duration: Duration) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let router = Arc::new(Router::new(clock.clone()));
    let services = BrokerServices {
        authenticator: Arc::new(AllowAll),
        downlinks: Arc::new(NoDownlinks),
        router: router.clone(),
        ledger: Ledger::new(&BudgetSettings::default()),
    };
    let settings = BrokerSettings { listen: "127.0.0.1:0".to_owned(), ..BrokerSettings::default() };
    let broker = Broker::start(&settings, None, services, &OsRandom, &clock).await.unwrap();
    let output = Arc::new(MqttOutput::new(router, &Default::default()));
    let path = Arc::new(CASES[0].uplinks(pool(2), BATCH, output).await);
    measure(&path, duration / 5, None).await;

    println!("batches of {BATCH}, {} s per row\n", duration.as_secs_f64());
    println!("| subscriber | CPU per uplink | uplinks/s | delivered |\n|---|--:|--:|--:|");
    println!("| none | {} |", measure(&path, duration, None).await);
    let subscriber = subscribe(broker.address().port()).await;
    println!("| QoS 1 | {} |", measure(&path, duration, Some(&subscriber)).await);
    broker.shutdown().await;
}

/// Sends batches for this long, waits until they are delivered, and returns the cells of the row.
async fn measure(path: &Arc<Uplinks>, duration: Duration, subscriber: Option<&Subscriber>) -> String {
    let (before, start, mut uplinks) = (cpu_time(subscriber), Instant::now(), 0);
    while start.elapsed() < duration {
        batch(path).await;
        uplinks += BATCH;
    }
    let elapsed = start.elapsed();
    let delivered = match subscriber {
        Some(subscriber) => until_quiet(&subscriber.delivered).await,
        None => 0,
    };
    let cpu = cpu_time(subscriber) - before;
    let (count, per_second) = (uplinks as f64, uplinks as f64 / elapsed.as_secs_f64());
    format!("{:.1} µs | {per_second:.0} | {delivered} of {uplinks}", cpu.as_secs_f64() * 1e6 / count)
}

async fn batch(path: &Arc<Uplinks>) {
    let mut batch = JoinSet::new();
    for device in 0..BATCH {
        let path = path.clone();
        batch.spawn(async move { path.handle(CASES[0].frame(device), &Usage::default()).await.unwrap() });
    }
    batch.join_all().await;
}

/// The CPU time of this process, user and system, without that of the subscriber.
fn cpu_time(subscriber: Option<&Subscriber>) -> Duration {
    let all = ticks("/proc/self/stat".into());
    let own = all - subscriber.map_or(0.0, |subscriber| ticks(subscriber.stat.clone()));
    Duration::from_secs_f64(own / TICKS_PER_SECOND)
}

fn ticks(stat: PathBuf) -> f64 {
    let stat = fs::read_to_string(stat).unwrap();
    // The numbers start after the name of the program in parentheses; the first is field 3.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum()
}

/// Waits until the count stays the same for a while, and returns it.
async fn until_quiet(delivered: &AtomicUsize) -> usize {
    loop {
        let count = delivered.load(Ordering::Relaxed);
        sleep(QUIET).await;
        if delivered.load(Ordering::Relaxed) == count {
            return count;
        }
    }
}

/// Subscribes to all uplinks of the application, and counts them.
async fn subscribe(port: u16) -> Subscriber {
    let delivered = Arc::new(AtomicUsize::new(0));
    let (send, subscribed) = oneshot::channel();
    let count = Arc::clone(&delivered);
    thread::spawn(move || {
        let stat = PathBuf::from("/proc").join(fs::read_link("/proc/thread-self").unwrap()).join("stat");
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let (_client, events) = connect(port).await;
            send.send(stat).unwrap();
            receive(events, &count).await;
        });
    });
    Subscriber { delivered, stat: subscribed.await.unwrap() }
}

async fn connect(port: u16) -> (AsyncClient, EventLoop) {
    let mut options = MqttOptions::new("", "127.0.0.1", port);
    options.set_credentials(APP_ID, "any");
    let (client, mut events) = AsyncClient::new(options, 10);
    client.subscribe("+/devices/+/up", QoS::AtLeastOnce).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
    (client, events)
}

/// Counts messages until the broker stops.
async fn receive(mut events: EventLoop, delivered: &AtomicUsize) {
    while let Ok(event) = events.poll().await {
        if matches!(event, Event::Incoming(Packet::Publish(_))) {
            delivered.fetch_add(1, Ordering::Relaxed);
        }
    }
}
