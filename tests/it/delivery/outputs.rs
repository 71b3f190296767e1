//! Outputs of the operator, as settings of the whole product.

use outputs::RedisSettings;
use serde_json::Value;
use testing::RedisProcess;

use crate::harness::{Network, next};

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
    network.stack.stop().await;
}
