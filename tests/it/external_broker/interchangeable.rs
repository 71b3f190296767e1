//! Three handlers on one Redis and one broker or cluster, one of which is killed again and again: whichever of them
//! accepts an uplink, every subscriber hears it, and whichever of them takes a downlink, it is queued.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    path::Path,
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
use tempfile::TempDir;
use testing::{Mosquitto, RabbitMq, RedisProcess};
use tokio::{sync::mpsc, task::block_in_place};
use types::DevId;

use super::until_ready;
use crate::{
    harness::{MESSAGE_TIMEOUT, Owner},
    server_process::{ServerProcess, serve},
};

const HANDLERS: usize = 3;
const DEVICES: usize = 6;
const UPLINKS: u16 = 80;
/// How many waits in the queue of a device; it has room for a few that come twice.
const DOWNLINKS: u16 = 24;
const KILLS: usize = 6;
/// How many uplinks of each device may be sent while a node of the broker is away.
const NODE_AWAY: u16 = 6;
/// How long everything may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);
/// An uplink that takes longer is not accepted.
const PATIENCE: Duration = Duration::from_secs(10);
const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] * 256 + bytes[1] }; }";
/// What handlers have in common, beside the store.
const SHARED_FILES: [&str; 3] = ["handler.key", "handler.pem", "handler.token"];

/// Account, discovery, and a handler that does not take part.
struct Services {
    process: ServerProcess,
    dir: TempDir,
    redis: RedisProcess,
    /// The nodes of the broker. Clients use the last one.
    brokers: Vec<String>,
}

impl Services {
    fn start(brokers: Vec<String>) -> Option<Self> {
        let (redis, dir) = (RedisProcess::start()?, tempfile::tempdir().unwrap());
        let mut command = serve(dir.path());
        command.env("AIRLOCK_STORE__REDIS__URLS", format!("[\"{}\"]", redis.url())).stderr(Stdio::null());
        Some(Self { process: ServerProcess::spawn(&mut command), dir, redis, brokers })
    }

    /// Where clients connect.
    fn broker(&self) -> &str {
        self.brokers.last().unwrap()
    }

    /// Starts a handler that keeps its files in `dir`.
    fn start_handler(&self, dir: &Path, number: usize) -> ServerProcess {
        let mut command = serve(dir);
        command.arg("handler").stderr(Stdio::null());
        command.args(["--auth-server", self.process.place("account")]);
        command.args(["--discovery-address", self.process.place("discovery")]);
        command.env("AIRLOCK_STORE__REDIS__URLS", format!("[\"{}\"]", self.redis.url()));
        command.env("AIRLOCK_EXTERNAL_BROKER__MQTT__URL", &self.brokers[number % self.brokers.len()]);
        ServerProcess::spawn(&mut command)
    }
}

/// A handler that is killed and started again in the same directory.
struct Handler {
    number: usize,
    dir: TempDir,
    process: ServerProcess,
}

impl Handler {
    async fn start(services: &Services, number: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in SHARED_FILES {
            std::fs::copy(services.dir.path().join(file), dir.path().join(file)).unwrap();
        }
        // It blocks until the process says where it listens.
        let process = block_in_place(|| services.start_handler(dir.path(), number));
        until_ready(process.place("metrics")).await;
        Self { number, dir, process }
    }

    async fn kill(&mut self, services: &Services) {
        self.process.kill();
        self.process = block_in_place(|| services.start_handler(self.dir.path(), self.number));
        until_ready(self.process.place("metrics")).await;
    }
}

/// Where the handlers are now.
type Addresses = Arc<RwLock<Vec<String>>>;

/// How far the uplinks are. They wait for the kills, so that each kill meets some of them however fast they are.
#[derive(Default)]
struct Progress {
    /// How many have been accepted, of all devices.
    accepted: AtomicUsize,
    /// How many each device may send.
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
    let client = reqwest::Client::builder().timeout(PATIENCE).build().unwrap();
    let mut handler = device;
    for number in 0..UPLINKS {
        progress.until_allowed(number).await;
        let body = json!({"payload": STANDARD.encode(number.to_be_bytes()), "port": 1});
        loop {
            handler = (handler + 1) % HANDLERS;
            let base = addresses.read().unwrap()[handler].clone();
            let url = format!("{base}/applications/{}/devices/{}/simulate", owner.app_id, dev_id(device));
            let request = client.post(url).json(&body).header("authorization", owner.token.to_header());
            if request.send().await.is_ok_and(|response| response.status() == 200) {
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

/// Kills one handler after the other, each when some more uplinks have been accepted, and the first node of a cluster
/// for a while.
async fn kill_handlers(
    services: Arc<Services>,
    mut handlers: Vec<Handler>,
    addresses: Addresses,
    progress: Arc<Progress>,
    mut node: Option<RabbitMq>,
) -> (Vec<Handler>, Option<RabbitMq>) {
    let each = UPLINKS / u16::try_from(KILLS + 2).unwrap();
    for (kill, sent) in (0..KILLS).zip((each..).step_by(each.into())) {
        // The uplinks go on during the kill.
        progress.allow(sent + each);
        progress.reach(DEVICES * usize::from(sent)).await;
        if kill == KILLS / 2
            && let Some(node) = &mut node
        {
            node.kill();
            progress.allow(sent + each + NODE_AWAY);
            progress.reach(progress.accepted() + usize::from(NODE_AWAY)).await;
            block_in_place(|| node.start_again());
        }
        let place = kill % HANDLERS;
        handlers[place].kill(&services).await;
        addresses.write().unwrap()[place] = handlers[place].process.http("handler").to_owned();
    }
    progress.allow(UPLINKS);
    (handlers, node)
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

/// What the subscriber hears of each device, in the order in which each uplink came first.
async fn hear(listener: &mut Listener) -> (BTreeMap<String, Vec<u16>>, usize) {
    let (mut heard, mut seen, mut repeated) = (BTreeMap::<_, Vec<u16>>::new(), BTreeSet::new(), 0);
    while heard.values().filter(|numbers| numbers.len() == usize::from(UPLINKS)).count() < DEVICES {
        let (topic, up) = listener.next().await;
        let number = up["payload_fields"]["n"].as_u64().unwrap().try_into().unwrap();
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
        let all_queued = async {
            loop {
                let queue = owner.handler.list_downlinks(&owner.app_id, &dev_id(device)).await.unwrap();
                let number = |bytes: &[u8]| u16::from_be_bytes(bytes.try_into().unwrap());
                let numbers: Vec<_> = queue.iter().map(|downlink| number(&downlink.payload_raw)).collect();
                if numbers.iter().copied().collect::<BTreeSet<_>>() == expected {
                    return numbers.len() - expected.len();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        twice += tokio::time::timeout(MESSAGE_TIMEOUT, all_queued).await.expect("every downlink is queued");
    }
    twice
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_handler_accepts_a_message_every_subscriber_hears_it() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let Some(services) = Services::start(vec![mosquitto.url()]) else { return };
    soon(every_subscriber_hears(services, None)).await;
}

/// RabbitMQ has no shared subscriptions, so the handlers take turns with one session.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_at_two_nodes_of_rabbitmq_are_interchangeable() {
    let Some([first, second]) = RabbitMq::start_mqtt_pair() else { return };
    let Some(services) = Services::start(vec![first.mqtt_url(), second.mqtt_url()]) else { return };
    soon(every_subscriber_hears(services, Some(first))).await;
}

async fn soon(test: impl Future<Output = ()>) {
    tokio::time::timeout(TEST_TIMEOUT, test).await.expect("it comes to an end");
}

async fn every_subscriber_hears(services: Services, node: Option<RabbitMq>) {
    server::system::install_crypto();
    let services = Arc::new(services);
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
    let killing = tokio::spawn(kill_handlers(services.clone(), handlers, addresses.clone(), progress.clone(), node));
    let ((heard, repeated), _, (), handlers) =
        tokio::join!(hear(&mut listener), sending, send_downlinks(&owner, &broker, &progress), killing);
    let _running = handlers.unwrap();
    for (topic, numbers) in heard {
        assert_eq!(numbers, (0..UPLINKS).collect::<Vec<_>>(), "order of {topic}");
    }
    let twice = queued_twice(&owner).await;
    println!("{repeated} uplinks and {twice} downlinks came twice");
}
