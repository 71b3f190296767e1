//! Outputs of the operator, as settings of the whole product.

use std::time::Duration;

use outputs::RedisSettings;
use serde_json::Value;
use testing::RedisProcess;
use tokio::time::{sleep, timeout};

use crate::{
    delivery::delivery_to,
    harness::{MESSAGE_TIMEOUT, Network, next},
};

const TOPIC: &str = "streamed-app/devices/dev-1/up";

#[tokio::test(flavor = "multi_thread")]
async fn an_uplink_reaches_a_stream_with_the_body_that_mqtt_clients_get() {
    let Some(redis) = RedisProcess::start() else { return };
    let output = RedisSettings { url: redis.url(), ..RedisSettings::default() };
    let network = Network::with(|settings| settings.output.redis = vec![output]).await;
    let owner = network.owner("streamed").await;
    owner.add_device("dev-1").await;
    let mut listener = owner.listen(&network).await;
    owner.simulate("dev-1", &[7], 3).await.unwrap();
    let (_, published) = next(&mut listener).await;
    let body = loop {
        let entries = redis.call(&[b"XRANGE", b"airlock:streamed-app", b"-", b"+"]);
        let body = entries.lines().skip_while(|line| *line != TOPIC).find(|line| line.starts_with('{'));
        if let Some(body) = body {
            break body.to_owned();
        }
    };
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), published);
    let is_delivered = async {
        loop {
            let delivery = delivery_to("redis", &network, &owner).await;
            if delivery["state"] == "delivered" {
                return delivery;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let delivery = timeout(MESSAGE_TIMEOUT, is_delivered).await.expect("it is delivered");
    assert!(delivery["attempts"] == 1 && delivery["delivered_at"].is_string(), "{delivery}");
    assert!(delivery["duration_us"].is_u64() && delivery["status"].is_null(), "{delivery}");
    network.stack.stop().await;
}
