//! The same work in Node: the package `mqtt`, and a `vm` context with a time limit for each message.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use rumqttc::v5::{AsyncClient, Event, MqttOptions, mqttbytes::QoS, mqttbytes::v5::Packet};
use testing::{CHIRPSTACK_APPLICATION, figures::Figures};

use crate::{
    bridge_process::BridgeProcess,
    input::{Input, dev_eui},
    network::Network,
    usage::{Cpu, Measured},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/bridge.js");
/// How many uplinks wait for each.
const OURS: usize = 100_000;
const NODES: usize = 10_000;

/// A process of Node that prints `ready`, and then how many events it has published.
struct Peer {
    process: Child,
    lines: Box<dyn Iterator<Item = String> + Send>,
    started: Instant,
}

impl Peer {
    fn start(network: &Network, codecs: &Path) -> Self {
        let mut command = Command::new("node");
        command.arg(SCRIPT).arg(network.broker.url()).arg(codecs).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert_eq!(lines.next().as_deref(), Some("ready"), "node did not subscribe");
        Self { process, lines: Box::new(lines), started: Instant::now() }
    }

    /// Waits until so many are published; returns how many are.
    fn until(&mut self, uplinks: usize) -> usize {
        let mut counts = self.lines.by_ref().filter_map(|line| line.parse().ok());
        counts.find(|count| *count >= uplinks).expect("node ended")
    }

    /// Measures from the first event to nearly the last. Confirmations come in one burst, when all are published.
    fn measure(&mut self, uplinks: usize) -> Measured {
        let cpu = Cpu::of(self.process.id());
        let published = self.until(uplinks / 100 * 97);
        Measured::new(0.0, published, self.started.elapsed(), Cpu::of(self.process.id()).since(&cpu))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub(crate) async fn compare(input: &Input, figures: &mut Figures) {
    if env::var_os("NODE_PATH").is_none() {
        return println!("not compared with Node: NODE_PATH is not set");
    }
    let (node, ours) = (nodes(input).await, ours(input).await);
    ours.add_to(figures, "Mosquitto to Mosquitto, QoS 1", "");
    figures.add("the same in Node", format!("{:.0}/s, {:.0} µs", node.per_s, node.cpu_us), "");
    figures.add("ours ÷ Node, rate", format!("{:.1}", ours.per_s / node.per_s), "≥ 10");
    figures.add("Node ÷ ours, processor time", format!("{:.1}", node.cpu_us / ours.cpu_us), "≥ 10");
}

async fn ours(input: &Input) -> Measured {
    let network = Network::start(input).await;
    let (url, dir) = (network.broker.url(), tempfile::tempdir().unwrap());
    let arguments = ["--mqtt", &url];
    // Its session keeps what comes after it has ended.
    let bridge = BridgeProcess::start_in(&network, &arguments, dir);
    bridge.ready().await;
    let dir = bridge.end();
    publish(&network, input, OURS).await;
    BridgeProcess::start_in(&network, &arguments, dir).measure(input.decoded(OURS)).await
}

async fn nodes(input: &Input) -> Measured {
    let network = Network::start(input).await;
    let codecs = network.dir.path().join("codecs.json");
    let scripts: Vec<_> = input.profiles.iter().map(|profile| &profile.script).collect();
    std::fs::write(&codecs, serde_json::to_string(&scripts).unwrap()).unwrap();
    drop(Peer::start(&network, &codecs));
    publish(&network, input, NODES).await;
    let mut node = Peer::start(&network, &codecs);
    tokio::task::spawn_blocking(move || node.measure(NODES)).await.unwrap()
}

async fn publish(network: &Network, input: &Input, uplinks: usize) {
    let (client, mut connection) = AsyncClient::new(options(network, "chirpstack"), 100);
    let messages: Vec<_> = (0..uplinks)
        .map(|number| {
            let device = dev_eui(number % input.devices);
            let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{device}/event/up");
            (topic, serde_json::to_vec(&input.uplink(number)).unwrap())
        })
        .collect();
    tokio::spawn(async move {
        for (topic, payload) in messages {
            client.publish(topic, QoS::AtLeastOnce, false, payload).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let mut confirmed = 0;
    while confirmed < uplinks {
        confirmed += usize::from(matches!(connection.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))));
    }
}

fn options(network: &Network, id: &str) -> MqttOptions {
    let address = network.broker.address();
    let mut options = MqttOptions::new(id, address.ip().to_string(), address.port());
    options.set_max_packet_size(Some(1 << 20));
    options
}
