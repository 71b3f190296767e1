//! The Node.js client of The Things Network v2, from npm.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use testing::Node;
use tokio::{sync::mpsc, time::timeout};

use super::python_sdk::{PROGRAMS, full_key};
use crate::{
    devices::joins::{
        self,
        network_broker::{BROKER, DEV_EUI, NetworkBroker},
    },
    harness::{MESSAGE_TIMEOUT, Network, Owner},
};

const DECODER: &str = "function Decoder(bytes) { return { led: bytes[0] === 1, level: { battery: bytes[1] } }; }";
const ENCODER: &str = "function Encoder(fields) { return [fields.led ? 1 : 0]; }";

/// A program that prints how far it is.
struct Program {
    process: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { process, lines }
    }

    async fn is_at(&mut self, expected: &str) {
        let line = timeout(MESSAGE_TIMEOUT, self.lines.recv()).await.expect("it goes on");
        assert_eq!(line.as_deref(), Some(expected));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // If it has ended, it cannot be killed.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

async fn set_functions(owner: &Owner) {
    let mut application = owner.handler.get_application(&owner.app_id).await.unwrap();
    application.payload_format = "custom".to_owned();
    (application.decoder, application.encoder) = (DECODER.to_owned(), ENCODER.to_owned());
    owner.handler.set_application(application).await.unwrap();
}

// Conformance: `ttn` of npm, unmodified
#[tokio::test(flavor = "multi_thread")]
async fn the_node_client_of_v2_works_unmodified() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm_ttn");
    let Some(node) = Node::install(&dir, &["ttn@2.0.1"]) else { return };
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("noder").await;
    set_functions(&owner).await;
    owner.add_device("dev-1").await;
    joins::set(&owner, "joining", DEV_EUI, joins::APP_KEY).await;
    let broker = NetworkBroker::of(&network, "noder", "brokers", BROKER).await;
    let mut command = node.command(&Path::new(PROGRAMS).join("node_sdk.js"));
    command.env("ADDRESS", network.mqtt()).env("APP_ID", owner.app_id.as_str());
    command.env("ACCESS_KEY", String::from(full_key(&network, &owner).await));
    let mut program = Program::start(&mut command);
    program.is_at("ready").await;
    owner.simulate("dev-1", &[1, 2], 4).await.unwrap();
    program.is_at("joins").await;
    let dev_id = "dev-1".parse().unwrap();
    let queued = owner.handler.list_downlinks(&owner.app_id, &dev_id).await.unwrap();
    let queued: Vec<_> = queued.into_iter().map(|downlink| (downlink.port, downlink.payload_raw)).collect();
    assert_eq!(queued, [(1, vec![9])], "each replaces those before it");
    broker.join(&owner.app_id, "joining", DEV_EUI, 1).await.unwrap();
    program.is_at("again").await;
    owner.simulate("dev-1", &[0, 0], 4).await.unwrap();
    program.is_at("done").await;
    assert!(program.process.wait().unwrap().success());
    network.stack.stop().await;
}
