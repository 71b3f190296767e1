//! Three handlers on one Redis and one broker or cluster, one of which is killed again and again: whichever of them
//! accepts an uplink, every subscriber hears it, and whichever of them takes a downlink, it is queued.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc, RwLock,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::join_all;
use serde_json::{Value, json};
use testing::{Mosquitto, RabbitMq, RedisProcess, RedisSentinels};
use tokio::{sync::mpsc, task::block_in_place};
use types::DevId;

use super::handlers::{Handler, Sender, Services, of_redis, of_sentinels};
use crate::harness::{MESSAGE_TIMEOUT, Owner};

const HANDLERS: usize = 3;
const DEVICES: usize = 6;
const UPLINKS: u16 = 80;
/// Number of downlinks for the queue of a device, which has room for a few that come twice.
const DOWNLINKS: u16 = 24;
const KILLS: usize = 6;
/// Number of uplinks per device that may be sent while something is away, and of those that are accepted meanwhile.
const SENT_MEANWHILE: u16 = 6;
/// Maximum time for everything.
const TEST_TIMEOUT: Duration = Duration::from_secs(900);
/// An uplink that takes longer is not accepted.
const PATIENCE: Duration = Duration::from_secs(10);
const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] * 256 + bytes[1] }; }";

/// The component that fails once, besides handlers.
enum Failing {
    Nothing(RedisProcess),
    /// A node of the broker.
    Node(RedisProcess, RabbitMq),
    /// The server in which all changes are made; another takes over.
    Primary(RedisSentinels),
}

impl Failing {
    /// Returns whether there is something to kill.
    fn kill(&mut self) -> bool {
        match self {
            Self::Nothing(_) => return false,
            Self::Node(_, node) => node.kill(),
            Self::Primary(redis) => redis.kill_primary(),
        }
        true
    }

    fn recover(&mut self) {
        match self {
            Self::Nothing(_) => {}
            Self::Node(_, node) => node.start_again(),
            Self::Primary(redis) => redis.restart_after_failover(),
        }
    }

    fn services(&self, brokers: Vec<String>) -> Services {
        let environment = match self {
            Self::Nothing(redis) | Self::Node(redis, _) => of_redis(redis),
            Self::Primary(redis) => of_sentinels(redis),
        };
        Services::start(brokers, environment)
    }
}

/// Current addresses of the handlers.
type Addresses = Arc<RwLock<Vec<String>>>;

/// Progress of the uplinks. They wait for the kills, so that each kill meets some of them however fast they are.
#[derive(Default)]
struct Progress {
    /// Number of accepted uplinks, of all devices.
    accepted: AtomicUsize,
    /// Number of uplinks that each device may send.
    allowed: AtomicU16,
}

impl Progress {
    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Waits until so many uplinks have been accepted.
    async fn reach(&self, count: usize) {
        while self.accepted() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets each device send this many.
    fn allow(&self, count: u16) {
        self.allowed.store(count, Ordering::Relaxed);
    }

    /// Waits until a device may send the uplink with this number.
    async fn until_allowed(&self, number: u16) {
        while self.allowed.load(Ordering::Relaxed) <= number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn dev_id(device: usize) -> DevId {
    format!("dev-{device}").parse().unwrap()
}

/// Sends the uplinks of a device one after the other, each to the next handler until one accepts it.
async fn send_uplinks(owner: &Owner, device: usize, addresses: &Addresses, progress: &Progress) {
    let sender = Sender::new(owner, PATIENCE);
    let mut handler = device;
    for number in 0..UPLINKS {
        progress.until_allowed(number).await;
        loop {
            handler = (handler + 1) % HANDLERS;
            let base = addresses.read().unwrap()[handler].clone();
            if sender.send(&base, dev_id(device).as_str(), &number.to_be_bytes()).await {
                break;
            }
        }
        progress.accepted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Publishes as many downlinks for each device as uplinks are sent meanwhile.
async fn send_downlinks(owner: &Owner, broker: &str, progress: &Progress) {
    for number in 0..DOWNLINKS {
        progress.reach(DEVICES * usize::from(UPLINKS) * usize::from(number) / usize::from(DOWNLINKS)).await;
        for device in 0..DEVICES {
            let body = json!({"payload_raw": STANDARD.encode(number.to_be_bytes()), "schedule": "last"});
            let topic = format!("{}/devices/{}/down", owner.app_id, dev_id(device));
            let message = ["-q", "1", "-t", &topic, "-m", &body.to_string()];
            // It succeeds when the broker has the message. Without its other node, the broker first takes half a minute.
            loop {
                let mut publish = tokio::process::Command::from(client("mosquitto_pub", broker, &message));
                if publish.status().await.unwrap().success() {
                    break;
                }
            }
        }
    }
}

/// Kills one handler after the other, each when some more uplinks have been accepted, and something else for a while.
async fn kill_handlers(
    services: Arc<Services>,
    mut handlers: Vec<Handler>,
    addresses: Addresses,
    progress: Arc<Progress>,
    mut failing: Failing,
) -> (Vec<Handler>, Failing) {
    let each = UPLINKS / u16::try_from(KILLS + 2).unwrap();
    for (kill, sent) in (0..KILLS).zip((each..).step_by(each.into())) {
        // The uplinks go on during the kill.
        progress.allow(sent + each);
        progress.reach(DEVICES * usize::from(sent)).await;
        if kill == KILLS / 2 && failing.kill() {
            progress.allow(sent + each + SENT_MEANWHILE);
            progress.reach(progress.accepted() + usize::from(SENT_MEANWHILE)).await;
            block_in_place(|| failing.recover());
        }
        let place = kill % HANDLERS;
        handlers[place].kill(&services).await;
        addresses.write().unwrap()[place] = handlers[place].process.http("handler").to_owned();
    }
    progress.allow(UPLINKS);
    (handlers, failing)
}

/// A program of Mosquitto's, because RabbitMQ speaks only MQTT 3.1.1.
fn client(program: &str, broker: &str, arguments: &[&str]) -> Command {
    let (host, port) = broker.strip_prefix("mqtt://").unwrap().rsplit_once(':').unwrap();
    let mut command = Command::new(program);
    command.args(["-h", host, "-p", port]).args(arguments);
    command
}

/// A subscriber of all uplinks.
struct Listener {
    process: Child,
    messages: mpsc::UnboundedReceiver<(String, Value)>,
}

impl Listener {
    fn start(broker: &str, owner: &Owner) -> Self {
        let filter = format!("{}/devices/+/up", owner.app_id);
        let session = ["-i", "listener", "-c", "-q", "1", "-t", &filter];
        // Ends when the broker has the session.
        assert!(client("mosquitto_sub", broker, &[&session[..], &["-E"]].concat()).status().unwrap().success());
        let mut command = client("mosquitto_sub", broker, &[&session[..], &["-F", "%t %p"]].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, messages) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let (topic, body) = line.split_once(' ').unwrap();
                _ = sender.send((topic.to_owned(), serde_json::from_str(body).unwrap()));
            }
        });
        Self { process, messages }
    }

    async fn next(&mut self) -> (String, Value) {
        self.messages.recv().await.expect("the subscriber runs")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Returns the uplinks that the subscriber hears of each device, in order of first arrival, and the number of repeats.
async fn hear(listener: &mut Listener) -> (BTreeMap<String, Vec<u16>>, usize) {
    let (mut heard, mut seen, mut repeated) = (BTreeMap::<_, Vec<u16>>::new(), BTreeSet::new(), 0);
    while heard.values().filter(|numbers| numbers.len() == usize::from(UPLINKS)).count() < DEVICES {
        let (topic, up) = listener.next().await;
        let bytes = STANDARD.decode(up["payload_raw"].as_str().unwrap()).unwrap();
        let number = u16::from_be_bytes(bytes.try_into().unwrap());
        if seen.insert((topic.clone(), number)) {
            heard.entry(topic).or_default().push(number);
        } else {
            repeated += 1;
        }
    }
    (heard, repeated)
}

/// Waits until every downlink is queued; returns how many came twice.
async fn queued_twice(owner: &Owner) -> usize {
    let expected: BTreeSet<u16> = (0..DOWNLINKS).collect();
    let mut twice = 0;
    for device in 0..DEVICES {
        let mut queued = Vec::new();
        let all_queued = async {
            loop {
                let queue = owner.handler.list_downlinks(&owner.app_id, &dev_id(device)).await.unwrap();
                let number = |bytes: &[u8]| u16::from_be_bytes(bytes.try_into().unwrap());
                queued = queue.iter().map(|downlink| number(&downlink.payload_raw)).collect();
                if queued.iter().copied().collect::<BTreeSet<_>>() == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(MESSAGE_TIMEOUT, all_queued).await.is_ok();
        assert!(in_time, "of {DOWNLINKS} downlinks, {} has {queued:?}", dev_id(device));
        twice += queued.len() - expected.len();
    }
    twice
}

// Conformance: Three handlers on one Redis, killed in turn under load
#[tokio::test(flavor = "multi_thread")]
async fn whichever_handler_accepts_a_message_every_subscriber_hears_it() {
    let (Some(mosquitto), Some(redis)) = (Mosquitto::start(), RedisProcess::start()) else { return };
    every_subscriber_hears(vec![mosquitto.url()], Failing::Nothing(redis)).await;
}

/// RabbitMQ has no shared subscriptions, so the handlers take turns with one session.
// Conformance: Three handlers on one Redis, killed in turn under load
#[tokio::test(flavor = "multi_thread")]
async fn handlers_at_two_nodes_of_rabbitmq_are_interchangeable() {
    let Some([first, second]) = RabbitMq::start_mqtt_pair() else { return };
    let (brokers, Some(redis)) = (vec![first.mqtt_url(), second.mqtt_url()], RedisProcess::start()) else { return };
    every_subscriber_hears(brokers, Failing::Node(redis, first)).await;
    drop(second);
}

/// Accepted messages are in the replica that takes over.
// Conformance: The same while the primary of a Redis behind sentinels is killed
#[tokio::test(flavor = "multi_thread")]
async fn handlers_whose_redis_fails_over_are_interchangeable() {
    let (Some(mosquitto), Some(redis)) = (Mosquitto::start(), RedisSentinels::start(2)) else { return };
    every_subscriber_hears(vec![mosquitto.url()], Failing::Primary(redis)).await;
}

async fn every_subscriber_hears(brokers: Vec<String>, failing: Failing) {
    server::system::install_crypto();
    let services = Arc::new(failing.services(brokers));
    let owner = services.process.owner(services.dir.path(), "three").await;
    owner.set_functions([DECODER, "", ""]).await.unwrap();
    for device in 0..DEVICES {
        owner.add_device(dev_id(device).as_str()).await;
    }
    let broker = services.broker().to_owned();
    let mut listener = Listener::start(&broker, &owner);
    let handlers = join_all((0..HANDLERS).map(|number| Handler::start(&services, number))).await;
    let addresses: Vec<_> = handlers.iter().map(|handler| handler.process.http("handler").to_owned()).collect();
    let (addresses, progress) = (Arc::new(RwLock::new(addresses)), Arc::new(Progress::default()));
    let sending = join_all((0..DEVICES).map(|device| send_uplinks(&owner, device, &addresses, &progress)));
    // In a task of its own, because it waits for processes without giving way.
    let killing = tokio::spawn(kill_handlers(services.clone(), handlers, addresses.clone(), progress.clone(), failing));
    let everything =
        async { tokio::join!(hear(&mut listener), sending, send_downlinks(&owner, &broker, &progress), killing) };
    let everything = tokio::time::timeout(TEST_TIMEOUT, everything).await;
    let ((heard, repeated), _, (), handlers) = everything.expect("it comes to an end");
    let _running = handlers.unwrap();
    for (topic, numbers) in heard {
        assert_eq!(numbers, (0..UPLINKS).collect::<Vec<_>>(), "order of {topic}");
    }
    let twice = queued_twice(&owner).await;
    println!("{repeated} uplinks and {twice} downlinks came twice");
}
