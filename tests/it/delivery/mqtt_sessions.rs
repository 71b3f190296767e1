//! Persistent MQTT sessions of a server that is killed: what it accepted is delivered, in order.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use serde_json::Value;

use crate::harness::{MESSAGE_TIMEOUT, Owner, server_process::ServerProcess};

const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] * 256 + bytes[1] }; }";

/// Number of times that the server is killed.
const ROUNDS: u16 = 3;

/// A client whose session outlives its connections, and what it got so far.
struct Worker {
    client: AsyncClient,
    events: EventLoop,
    numbers: Vec<u16>,
}

impl Worker {
    fn connect(address: &str, owner: &Owner, numbers: Vec<u16>) -> Self {
        let (host, port) = address.rsplit_once(':').unwrap();
        let mut options = MqttOptions::new("worker", host, port.parse().unwrap());
        options.set_clean_session(false).set_credentials(owner.app_id.as_str(), owner.key.expose());
        // Otherwise it acknowledges what it has read before it hands it over.
        options.set_manual_acks(true);
        let (client, events) = AsyncClient::new(options, 1000);
        Self { client, events, numbers }
    }

    /// Receives until `is_enough`.
    async fn receive(&mut self, mut is_enough: impl FnMut(&Packet, &[u16]) -> bool) {
        let receive = async {
            loop {
                let Event::Incoming(packet) = self.events.poll().await.unwrap() else { continue };
                if let Packet::Publish(message) = &packet {
                    let uplink: Value = serde_json::from_slice(&message.payload).unwrap();
                    let bytes = STANDARD.decode(uplink["payload_raw"].as_str().unwrap()).unwrap();
                    let number = u16::from_be_bytes(bytes.try_into().unwrap());
                    let is_old = self.numbers.contains(&number);
                    let last = self.numbers.iter().max();
                    assert!(is_old || last < Some(&number), "{number} came after {last:?}");
                    self.numbers.push(number);
                    self.client.try_ack(message).unwrap();
                }
                if is_enough(&packet, &self.numbers) {
                    return;
                }
            }
        };
        tokio::time::timeout(MESSAGE_TIMEOUT, receive).await.expect("messages arrive");
    }
}

async fn simulate(owner: &Owner, number: u16) -> bool {
    owner.simulate("dev-1", &number.to_be_bytes(), 1).await.is_ok()
}

/// Gives the owner a client of the process that runs now.
async fn follow(owner: &mut Owner, dir: &Path, process: &ServerProcess) {
    let announcement = process.announcement(dir).await;
    owner.handler = HandlerClient::connect(&announcement, owner.token.clone()).unwrap();
}

// Conformance: Persistent sessions keep messages while the client is away
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_delivers_what_it_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = ServerProcess::start(dir.path());
    let mut owner = process.owner(dir.path(), "meadow").await;
    owner.set_functions([DECODER, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let mut worker = Worker::connect(process.place("MQTT"), &owner, Vec::new());
    worker.client.subscribe("+/devices/+/up", QoS::AtLeastOnce).await.unwrap();
    worker.receive(|packet, _| matches!(packet, Packet::SubAck(_))).await;
    let mut accepted = Vec::new();
    for round in 0..ROUNDS {
        let first = round * 100;
        // The client gets some of them, and is away for others.
        for number in first..first + 20 {
            assert!(simulate(&owner, number).await);
            accepted.push(number);
        }
        worker.receive(|_, numbers| numbers.contains(&(first + 10))).await;
        let sending = async {
            let mut number = first + 20;
            while simulate(&owner, number).await {
                accepted.push(number);
                number += 1;
            }
        };
        let killing = async {
            tokio::time::sleep(std::time::Duration::from_millis(u64::from(round) * 7 + 20)).await;
            tokio::task::block_in_place(|| process.kill());
        };
        tokio::join!(sending, killing);
        process = ServerProcess::start(dir.path());
        follow(&mut owner, dir.path(), &process).await;
        worker = Worker::connect(process.place("MQTT"), &owner, worker.numbers);
        worker.receive(|packet, _| matches!(packet, Packet::ConnAck(ack) if ack.session_present)).await;
    }
    worker.receive(|_, numbers| accepted.iter().all(|number| numbers.contains(number))).await;
    process.stop();
}
