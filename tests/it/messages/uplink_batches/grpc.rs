//! Batches of simulated uplinks over gRPC.

use api::{handler::SimulatedUplinkMessage, uplink::UplinkAnswer};
use futures::stream;
use serde_json::Value;
use types::{Kind, Kinded};

use super::{line, message, number, post, start};
use crate::harness::Owner;

/// All answers over gRPC.
async fn answers(owner: &Owner, messages: Vec<SimulatedUplinkMessage>) -> client::Result<Vec<UplinkAnswer>> {
    let mut answers = owner.handler.simulate_uplinks(stream::iter(messages)).await?;
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await? {
        all.push(answer);
    }
    Ok(all)
}

// Conformance: Many uplinks in one request
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_grpc_is_the_same() {
    let (network, owner) = start().await;
    let uplinks = [("dev-1", 7), ("dev-2", 0), ("dev-1", 1), ("nobody", 7)];
    let body: String = uplinks.iter().map(|(dev_id, byte)| line(dev_id, *byte)).collect();
    let (_, over_http) = post(&network, &owner.app_id, &owner.token, body).await;
    let mut messages: Vec<_> = uplinks.iter().map(|(dev_id, byte)| message(&owner.app_id, dev_id, *byte)).collect();
    messages[1].app_id.clear();
    messages.push(message(&"another".parse().unwrap(), "dev-1", 7));
    let mut over_grpc = answers(&owner, messages).await.unwrap();
    let foreign = over_grpc.pop().unwrap();
    assert!(foreign.line == 5 && foreign.error.unwrap().message.contains("the first message says `batching-app`"));
    for (http, grpc) in over_http.iter().zip(over_grpc) {
        let (result, error) = (grpc.result.unwrap_or_default(), grpc.error.unwrap_or_default());
        let fuel = http["fuel"].as_str().map_or(0, |fuel| fuel.parse().unwrap());
        assert_eq!((grpc.line, result.fuel), (number(http, "line"), fuel));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let outcome = result.outcome.unwrap_or_default();
        assert_eq!(
            (outcome.fields, outcome.failure),
            (text(&http["outcome"]["fields"]), text(&http["outcome"]["failure"]))
        );
        let code = http["code"].as_i64().unwrap_or_default();
        assert_eq!((i64::from(error.code), error.message), (code, text(&http["message"])));
    }
    assert_eq!(answers(&owner, vec![]).await.unwrap(), vec![]);
    let refused = answers(&owner, vec![message(&"another".parse().unwrap(), "dev-1", 7)]).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Denied, "{refused}");
    let refused = answers(&owner, vec![message(&owner.app_id, &"x".repeat(20_000), 7)]).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::TooLarge, "{refused}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_sender_over_grpc_gets_an_answer_to_each_message() {
    let (network, owner) = start().await;
    let (sender, messages) = tokio::sync::mpsc::channel(1);
    let messages = stream::unfold(messages, async |mut messages| Some((messages.recv().await?, messages)));
    let mut answers = owner.handler.simulate_uplinks(messages).await.unwrap();
    for number in 1..=5 {
        sender.send(message(&owner.app_id, "dev-1", 7)).await.unwrap();
        assert_eq!(answers.next().await.unwrap().unwrap().line, number);
    }
    drop(sender);
    assert_eq!(answers.next().await.unwrap(), None);
    network.stack.stop().await;
}
