//! The same work in Node: the package `mqtt`, and a `vm` context with a time limit for each message.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rumqttc::v5::{AsyncClient, Event, MqttOptions, mqttbytes::QoS, mqttbytes::v5::Packet};
use testing::{CHIRPSTACK_APPLICATION, figures::Figures};

use crate::{
    bridge_process::BridgeProcess,
    input::{Input, dev_eui},
    network::Network,
    usage::Cpu,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/bridge.js");
/// How many uplinks wait for each.
const OURS: usize = 100_000;
const NODES: usize = 10_000;

/// Rate and processor time per uplink.
struct Run {
    per_s: f64,
    cpu_us: f64,
}

struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) async fn compare(input: &Input, figures: &mut Figures) {
    let Some(node) = nodes(input).await else { return };
    let ours = ours(input).await;
    figures.add("Mosquitto to Mosquitto, QoS 1", format!("{:.0}/s, {:.1} µs", ours.per_s, ours.cpu_us), "");
    figures.add("the same in Node", format!("{:.0}/s, {:.0} µs", node.per_s, node.cpu_us), "");
    figures.add("ours ÷ Node, rate", format!("{:.1}", ours.per_s / node.per_s), "≥ 10");
    figures.add("Node ÷ ours, processor time", format!("{:.1}", node.cpu_us / ours.cpu_us), "≥ 10");
}

async fn ours(input: &Input) -> Run {
    let network = Network::start(input).await;
    let (url, dir) = (network.broker.url(), tempfile::tempdir().unwrap());
    let arguments = ["--mqtt", &url];
    // Its session keeps what comes after it has ended.
    let bridge = BridgeProcess::start_in(&network, &arguments, dir);
    bridge.ready().await;
    let dir = bridge.end();
    publish(&network, input, OURS).await;
    let bridge = BridgeProcess::start_in(&network, &arguments, dir);
    measure(&network, bridge.id(), OURS).await
}

async fn nodes(input: &Input) -> Option<Run> {
    env::var_os("NODE_PATH")?;
    let network = Network::start(input).await;
    let codecs = network.dir.path().join("codecs.json");
    let scripts: Vec<_> = input.profiles.iter().map(|profile| &profile.script).collect();
    std::fs::write(&codecs, serde_json::to_string(&scripts).unwrap()).unwrap();
    let start = || {
        let mut command = Command::new("node");
        command.arg(SCRIPT).arg(network.broker.url()).arg(&codecs).stdout(Stdio::null());
        Peer(command.spawn().unwrap())
    };
    let node = start();
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(node);
    publish(&network, input, NODES).await;
    let node = start();
    Some(measure(&network, node.0.id(), NODES).await)
}

/// Counts what comes out.
async fn measure(network: &Network, process: u32, uplinks: usize) -> Run {
    let (client, mut connection) = AsyncClient::new(options(network, "count"), 100);
    client.subscribe("airlock/application/+/device/+/event/up", QoS::AtMostOnce).await.unwrap();
    let (mut counted, mut begin) = (0, None);
    while counted < uplinks / 100 * 97 {
        if let Event::Incoming(Packet::Publish(_)) = connection.poll().await.unwrap() {
            counted += 1;
            if counted == uplinks / 10 {
                begin = Some((Instant::now(), Cpu::of(process)));
            }
        }
    }
    let ((start, cpu), counted) = (begin.unwrap(), counted - uplinks / 10);
    let cpu = Cpu::of(process).since(&cpu);
    Run { per_s: counted as f64 / start.elapsed().as_secs_f64(), cpu_us: cpu.all * 1e6 / counted as f64 }
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
