//! Crashes: the server, Redis, the receiver of a webhook and an MQTT client are killed, frozen and full in turn, under
//! load. Whatever was accepted before is there after, and in order per device.

mod fault;
mod publisher;
mod subscriber;
mod two_handlers;

use std::{collections::BTreeSet, process::Stdio, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use client::handler::HandlerClient;
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::RedisProcess;
use tokio::time::{sleep, timeout};
use types::DevId;

use self::{fault::Fault, publisher::Publisher, subscriber::Subscriber};
use crate::{
    delivery::webhooks::{call, receiver::Receiver},
    harness::{
        MESSAGE_TIMEOUT, Owner,
        server_process::{ServerProcess, serve},
    },
};

const DECODER: &str =
    "function Decoder(bytes) { return { n: bytes.reduce(function (n, byte) { return n * 256 + byte; }, 0) }; }";
/// Number of faults, unless `AIRLOCK_CRASH_ROUNDS` says otherwise.
const ROUNDS: usize = 50;
const DEVICES: u32 = 3;
/// Maximum number of uplinks in a round; each fifth one comes with a downlink.
const UPLINKS: u32 = 40;
/// An uplink that takes longer is not accepted.
const PATIENCE: Duration = Duration::from_secs(3);

/// Limits that faults and fast machines would reach, and that are not what is tested.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("AIRLOCK_OUTPUT__DELIVERY__ALLOW_PRIVATE_ADDRESSES", "true"),
    // A receiver that does not answer holds up its queue for this long.
    ("AIRLOCK_OUTPUT__DELIVERY__TIMEOUT_MS", "500"),
    // The pauses after failures add up: on a fast machine, more messages wait than a queue has room for by default.
    ("AIRLOCK_OUTPUT__DELIVERY__QUEUE_MESSAGES_MAX", "1000000"),
    // On a slow one, a receiver that answers late makes up the rest of ten attempts.
    ("AIRLOCK_OUTPUT__DELIVERY__ATTEMPTS_MAX", "1000"),
    ("AIRLOCK_HANDLER__CALLS__CLIENT__BURST", "1000000"),
    ("AIRLOCK_HANDLER__CALLS__CLIENT__PER_HOUR", "1000000"),
    ("AIRLOCK_HANDLER__CALLS__APPLICATION__BURST", "1000000"),
    ("AIRLOCK_HANDLER__CALLS__APPLICATION__PER_HOUR", "1000000"),
];

/// Everything that runs.
struct World {
    redis: RedisProcess,
    dir: TempDir,
    server: ServerProcess,
    owner: Owner,
    receiver: Receiver,
    subscriber: Subscriber,
    next: u32,
    uplinks: Vec<u32>,
    /// Number of downlinks that were accepted.
    downlinks: usize,
}

impl World {
    async fn start(redis: RedisProcess) -> Self {
        server::system::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let server = start_server(&redis, &dir);
        let owner = server.owner(dir.path(), "crashes").await;
        owner.set_functions([DECODER, "", ""]).await.unwrap();
        for device in 0..DEVICES {
            owner.add_device(&format!("dev-{device}")).await;
        }
        let receiver = Receiver::start().await;
        let webhook = json!({"url": receiver.url(), "events": ["up"]});
        let base = server.announcement(dir.path()).await.api_address;
        assert_eq!(call(&base, &owner, "PUT", "/my-hook", webhook).await.0, 200);
        let subscriber = Subscriber::start(&owner, server.place("MQTT")).await;
        Self { redis, dir, server, owner, receiver, subscriber, next: 0, uplinks: Vec::new(), downlinks: 0 }
    }

    /// Sends uplinks and downlinks while `fault` happens, and looks at the downlinks that were accepted.
    async fn round(&mut self, fault: Fault, moment: Duration) {
        let Self { redis, server, owner, receiver, subscriber, next, uplinks, .. } = self;
        let mut downlinks = Vec::new();
        let mut publisher = Publisher::connect(owner, server.place("MQTT"));
        let sending = async {
            for count in 0..UPLINKS {
                let number = *next;
                *next += 1;
                if !simulate(owner, number).await {
                    return;
                }
                uplinks.push(number);
                if count % 5 == 0 && publisher.publish("dev-0", number).await {
                    downlinks.push(number);
                }
            }
        };
        let failing = async {
            sleep(moment).await;
            fault.happen(server, redis, receiver, subscriber).await;
        };
        tokio::join!(sending, failing);
        match fault {
            Fault::KilledServer => self.restart().await,
            Fault::StoppedReceiver => self.receiver.start_again().await,
            _ => {}
        }
        self.check_downlinks(&downlinks).await;
        self.downlinks += downlinks.len();
    }

    async fn restart(&mut self) {
        self.server = start_server(&self.redis, &self.dir);
        let announcement = self.server.announcement(self.dir.path()).await;
        self.owner.handler = HandlerClient::connect(&announcement, self.owner.token.clone()).unwrap();
        self.subscriber.move_to(self.server.place("MQTT"));
    }

    /// Those that were accepted wait for their device, in order.
    async fn check_downlinks(&self, accepted: &[u32]) {
        let (app_id, dev_id): (_, DevId) = (&self.owner.app_id, "dev-0".parse().unwrap());
        let queued = retry(PATIENCE, async || self.owner.handler.list_downlinks(app_id, &dev_id).await).await;
        let queued = queued.iter().map(|downlink| number(&downlink.payload_raw));
        assert_eq!(firsts(queued, accepted), accepted, "downlinks were accepted");
        retry(MESSAGE_TIMEOUT, async || self.owner.handler.clear_downlinks(app_id, &dev_id).await).await;
    }

    /// Checks that all accepted uplinks arrive at the subscriber and at the webhook.
    async fn finish(mut self, rounds: usize) {
        // Otherwise nothing would have been tested. Each round accepts several times as many, whatever happens in it.
        assert!(self.uplinks.len() >= rounds, "only {} uplinks were accepted", self.uplinks.len());
        assert!(self.downlinks >= rounds / 2, "only {} downlinks were accepted", self.downlinks);
        let posted = posted(&mut self.receiver, &self.uplinks).await;
        let received = self.subscriber.wait_for(&self.uplinks).await;
        check_orders(&self.uplinks, &posted, &received);
        println!("{} of {} uplinks and {} downlinks were accepted", self.uplinks.len(), self.next, self.downlinks);
    }
}

/// Waits until the receiver has taken all of these; returns all that it took.
async fn posted(receiver: &mut Receiver, expected: &[u32]) -> Vec<u32> {
    let (mut posted, mut missing) = (Vec::new(), BTreeSet::from_iter(expected));
    while !missing.is_empty() {
        let request = receiver.next().await;
        if request.is_taken {
            let number = number_of(&request.json());
            missing.remove(&number);
            posted.push(number);
        }
    }
    posted
}

/// Checks that the webhook and the subscriber got all accepted uplinks in the order of each device.
fn check_orders(accepted: &[u32], posted: &[u32], received: &[u32]) {
    for device in 0..DEVICES {
        let of_device = |numbers: &[u32]| -> Vec<u32> {
            numbers.iter().copied().filter(|number| number % DEVICES == device).collect()
        };
        let accepted = of_device(accepted);
        assert_eq!(firsts(of_device(posted), &accepted), accepted, "order of the webhook");
        assert_eq!(firsts(of_device(received), &accepted), accepted, "order of the subscriber");
    }
}

fn start_server(redis: &RedisProcess, dir: &TempDir) -> ServerProcess {
    let mut command = serve(dir.path());
    command.envs(ENVIRONMENT);
    command.env("AIRLOCK_STORE__REDIS__URLS", format!("[\"{}\"]", redis.url())).stderr(Stdio::null());
    ServerProcess::spawn(&mut command)
}

async fn simulate(owner: &Owner, number: u32) -> bool {
    let (dev_id, payload) = (format!("dev-{}", number % DEVICES), number.to_be_bytes());
    let sending = owner.simulate(&dev_id, &payload, 1);
    timeout(PATIENCE, sending).await.is_ok_and(|result| result.is_ok())
}

/// Repeats what fails, or takes longer than `patience`, until the faults are over.
async fn retry<T>(patience: Duration, call: impl AsyncFn() -> client::Result<T>) -> T {
    let repeating = async {
        loop {
            match timeout(patience, call()).await {
                Ok(Ok(value)) => return value,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(MESSAGE_TIMEOUT * 2, repeating).await.expect("it works again")
}

/// The numbers that were accepted, in the order in which each came first.
fn firsts(numbers: impl IntoIterator<Item = u32>, accepted: &[u32]) -> Vec<u32> {
    let mut left = BTreeSet::from_iter(accepted);
    numbers.into_iter().filter(|number| left.remove(number)).collect()
}

/// The number in a payload.
fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload.try_into().unwrap())
}

/// The number in a published uplink. It need not have fields: time goes on for a function while the server is frozen.
fn number_of(uplink: &Value) -> u32 {
    number(&STANDARD.decode(uplink["payload_raw"].as_str().unwrap()).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "whoever runs this test may want it to take longer")]
fn rounds(default: usize) -> usize {
    std::env::var("AIRLOCK_CRASH_ROUNDS").map_or(default, |rounds| rounds.parse().unwrap())
}

// Conformance: Uplinks, downlinks, sessions and webhooks while the server, Redis
#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_survives_whatever_fails() {
    let Some(redis) = RedisProcess::start() else { return };
    let mut world = World::start(redis).await;
    let rounds = rounds(ROUNDS);
    for round in 0..rounds {
        let fault = Fault::ALL[round % Fault::ALL.len()];
        // Another moment each time, so that it meets the messages in other places.
        world.round(fault, Duration::from_millis((round * 37 % 150) as u64)).await;
    }
    world.finish(rounds).await;
}
