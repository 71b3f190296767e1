//! Two handlers on one Redis, of whatever kind, share records and rate limits.

use airlock::serve::{Service, Stack};
use server::rate_limit::RateLimit;
use store::RedisSettings;
use testing::{RedisCluster, RedisProcess, RedisSentinels};

use crate::harness::{Network, device, environment};

// Conformance: Register, get, set, delete over gRPC and HTTP
// Conformance: 5000 API calls per hour at the handler
#[tokio::test(flavor = "multi_thread")]
async fn two_handlers_share_data_and_rate_limits() {
    let Some(redis) = RedisProcess::start() else { return };
    share(RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() }).await;
}

// Conformance: Redis behind sentinels, and a cluster of three nodes
#[tokio::test(flavor = "multi_thread")]
async fn two_handlers_share_a_cluster_of_three_nodes() {
    let Some(cluster) = RedisCluster::start() else { return };
    share(RedisSettings { urls: cluster.urls(), cluster: true, ..RedisSettings::default() }).await;
}

// Conformance: Redis behind sentinels, and a cluster of three nodes
#[tokio::test(flavor = "multi_thread")]
async fn two_handlers_share_a_redis_behind_sentinels() {
    let Some(redis) = RedisSentinels::start(1) else { return };
    let (urls, sentinels) = (vec![redis.primary_url()], redis.urls());
    share(RedisSettings { urls, sentinels, confirming_replicas: 1, ..RedisSettings::default() }).await;
}

async fn share(redis: RedisSettings) {
    let network = Network::on_store(redis, |settings| settings.handler.rate_limits.client = RateLimit::new(8, 1)).await;
    let owner = network.owner("traveller").await;
    let other = Stack::start(network.stack.settings().clone(), Some(Service::Handler), environment()).await.unwrap();
    let handlers = [network.handler_http(), format!("http://{}", other.handler_http_address().unwrap())];
    assert_ne!(handlers[0], handlers[1]);

    let send = async |handler: &str, method: &str, path: &str, body: String| {
        let url = format!("{handler}/applications/{}{path}", owner.app_id);
        let request = reqwest::Client::new().request(method.parse().unwrap(), url).body(body);
        let response = request.header("authorization", owner.token.to_header()).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let decoder = r#"{"decoder": "function Decoder(bytes) { return { n: 1 }; }"}"#;
    assert_eq!(send(&handlers[0], "PUT", "", decoder.to_owned()).await.0, 200);
    assert!(send(&handlers[1], "GET", "", String::new()).await.1.contains("{ n: 1 }"));
    let dev_1 = serde_json::to_string(&device(&owner.app_id, "dev-1")).unwrap();
    assert_eq!(send(&handlers[1], "PUT", "/devices/dev-1", dev_1).await.0, 200);
    for handler in &handlers {
        assert_eq!(send(handler, "GET", "/devices/dev-1", String::new()).await.0, 200);
    }
    assert_eq!(send(&handlers[0], "DELETE", "/devices/dev-1", String::new()).await.0, 200);
    assert_eq!(send(&handlers[1], "GET", "/devices/dev-1", String::new()).await.0, 404);
    // With the registration, that was the eighth call.
    for handler in &handlers {
        assert_eq!(send(handler, "GET", "", String::new()).await.0, 429);
    }
    other.stop().await;
    network.stack.stop().await;
}
