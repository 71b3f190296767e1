//! Charts of numeric fields, over REST.

use std::time::Duration;

use serde_json::{Value, json};
use types::Timestamp;

use crate::harness::{Network, Owner};

const DECODER: &str = "function Decoder(bytes) {
  if (bytes[0] === 99) throw new Error('no');
  return { celsius: bytes[0], battery: { volts: bytes[0] / 10 }, name: 'x', list: [1] };
}";
const VALIDATOR: &str = "function Validator(fields) { return fields.celsius !== 50; }";

async fn get(network: &Network, owner: &Owner, query: &str) -> (u16, Value) {
    owner.ask(&network.handler_http(), "GET", &format!("/history/chart{query}"), Value::Null).await
}

/// An owner of two devices with uplinks, one of which failed and one of which was refused.
async fn owner(network: &Network) -> Owner {
    let owner = network.owner("charter").await;
    owner.add_device("dev-1").await;
    owner.add_device("dev-2").await;
    owner.set_functions([DECODER, "", VALIDATOR]).await.unwrap();
    for byte in [10, 40, 99] {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    owner.simulate("dev-1", &[50], 1).await.unwrap_err();
    owner.simulate("dev-1", &[10], 1).await.unwrap();
    owner.simulate("dev-2", &[7], 1).await.unwrap();
    owner
}

/// Field, least, mean and greatest value, and how many there are.
fn points(chart: &Value) -> Vec<(String, f64, f64, f64, u64)> {
    let series = chart["series"].as_array().unwrap().iter();
    let points = series.flat_map(|series| {
        let points = series["points"].as_array().unwrap().iter();
        points.map(|point| {
            let number = |name: &str| (point[name].as_f64().unwrap() * 1e6).round() / 1e6;
            let field = series["field"].as_str().unwrap().to_owned();
            (field, number("min"), number("mean"), number("max"), point["count"].as_u64().unwrap())
        })
    });
    points.collect()
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_has_the_least_the_mean_and_the_greatest_value() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let (status, chart) = get(&network, &owner, "?dev_id=dev-1&points=1").await;
    let expected = [("battery.volts".to_owned(), 1.0, 2.0, 4.0, 3), ("celsius".to_owned(), 10.0, 20.0, 40.0, 3)];
    assert_eq!((status, points(&chart)), (200, expected.to_vec()), "what failed or was refused has no values: {chart}");
    assert_eq!((&chart["examined"], &chart["bucket_seconds"]), (&json!(5), &json!(86400.0)));
    let (_, one) = get(&network, &owner, "?dev_id=dev-1&points=1&field=celsius").await;
    assert_eq!(points(&one), expected[1..]);
    let (_, fine) = get(&network, &owner, "?dev_id=dev-1&points=1000&field=celsius").await;
    assert_eq!(points(&fine).iter().map(|point| point.4).sum::<u64>(), 3, "{fine}");
    let past = "?dev_id=dev-1&since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z";
    assert_eq!(get(&network, &owner, past).await.1["series"], json!([]));
    let (_, nobody) = get(&network, &owner, "?dev_id=nobody").await;
    assert_eq!((&nobody["examined"], &nobody["series"]), (&json!(0), &json!([])));
    network.stack.stop().await;
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_has_what_uplinks_were_corrected_to() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let url = format!("{}/applications/{}/history/decode", network.handler_http(), owner.app_id);
    let decoder = "function Decoder(bytes) { return { celsius: bytes[0] * 2 }; }";
    let body = json!({"functions": {"payload_format": "custom", "decoder": decoder}, "write": true});
    let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header());
    let reports = request.json(&body).send().await.unwrap().text().await.unwrap();
    assert!(reports.contains("\"done\":true"), "{reports}");
    let (_, chart) = get(&network, &owner, "?dev_id=dev-1&points=1").await;
    let points = points(&chart);
    assert_eq!(points, [("celsius".to_owned(), 20.0, 83.6, 198.0, 5)], "{chart}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_time_is_shown_more_finely() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let (_, day) = get(&network, &owner, "?dev_id=dev-1&field=celsius&points=100").await;
    let until: Timestamp = day["until"].as_str().unwrap().parse().unwrap();
    let since = until.minus(Duration::from_secs(600)).to_rfc3339();
    let part = format!("?dev_id=dev-1&field=celsius&points=100&since={since}&until={}", until.to_rfc3339());
    let (_, part) = get(&network, &owner, &part).await;
    assert_eq!((&day["bucket_seconds"], &part["bucket_seconds"]), (&json!(864.0), &json!(6.0)));
    let values = |chart: &Value| points(chart).iter().map(|point| point.4).sum::<u64>();
    assert_eq!([values(&day), values(&part)], [3, 3]);
    network.stack.stop().await;
}
