//! The same work in Node: the package `mqtt`, and a `vm` context with a time limit for each message. Its processes share
//! the events, as those of a cluster do.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use testing::figures::Figures;

use crate::{
    input::Input,
    network::Network,
    usage::{Cpu, Measured},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/bridge.js");
/// Processes of Node: the first prints `ready` with the ids of the others, and then how many events they have published.
struct Peer {
    process: Child,
    workers: Vec<u32>,
    /// Number of events it had published when all were ready.
    before: usize,
    lines: Box<dyn Iterator<Item = String> + Send>,
    started: Instant,
}

impl Peer {
    fn start(network: &Network, codecs: &Path) -> Self {
        let processes = std::thread::available_parallelism().unwrap().to_string();
        let mut command = Command::new("node");
        command.arg(SCRIPT).arg(network.broker.url()).arg(codecs).arg(processes).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut before = 0;
        let ready = loop {
            let line = lines.next().expect("node did not subscribe");
            match line.strip_prefix("ready ") {
                Some(workers) => break workers.to_owned(),
                None => before = line.parse().unwrap(),
            }
        };
        let workers = ready.split(' ').map(|id| id.parse().unwrap()).collect();
        Self { process, workers, before, lines: Box::new(lines), started: Instant::now() }
    }

    fn cpu(&self) -> Cpu {
        self.workers.iter().fold(Cpu::of(self.process.id()), |sum, worker| sum.and(&Cpu::of(*worker)))
    }

    /// Waits until so many are published; returns how many are.
    fn until(&mut self, uplinks: usize) -> usize {
        let mut counts = self.lines.by_ref().filter_map(|line| line.parse().ok());
        counts.find(|count| *count >= uplinks).expect("node ended")
    }

    /// Measures from the first event to nearly the last. Confirmations come in one burst, when all are published.
    fn measure(&mut self, uplinks: usize) -> Measured {
        let cpu = self.cpu();
        let published = self.until(uplinks / 100 * 97);
        Measured::new(0.0, published - self.before, self.started.elapsed(), self.cpu().since(&cpu))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Compares ours with Node, for which as many uplinks wait.
pub(crate) async fn compare(input: &Input, uplinks: usize, ours: Measured, figures: &mut Figures) {
    if env::var_os("NODE_PATH").is_none() {
        return println!("not compared with Node: NODE_PATH is not set");
    }
    let node = nodes(input, uplinks).await;
    figures.add("the same in Node", format!("{:.0}/s, {:.0} µs", node.per_s, node.cpu_us), "");
    figures.add("ours ÷ Node, rate", format!("{:.1}", ours.per_s / node.per_s), "");
    figures.add("Node ÷ ours, processor time", format!("{:.1}", node.cpu_us / ours.cpu_us), "≥ 4");
}

async fn nodes(input: &Input, uplinks: usize) -> Measured {
    let network = Network::start(input).await;
    let codecs = network.dir.path().join("codecs.json");
    let scripts: Vec<_> = input.profiles.iter().map(|profile| &profile.script).collect();
    std::fs::write(&codecs, serde_json::to_string(&scripts).unwrap()).unwrap();
    drop(Peer::start(&network, &codecs));
    network.publish(input, uplinks).await;
    let mut node = Peer::start(&network, &codecs);
    tokio::task::spawn_blocking(move || node.measure(uplinks)).await.unwrap()
}
