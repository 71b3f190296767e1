//! Concurrent joins with one nonce: exactly one succeeds, on every store.

use std::collections::BTreeSet;

use testing::RedisProcess;
use tokio::{task::JoinSet, time::timeout};
use tonic::{Code, Status};
use types::ApplicationRight;

use super::{
    APP_KEY, network,
    network_broker::{BROKER, DEV_EUI, NetworkBroker, message},
    set,
    templates::{devices, make_key, set_key},
};
use crate::harness::{MESSAGE_TIMEOUT, Network, Owner};

const MANY: usize = 50;

/// Concurrent joins with one nonce, of a registered device and through a template.
async fn one_of_many(network: Network) {
    let owner = network.owner("crowd").await;
    let broker = NetworkBroker::of(&network, "crowd", "brokers", BROKER).await;
    set(&owner, "dev-1", DEV_EUI, APP_KEY).await;
    set(&owner, "sensor", "", APP_KEY).await;
    set_key(&owner, Some(make_key(&network, &owner, "planting", &[ApplicationRight::Devices]).await)).await;
    for (dev_id, dev_eui) in [("dev-1", DEV_EUI), ("sensor", "0004A30B001C0533")] {
        let responses = many(&broker, &owner, dev_id, dev_eui).await;
        let (joined, refused): (Vec<_>, Vec<_>) = responses.into_iter().partition(Result::is_ok);
        assert_eq!(joined.len(), 1, "{dev_id}: {refused:?}");
        let texts: BTreeSet<String> =
            refused.into_iter().filter_map(Result::err).map(|status| status.message().to_owned()).collect();
        assert_eq!(texts, ["Activation DevNonce not valid: already used".to_owned()].into(), "{dev_id}");
    }
    assert_eq!(devices(&owner).await, ["dev-1", "sensor", "sensor-0004a30b001c0533"]);
    network.stack.stop().await;
}

async fn many(broker: &NetworkBroker, owner: &Owner, dev_id: &str, dev_eui: &str) -> Vec<Result<(), Status>> {
    let request = broker.challenge(&owner.app_id, dev_id, dev_eui, 7).await.unwrap();
    let mut tries = JoinSet::new();
    for _ in 0..MANY {
        let (broker, message) = (broker.clone(), message(&owner.app_id, dev_id, dev_eui, request.clone()));
        let joining = async move {
            loop {
                match broker.activate(message.clone()).await {
                    // Too many at once for a slow machine: a device joins again.
                    Err(status) if status.code() == Code::Unavailable => {}
                    answer => return answer.map(drop),
                }
            }
        };
        tries.spawn(async move { timeout(MESSAGE_TIMEOUT, joining).await.expect("it is answered") });
    }
    tries.join_all().await
}

// Conformance: A nonce is accepted once, even under concurrency
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_joins_with_one_nonce_succeeds() {
    one_of_many(network().await).await;
}

// Conformance: A nonce is accepted once, even under concurrency
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_joins_with_one_nonce_succeeds_on_redis() {
    let Some(redis) = RedisProcess::start() else { return };
    one_of_many(Network::on(&redis, |settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await)
        .await;
}
