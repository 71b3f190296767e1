//! Webhooks of servers that are killed: what was accepted is delivered, in order per device.

use std::path::Path;

use airlock::serve::{Service, Stack};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use serde_json::json;
use testing::RedisProcess;

use super::{call, receiver::Answer, receiver::Receiver};
use crate::harness::{
    Network, Owner, environment,
    server_process::{ServerProcess, serve},
};

/// Number of times that the server is killed.
const ROUNDS: u8 = 3;
const UPLINKS: u8 = 20;

/// A server whose webhooks may have addresses of this machine.
fn spawn(dir: &Path) -> ServerProcess {
    ServerProcess::spawn(serve(dir).env("AIRLOCK_OUTPUT__DELIVERY__ALLOW_PRIVATE_ADDRESSES", "true"))
}

/// Gives the owner a client of the process that runs now.
async fn follow(owner: &mut Owner, dir: &Path, process: &ServerProcess) {
    let announcement = process.announcement(dir).await;
    owner.handler = HandlerClient::connect(&announcement, owner.token.clone()).unwrap();
}

/// The number in an uplink.
fn number(text: &str) -> u64 {
    let uplink: serde_json::Value = serde_json::from_str(text).unwrap();
    STANDARD.decode(uplink["payload_raw"].as_str().unwrap()).unwrap()[0].into()
}

const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] }; }";

// Conformance: What was accepted is delivered after a kill, and by one of several handlers
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_delivers_what_it_accepted() {
    let (dir, mut receiver) = (tempfile::tempdir().unwrap(), Receiver::start().await);
    let mut process = spawn(dir.path());
    let mut owner = process.owner(dir.path(), "killed").await;
    owner.set_functions([DECODER, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let base = process.announcement(dir.path()).await.api_address;
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    assert_eq!(call(&base, &owner, "PUT", "/my-hook", webhook).await.0, 200);
    // Some are refused in between, so that the queue is never empty when the server is killed.
    receiver.answer([Answer::Status(503); 5]);
    let mut accepted = Vec::new();
    for round in 0..ROUNDS {
        for number in 0..UPLINKS {
            let number = round * UPLINKS + number;
            if owner.simulate("dev-1", &[number], 1).await.is_ok() {
                accepted.push(u64::from(number));
            }
        }
        process.kill();
        process = spawn(dir.path());
        follow(&mut owner, dir.path(), &process).await;
    }
    assert_eq!(accepted.len(), usize::from(ROUNDS * UPLINKS));
    let mut arrived: Vec<u64> = Vec::new();
    while arrived.len() < accepted.len() {
        let number = number(&receiver.next().await.text);
        let last = arrived.last();
        assert!(arrived.contains(&number) || last < Some(&number), "{number} came after {last:?}");
        if !arrived.contains(&number) {
            arrived.push(number);
        }
    }
    assert_eq!(arrived, accepted);
    process.stop();
}

// Conformance: What was accepted is delivered after a kill, and by one of several handlers
#[tokio::test(flavor = "multi_thread")]
async fn what_several_handlers_accept_is_delivered_by_one() {
    let Some(redis) = RedisProcess::start() else { return };
    let mut receiver = Receiver::start().await;
    let network = Network::on(&redis, |settings| settings.output.delivery.allow_private_addresses = true).await;
    let owner = network.owner("shared").await;
    owner.set_functions([DECODER, "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    let other = Stack::start(network.stack.settings().clone(), Some(Service::Handler), environment()).await.unwrap();
    let other_url = format!("http://{}", other.handler_http_address().unwrap());
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    assert_eq!(call(&other_url, &owner, "PUT", "/my-hook", webhook).await.0, 200);
    let urls = [other_url, network.handler_http()];
    let simulate = async |number: u8, handler: usize| {
        let base = &urls[handler.min(1)];
        let url = format!("{base}/applications/{}/devices/dev-1/simulate", owner.app_id);
        let body = json!({"payload": base64(number), "port": 1});
        let request = reqwest::Client::new().post(url).json(&body);
        let response = request.header("authorization", owner.token.to_header()).send().await.unwrap();
        assert_eq!(response.status(), 200);
    };
    let mut other = Some(other);
    receiver.answer([Answer::Status(503)]);
    for number in 0..UPLINKS {
        if number == UPLINKS / 2 {
            other.take().unwrap().stop().await;
        }
        // When the other handler has stopped, this one takes all.
        simulate(number, usize::from(number) % 2 + usize::from(other.is_none())).await;
    }
    let mut arrived: Vec<u64> = Vec::new();
    while arrived.last() != Some(&u64::from(UPLINKS - 1)) {
        arrived.push(number(&receiver.next().await.text));
    }
    // Those that were not confirmed are sent again.
    let mut is_new = [true; UPLINKS as usize];
    arrived.retain(|number| std::mem::take(&mut is_new[*number as usize]));
    assert_eq!(arrived, (0..u64::from(UPLINKS)).collect::<Vec<_>>());
    network.stack.stop().await;
}

fn base64(byte: u8) -> String {
    STANDARD.encode([byte])
}
