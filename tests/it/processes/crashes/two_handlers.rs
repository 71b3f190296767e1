//! The same with two handlers on one Redis, whose messages go through a broker that others run. Either of them fails, and
//! so do Redis, the receiver of a webhook and the subscriber; the broker freezes.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;
use testing::{Mosquitto, RedisProcess};
use tokio::time::{sleep, timeout};
use types::DevId;

use super::{
    DECODER, DEVICES, ENVIRONMENT, PATIENCE, UPLINKS, check_orders, fault::Fault, number, posted, publisher::Publisher,
    retry, rounds, subscriber::Subscriber,
};
use crate::{
    delivery::{
        external_broker::handlers::{Handler, Sender, Services, of_redis},
        webhooks::{call, receiver::Receiver},
    },
    harness::{MESSAGE_TIMEOUT, Owner},
};

/// Time for which the broker is frozen, which is longer than a handler waits for it.
const FROZEN: Duration = Duration::from_millis(500);

/// Everything that runs.
struct World {
    broker: Mosquitto,
    redis: RedisProcess,
    services: Services,
    handlers: [Handler; 2],
    owner: Owner,
    receiver: Receiver,
    subscriber: Subscriber,
    next: u32,
    uplinks: Vec<u32>,
    downlinks: usize,
    /// Number of uplinks that a handler did not accept while the broker was frozen.
    unconfirmed: usize,
}

impl World {
    async fn start(broker: Mosquitto, redis: RedisProcess) -> Self {
        server::system::install_crypto();
        let mut environment = of_redis(&redis);
        environment.extend(ENVIRONMENT.map(|(name, value)| (name, value.to_owned())));
        environment.push(("AIRLOCK_EXTERNAL_BROKER__CONFIRM_TIMEOUT_MS", "200".to_owned()));
        let services = Services::start(vec![broker.url()], environment);
        let owner = services.process.owner(services.dir.path(), "pair").await;
        owner.set_functions([DECODER, "", ""]).await.unwrap();
        for device in 0..DEVICES {
            owner.add_device(&format!("dev-{device}")).await;
        }
        let receiver = Receiver::start().await;
        let webhook = json!({"url": receiver.url(), "events": ["up"]});
        assert_eq!(call(services.process.http("handler"), &owner, "PUT", "/my-hook", webhook).await.0, 200);
        let subscriber = Subscriber::start(&owner, &broker.address().to_string()).await;
        let handlers = [Handler::start(&services, 0).await, Handler::start(&services, 1).await];
        let (next, uplinks, downlinks, unconfirmed) = (0, Vec::new(), 0, 0);
        Self { broker, redis, services, handlers, owner, receiver, subscriber, next, uplinks, downlinks, unconfirmed }
    }

    /// Sends uplinks to both handlers in turn, and downlinks to the broker, while `fault` happens to one of them; none
    /// stands for the broker.
    async fn round(&mut self, victim: usize, fault: Option<Fault>, moment: Duration) {
        let Self { broker, redis, handlers, owner, receiver, subscriber, next, uplinks, .. } = self;
        let addresses = [0, 1].map(|place: usize| handlers[place].process.http("handler").to_owned());
        let (mut downlinks, mut refused) = (Vec::new(), 0);
        let mut publisher = Publisher::connect(owner, &broker.address().to_string());
        let sender = Sender::new(owner, PATIENCE);
        let sending = async {
            for count in 0..UPLINKS {
                let number = *next;
                *next += 1;
                // What is not accepted by one is accepted by the other.
                for place in [count, count + 1] {
                    let base = &addresses[place as usize % 2];
                    if sender.send(base, &dev_id(number), &number.to_be_bytes()).await {
                        uplinks.push(number);
                        break;
                    }
                    refused += 1;
                }
                if count % 5 == 0 && publisher.publish("dev-0", number).await {
                    downlinks.push(number);
                }
            }
        };
        let failing = async {
            match fault {
                Some(fault) => {
                    sleep(moment).await;
                    fault.happen(&mut handlers[victim].process, redis, receiver, subscriber).await;
                }
                // At once, so that it meets the messages of a fast machine, too.
                None => {
                    broker.freeze();
                    sleep(FROZEN).await;
                    broker.thaw();
                }
            }
        };
        tokio::join!(failing, sending);
        match fault {
            Some(Fault::KilledServer) => self.handlers[victim].start_again(&self.services).await,
            Some(Fault::StoppedReceiver) => self.receiver.start_again().await,
            _ => {}
        }
        if fault.is_none() {
            self.unconfirmed += refused;
        }
        self.check_downlinks(&downlinks).await;
        self.downlinks += downlinks.len();
    }

    /// Checks that downlinks that the broker has acknowledged get into the queue of the device, in any order, because
    /// both handlers take downlinks.
    async fn check_downlinks(&self, accepted: &[u32]) {
        let (app_id, dev_id): (_, DevId) = (&self.owner.app_id, "dev-0".parse().unwrap());
        let all_queued = async {
            loop {
                let queued = retry(PATIENCE, async || self.owner.handler.list_downlinks(app_id, &dev_id).await).await;
                let queued: BTreeSet<_> = queued.iter().map(|downlink| number(&downlink.payload_raw)).collect();
                if accepted.iter().all(|number| queued.contains(number)) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(MESSAGE_TIMEOUT, all_queued).await.expect("every downlink is queued");
        retry(MESSAGE_TIMEOUT, async || self.owner.handler.clear_downlinks(app_id, &dev_id).await).await;
    }

    async fn finish(mut self, rounds: usize, broker_was_frozen: bool) {
        // Otherwise nothing would have been tested.
        assert!(self.unconfirmed > 0 || !broker_was_frozen, "a frozen broker refuses uplinks");
        assert!(self.uplinks.len() >= rounds * UPLINKS as usize / 2, "only {} were accepted", self.uplinks.len());
        assert!(self.downlinks >= rounds, "only {} downlinks were accepted", self.downlinks);
        let posted = posted(&mut self.receiver, &self.uplinks).await;
        let received = self.subscriber.wait_for(&self.uplinks).await;
        check_orders(&self.uplinks, &posted, &received);
        println!("{} of {} uplinks and {} downlinks were accepted", self.uplinks.len(), self.next, self.downlinks);
    }
}

fn dev_id(number: u32) -> String {
    format!("dev-{}", number % DEVICES)
}

// Conformance: Two handlers at an existing broker
#[tokio::test(flavor = "multi_thread")]
async fn two_handlers_at_another_broker_lose_nothing_whatever_fails() {
    let (Some(broker), Some(redis)) = (Mosquitto::start(), RedisProcess::start()) else { return };
    let mut world = World::start(broker, redis).await;
    let faults: Vec<_> = Fault::ALL.into_iter().map(Some).chain([None]).collect();
    let rounds = rounds(faults.len() * 2);
    for round in 0..rounds {
        let moment = Duration::from_millis((round * 37 % 150) as u64);
        world.round(round / faults.len() % 2, faults[round % faults.len()], moment).await;
    }
    world.finish(rounds, rounds >= faults.len()).await;
}
