//! Another user with a steady load, whose latency shows an attack.
//!
//! Eight devices send uplinks over HTTP, one of them over a new connection each time, and an MQTT client of a stored
//! session receives them at QoS 1. Besides, the neighbour lists its devices and connects over MQTT four times a second.
//! All of that has a thread of its own. Times count from when something was due, so a wait shows in all that it delays.

mod calls;
mod subscriber;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use testing::figures::quantile;
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until},
};

use crate::{
    requests::{Connection, request},
    server_process::{Application, ServerProcess},
};

/// Number of devices that send uplinks.
const DEVICES: u32 = 8;
/// Number of uplinks per second, of all devices together.
const PER_SECOND: u32 = 80;
/// Time after which an uplink or another call counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Another user of the same server.
pub(crate) struct Neighbour {
    pub(crate) application: Application,
    seen: Arc<Seen>,
    running: Option<JoinHandle<()>>,
}

/// Figures of the uplinks and calls that were due in a period.
pub(crate) struct Served {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// The part of the uplinks that was delivered.
    pub(crate) share: f64,
    /// The longest that a list over a new connection took, and a connection over MQTT.
    pub(crate) call_ms: f64,
    /// Number of calls that were refused.
    pub(crate) refused: usize,
}

/// State that the tasks of the neighbour share.
#[derive(Default)]
struct Seen {
    has_left: AtomicBool,
    sent: AtomicU32,
    /// By their numbers.
    uplinks: Mutex<Vec<Uplink>>,
    calls: Mutex<Vec<Call>>,
}

struct Uplink {
    due: Instant,
    is_accepted: bool,
    delivered: Option<Instant>,
}

struct Call {
    due: Instant,
    took: Duration,
    is_refused: bool,
}

/// Addresses and credentials of the neighbour.
#[derive(Clone)]
struct Target {
    handler: SocketAddr,
    mqtt: SocketAddr,
    app_id: String,
    key: String,
    authorization: String,
}

impl Neighbour {
    /// Registers it, and has it begin.
    pub(crate) async fn start(server: &ServerProcess) -> Self {
        let application = server.create_application("neighbour", ServerProcess::demo_functions()).await;
        for number in 0..DEVICES {
            server.add_device(&application, &format!("dev-{number}")).await;
        }
        let (seen, target) = (Arc::<Seen>::default(), Target::new(server, &application));
        let running = thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(run(&target, &seen));
            }
        });
        while seen.uplinks.lock().unwrap().iter().all(|uplink| uplink.delivered.is_none()) {
            sleep(Duration::from_millis(20)).await;
        }
        Self { application, seen, running: Some(running) }
    }

    /// Returns the figures of what was due between these times, as known now.
    pub(crate) fn served(&self, from: Instant, to: Instant) -> Served {
        let now = Instant::now();
        let uplinks = self.seen.uplinks.lock().unwrap();
        let due: Vec<_> = uplinks.iter().filter(|uplink| (from..to).contains(&uplink.due)).collect();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        // What is not delivered has taken longer than anything else.
        let took = |uplink: &&Uplink| milliseconds(uplink.delivered.unwrap_or(now) - uplink.due);
        let mut times: Vec<f64> = due.iter().map(took).collect();
        let expected = (to - from).as_secs_f64() * f64::from(PER_SECOND);
        // Those that were due, but could not be sent because an earlier one took so long, wait still.
        times.resize(times.len().max(expected as usize), milliseconds(to - from));
        let in_time = |uplink: &&&Uplink| uplink.delivered.is_some_and(|time| time < to + Duration::from_secs(1));
        let delivered = due.iter().filter(in_time).count();
        let calls = self.seen.calls.lock().unwrap();
        let calls = calls.iter().filter(|call| (from..to).contains(&call.due));
        Served {
            p50_ms: quantile(&mut times, 0.5),
            p99_ms: quantile(&mut times, 0.99),
            share: (delivered as f64 / expected).min(1.0),
            call_ms: calls.clone().map(|call| milliseconds(call.took)).fold(0.0, f64::max),
            refused: calls.filter(|call| call.is_refused).count(),
        }
    }

    /// Ends it, and waits for what was accepted; returns how many uplinks are lost.
    pub(crate) async fn leave(mut self) -> usize {
        self.seen.has_left.store(true, Ordering::Relaxed);
        self.running.take().unwrap().join().unwrap();
        self.seen.uplinks.lock().unwrap().iter().filter(|uplink| uplink.is_lost()).count()
    }
}

impl Uplink {
    fn is_lost(&self) -> bool {
        self.is_accepted && self.delivered.is_none()
    }
}

impl Target {
    fn new(server: &ServerProcess, application: &Application) -> Self {
        Self {
            handler: server.handler,
            mqtt: server.mqtt,
            app_id: application.id.clone(),
            key: application.key.clone(),
            authorization: format!("Bearer {}", application.token.expose()),
        }
    }
}

async fn run(target: &Target, seen: &Arc<Seen>) {
    let mut sending = JoinSet::new();
    let subscriber = subscriber::start(target, seen).await;
    for number in 0..DEVICES {
        sending.spawn(send(target.clone(), Arc::clone(seen), number));
    }
    tokio::join!(sending.join_all(), calls::list(target, seen), calls::connect(target, seen));
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && seen.uplinks.lock().unwrap().iter().any(Uplink::is_lost) {
        sleep(Duration::from_millis(20)).await;
    }
    subscriber.abort();
}

/// Sends the uplinks of one device.
async fn send(target: Target, seen: Arc<Seen>, device: u32) {
    let path = format!("/applications/{}/devices/dev-{device}/simulate", target.app_id);
    let period = Duration::from_secs(1) * DEVICES / PER_SECOND;
    let mut connection = Connection::new(target.handler);
    let mut due = Instant::now() + period * device / DEVICES;
    while !seen.has_left.load(Ordering::Relaxed) {
        sleep_until(due.into()).await;
        let number = {
            let mut uplinks = seen.uplinks.lock().unwrap();
            uplinks.push(Uplink { due, is_accepted: false, delivered: None });
            seen.sent.fetch_add(1, Ordering::Relaxed)
        };
        let payload = [&number.to_be_bytes()[..], &[0, 0, 0, 100]].concat();
        let body = json!({ "port": 2, "payload": STANDARD.encode(payload) }).to_string();
        let status = connection.send(&request("POST", &path, &target.authorization, &body), PATIENCE).await;
        seen.uplinks.lock().unwrap()[number as usize].is_accepted = status == Some(200);
        // The first device has no connection that lasts.
        if device == 0 {
            connection.close();
        }
        due += period;
    }
}
