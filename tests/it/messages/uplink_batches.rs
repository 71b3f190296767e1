//! Batches of simulated uplinks over HTTP and gRPC: each uplink is handled as if it had come alone.

mod grpc;
mod line_stream;

use api::{handler::SimulatedUplinkMessage, rest::handler::SimulatedUplink};
use client::account::AccountClient;
use serde_json::{Value, json};
use server::rate_limit::RateLimit;
use testing::soon;
use types::{AppId, Credential};

use self::line_stream::LineStream;
use crate::harness::{Network, Owner, next};

/// Fails for zero, and is not valid for one.
const DECODER: &str = "function Decoder(bytes, port) {
  console.log('port', port);
  if (!bytes[0]) throw new Error('no sensor');
  return { n: bytes[0] };
}";
const VALIDATOR: &str = "function Validator(fields) { return fields.n !== 1; }";

async fn start() -> (Network, Owner) {
    started(Network::start().await).await
}

async fn started(network: Network) -> (Network, Owner) {
    let owner = network.owner("batching").await;
    for dev_id in ["dev-1", "dev-2", "dev-3"] {
        owner.add_device(dev_id).await;
    }
    owner.set_functions([DECODER, "", VALIDATOR]).await.unwrap();
    (network, owner)
}

/// A line with one byte of payload.
fn line(dev_id: &str, byte: u8) -> String {
    let uplink = SimulatedUplink { dev_id: dev_id.to_owned(), port: 2, payload: vec![byte], ..Default::default() };
    format!("{}\n", serde_json::to_string(&uplink).unwrap())
}

fn message(app_id: &AppId, dev_id: &str, byte: u8) -> SimulatedUplinkMessage {
    SimulatedUplinkMessage { app_id: app_id.to_string(), dev_id: dev_id.to_owned(), payload: vec![byte], port: 2 }
}

/// The status and the lines that a whole body gets.
async fn post(network: &Network, app_id: &AppId, caller: &Credential, body: String) -> (u16, Vec<Value>) {
    let url = format!("{}/applications/{app_id}/uplinks", network.handler_http());
    let request = reqwest::Client::new().post(url).body(body).header("authorization", caller.to_header());
    let response = request.send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

async fn open(network: &Network, owner: &Owner, caller: &Credential) -> LineStream {
    let address = network.stack.handler_http_address().unwrap();
    LineStream::open(&address.to_string(), &owner.app_id, Some(caller)).await
}

/// The status of each answer, with the line that it is about.
fn statuses(answers: &[Value]) -> Vec<(u64, u64)> {
    answers.iter().map(|answer| (number(answer, "line"), answer["status"].as_u64().unwrap_or(200))).collect()
}

fn number(answer: &Value, member: &str) -> u64 {
    answer[member].as_u64().unwrap()
}

/// Removes what differs between two runs.
fn without_time(mut answer: Value) -> Value {
    let members = answer.as_object_mut().unwrap();
    for member in ["microseconds", "line", "status", "time", "metadata"] {
        members.remove(member);
    }
    answer
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn each_uplink_gets_what_it_gets_alone() {
    let (network, owner) = start().await;
    let mut listener = owner.listen(&network).await;
    let uplinks = [("dev-1", 7), ("dev-2", 0), ("dev-1", 1), ("nobody", 7), ("dev-3", 9)];
    let mut alone = Vec::new();
    for (dev_id, byte) in uplinks {
        let url = format!("{}/applications/{}/devices/{dev_id}/simulate", network.handler_http(), owner.app_id);
        let request = reqwest::Client::new().post(url).body(line(dev_id, byte));
        let response = request.header("authorization", owner.token.to_header()).send().await.unwrap();
        alone.push((u64::from(response.status().as_u16()), without_time(response.json().await.unwrap())));
    }
    let body: String = uplinks.iter().map(|(dev_id, byte)| line(dev_id, *byte)).collect();
    let (status, answers) = post(&network, &owner.app_id, &owner.token, body).await;
    assert_eq!(status, 200);
    let together = answers.into_iter().map(|answer| (answer["status"].as_u64().unwrap_or(200), without_time(answer)));
    assert_eq!(together.collect::<Vec<_>>(), alone);
    // Two are published, one fails, and one is not valid.
    let mut published = Vec::new();
    for _ in 0..2 * 5 {
        let (topic, message) = next(&mut listener).await;
        published.push((topic, without_time(message)));
    }
    assert_eq!(published[..5], published[5..]);
    network.stack.stop().await;
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn uplinks_are_answered_published_and_kept_in_the_order_of_their_lines() {
    let (network, owner) = start().await;
    let mut listener = owner.listen(&network).await;
    let devices = ["dev-1", "dev-2", "dev-3"];
    let uplinks: Vec<_> = (2..=251_u8).map(|byte| (devices[usize::from(byte) % 3], byte)).collect();
    let body: String = uplinks.iter().map(|(dev_id, byte)| line(dev_id, *byte)).collect();
    let (_, answers) = post(&network, &owner.app_id, &owner.token, body).await;
    let fields = |answer: &Value| answer["outcome"]["fields"].as_str().unwrap_or_default().to_owned();
    let expected: Vec<_> = uplinks.iter().map(|(_, byte)| format!("{{\"n\":{byte}}}")).collect();
    assert_eq!(answers.iter().map(fields).collect::<Vec<_>>(), expected);
    assert_eq!(statuses(&answers), (1..=250).map(|line| (line, 200)).collect::<Vec<_>>());
    let mut published = Vec::new();
    for _ in &uplinks {
        let (topic, message) = next(&mut listener).await;
        published.push((topic.trim_end_matches("/up").to_owned(), number(&message["payload_fields"], "n")));
    }
    let expected: Vec<_> = uplinks.iter().map(|(dev_id, byte)| ((*dev_id).to_owned(), u64::from(*byte))).collect();
    assert_eq!(published, expected);
    let url = format!("{}/applications/{}/history?limit=250", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().get(url).header("authorization", owner.token.to_header());
    let kept: Value = request.send().await.unwrap().json().await.unwrap();
    let newest_first = kept["records"].as_array().unwrap().iter().rev();
    let kept: Vec<_> = newest_first.map(|record| number(&record["payload_fields"], "n")).collect();
    assert_eq!(kept, uplinks.iter().map(|(_, byte)| u64::from(*byte)).collect::<Vec<_>>());
    network.stack.stop().await;
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_fails_alone_and_a_body_may_be_longer_than_others() {
    let (network, owner) = start().await;
    let good = line("dev-1", 7);
    let mut body = format!("{good}\n  \r\nno JSON\n[]\n");
    body += &format!("{}\n", json!({"dev_id": "dev-1", "app_id": "another"}));
    body += &format!("{}\n", json!({"dev_id": "dev-1", "port": 256}));
    body += &format!("{}\n{good}", "x".repeat(3 << 20));
    body += good.trim_end();
    let (status, answers) = post(&network, &owner.app_id, &owner.token, body).await;
    assert_eq!(status, 200);
    let expected = [(1, 200), (4, 400), (5, 400), (6, 400), (7, 400), (8, 413), (9, 200), (10, 200)];
    assert_eq!(statuses(&answers), expected, "{answers:?}");
    let said = answers.iter().filter_map(|answer| answer["message"].as_str()).collect::<Vec<_>>().join("\n");
    for text in ["JSON object", "the path says `batching-app`", "0 to 255", "at most 16384 bytes"] {
        assert!(said.contains(text), "{said}");
    }
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_needs_the_right_and_notices_when_it_is_withdrawn() {
    let (network, owner) = start().await;
    let address = network.stack.handler_http_address().unwrap().to_string();
    // The response comes before the body.
    assert_eq!(LineStream::open(&address, &owner.app_id, None).await.status, 401);
    let reader = Credential::Key(owner.key_with(&network, "messages:up:r").await);
    assert_eq!(LineStream::open(&address, &owner.app_id, Some(&reader)).await.status, 403);
    let writer = Credential::Key(owner.key_with(&network, "messages:up:w").await);
    let mut batch = open(&network, &owner, &writer).await;
    batch.send(&line("dev-1", 7)).await;
    let answer = batch.answer().await.unwrap();
    assert_eq!((number(&answer, "line"), &answer["outcome"]), (1, &Value::Null), "it may not read the functions");
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    account.delete_access_key(&owner.token, &owner.app_id, "messages up w").await.unwrap();
    let last = loop {
        batch.send(&line("dev-1", 7)).await;
        let answer = batch.answer().await.unwrap();
        if !answer["status"].is_null() {
            break answer;
        }
    };
    assert_eq!(last["status"], 401, "{last}");
    assert_eq!(batch.answer().await, None, "it has ended");
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn each_uplink_counts_for_the_rate_limits() {
    // The registration, three devices and the functions are five calls.
    for (client, application) in [(8, 1000), (1000, 8)] {
        let network = Network::with(|settings| {
            settings.handler.rate_limits.client = RateLimit::new(client, 1);
            settings.handler.rate_limits.application = RateLimit::new(application, 1);
        });
        let (network, owner) = started(network.await).await;
        let (_, answers) = post(&network, &owner.app_id, &owner.token, line("dev-1", 7).repeat(5)).await;
        assert_eq!(statuses(&answers), [(1, 200), (2, 200), (3, 200), (4, 429), (5, 429)]);
        let wait_s = number(&answers[4], "retry_after_s");
        assert!((3000..=3600).contains(&wait_s) && answers[4]["code"] == 8, "{answers:?}");
        // Whoever may send nothing any more may still learn that.
        let (status, answers) = post(&network, &owner.app_id, &owner.token, line("dev-1", 7)).await;
        assert_eq!((status, statuses(&answers)), (200, vec![(1, 429)]));
        network.stack.stop().await;
    }
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_count_too_and_a_limit_may_end_within_any_group() {
    let network = Network::with(|settings| settings.handler.rate_limits.client = RateLimit::new(5 + 100, 1));
    let (network, owner) = started(network.await).await;
    let body = format!("{}{}", "no JSON\n".repeat(10), line("dev-1", 7).repeat(140));
    let (_, answers) = post(&network, &owner.app_id, &owner.token, body).await;
    // Groups count at the same time, so that the limit may end within each of them.
    let [bad, good, refused] = [400, 200, 429].map(|status| {
        let lines = statuses(&answers).into_iter().filter(|(_, of_line)| *of_line == status);
        lines.map(|(line, _)| line).collect::<Vec<_>>()
    });
    assert_eq!((bad, good.len(), refused.len()), ((1..=10).collect(), 90, 50));
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn batches_take_memory_of_their_owner() {
    // Enough for one of some 300 kB.
    let (network, owner) =
        started(Network::with(|settings| settings.budgets.body_bytes_per_owner_max = 400_000).await).await;
    let mut first = open(&network, &owner, &owner.token).await;
    let second = open(&network, &owner, &owner.token).await;
    assert_eq!((first.status, second.status), (200, 429));
    let another = network.owner("another").await;
    assert_eq!(open(&network, &another, &another.token).await.status, 200);
    first.finish().await;
    assert_eq!(first.answer().await, None);
    soon("the end of the first", async { while open(&network, &owner, &owner.token).await.status != 200 {} }).await;
    network.stack.stop().await;
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_ask_first_whether_it_may_send() {
    let (network, owner) = start().await;
    let address = network.stack.handler_http_address().unwrap().to_string();
    let mut batch = LineStream::ask_first(&address, &owner.app_id, &owner.token, &line("dev-1", 7)).await;
    assert_eq!((batch.status, &batch.answer().await.unwrap()["line"]), (200, &json!(1)));
    batch.send(&line("dev-1", 7)).await;
    assert_eq!(batch.answer().await.unwrap()["line"], 2);
    network.stack.stop().await;
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_takes_long_is_published_before_the_next() {
    let (network, owner) = start().await;
    let decoder = "function Decoder(bytes) {
      for (let i = 0; bytes[0] <= 64 && i < 100000; i += 1) {}
      return { n: bytes[0] };
    }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    let mut listener = owner.listen(&network).await;
    // The second group is of another device, so that nothing but the batch orders them.
    let body: String = (1..=128).map(|n| line(if n <= 64 { "dev-1" } else { "dev-2" }, n)).collect();
    let (_, answers) = post(&network, &owner.app_id, &owner.token, body).await;
    assert_eq!(statuses(&answers), (1..=128).map(|line| (line, 200)).collect::<Vec<_>>());
    for n in 1..=128_u64 {
        assert_eq!(number(&next(&mut listener).await.1["payload_fields"], "n"), n);
    }
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_sender_gets_an_answer_to_each_line() {
    let (network, owner) = start().await;
    let mut batch = open(&network, &owner, &owner.token).await;
    for number in 1..=5 {
        let whole = line("dev-1", 7);
        let (begin, end) = whole.split_at(9);
        batch.send(begin).await;
        batch.send(end).await;
        assert_eq!(batch.answer().await.unwrap()["line"], number);
    }
    batch.finish().await;
    assert_eq!(batch.answer().await, None);
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_stays_when_the_connection_is_cut() {
    let (network, owner) = start().await;
    let mut listener = owner.listen(&network).await;
    let mut batch = open(&network, &owner, &owner.token).await;
    let last = line("dev-1", 99);
    batch.send(&format!("{}{}{}", line("dev-1", 7), line("dev-2", 8), &last[..last.len() - 1])).await;
    assert_eq!(batch.answer().await.unwrap()["line"], 1);
    drop(batch);
    owner.simulate("dev-3", &[100], 1).await.unwrap();
    for (dev_id, n) in [("dev-1", 7), ("dev-2", 8), ("dev-3", 100)] {
        let (topic, message) = next(&mut listener).await;
        assert_eq!((topic, &message["payload_fields"]["n"]), (format!("{dev_id}/up"), &json!(n)));
    }
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_given_up() {
    let (network, owner) = started(Network::with(|settings| settings.serve.unread_timeout_ms = 1000).await).await;
    let decoder = "function Decoder(bytes) { return { text: 'x'.repeat(10000) }; }";
    owner.set_functions([decoder, "", ""]).await.unwrap();
    let mut batch = open(&network, &owner, &owner.token).await;
    let lines = line("dev-1", 7).repeat(64);
    // It is no longer read, and then closed.
    while batch.try_send(&lines).await.is_ok() {}
    assert_eq!(post(&network, &owner.app_id, &owner.token, line("dev-1", 7)).await.1.len(), 1);
    network.stack.stop().await;
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_says_where_to_go_on_when_the_handler_stops() {
    let (network, owner) = start().await;
    let mut batch = open(&network, &owner, &owner.token).await;
    batch.send(&format!("{}\n", line("dev-1", 7))).await;
    assert_eq!(batch.answer().await.unwrap()["line"], 1);
    let stopping = tokio::spawn(network.stack.stop());
    let last = batch.answer().await.unwrap();
    assert_eq!((&last["line"], &last["status"], &last["code"]), (&json!(2), &json!(503), &json!(14)), "{last}");
    assert_eq!(last["message"], "the handler is shutting down: send again from the first uplink that was not answered");
    assert_eq!(batch.answer().await, None);
    drop(batch);
    stopping.await.unwrap();
}

// Conformance: A batch needs its right throughout, counts for rate limits
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_leaves_no_gap_between_what_was_answered_and_where_to_go_on() {
    let (network, owner) = start().await;
    let mut batch = open(&network, &owner, &owner.token).await;
    batch.send(&line("dev-1", 7).repeat(1000)).await;
    assert_eq!(batch.answer().await.unwrap()["line"], 1);
    let stopping = tokio::spawn(network.stack.stop());
    let mut expected = 2;
    let last = loop {
        let answer = batch.answer().await.unwrap();
        assert_eq!(answer["line"], expected, "{answer}");
        if !answer["status"].is_null() {
            break answer;
        }
        expected += 1;
    };
    assert_eq!(last["status"], 503, "{last}");
    assert_eq!(batch.answer().await, None);
    drop(batch);
    stopping.await.unwrap();
}
