//! What became of an uplink at each webhook, as far as that is known: what a webhook has taken is not kept.

use api::{
    history::Record,
    rest::handler::{DeadLetter, Webhook},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use client::{handler::Page as Part, webhooks::WebhookClient};
use futures::future::try_join_all;
use serde_json::Value;
use types::{Kind, Kinded, Timestamp, WebhookId};

use crate::{
    Result,
    site::{
        failure::{Problem, log},
        page::{Time, short},
        viewer::InApplication,
    },
};

/// Number of the newest messages that a webhook did not take among which the uplink is looked for.
const LETTERS: u32 = 20;

/// The webhooks that get such messages, each with what became of this one.
#[derive(Default)]
pub(super) struct Deliveries {
    pub(super) all: Vec<Delivery>,
    /// The reason why nothing is known.
    pub(super) problem: Option<Problem>,
}

/// The outcome of an uplink at a webhook.
pub(super) struct Delivery {
    pub(super) webhook_id: WebhookId,
    /// The failure in a word or two; empty if none is known.
    pub(super) failure: &'static str,
    /// When it was given up, if it was.
    pub(super) failed_at: Option<Time>,
    pub(super) text: String,
}

impl Deliveries {
    /// Looks for an uplink among what webhooks did not take. There are none for viewers who may not see webhooks.
    pub(super) async fn of(request: &InApplication, record: &Record) -> Self {
        if record.kind != "up" || !record.corrects.is_empty() {
            return Self::default();
        }
        match find(request, record).await {
            Ok(all) => Self { all, problem: None },
            Err(error) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => Self::default(),
            Err(error) => {
                log(&error);
                Self { all: Vec::new(), problem: Some(Problem::of(&error)) }
            }
        }
    }
}

async fn find(request: &InApplication, record: &Record) -> Result<Vec<Delivery>> {
    let Some(client) = request.console.webhooks(&request.access).await? else { return Ok(Vec::new()) };
    let takes_it = |webhook: &Webhook| webhook.events.is_empty() || webhook.events.contains(&record.kind);
    let webhooks = client.list().await?.into_iter().filter(takes_it);
    try_join_all(webhooks.map(|webhook| delivery(&client, webhook, record))).await
}

async fn delivery(client: &WebhookClient, webhook: Webhook, record: &Record) -> Result<Delivery> {
    let mut found = client.dead_letters(&webhook.id, Part { limit: LETTERS, offset: 0 }).await?;
    // The newest are at the end.
    if let Some(offset) = u32::try_from(found.total).unwrap_or(u32::MAX).checked_sub(LETTERS).filter(|rest| *rest > 0) {
        found = client.dead_letters(&webhook.id, Part { limit: LETTERS, offset }).await?;
    }
    let total = found.total;
    let letter = found.dead_letters.into_iter().rev().find(|letter| is_of(letter, record));
    let delivery = |failure, failed_at, text| Delivery { webhook_id: webhook.id.clone(), failure, failed_at, text };
    Ok(match (letter, &webhook.stopped) {
        (Some(DeadLetter { attempts, reason, failed_at, .. }), _) => {
            let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
            let text = format!("after {attempts}: {}", short(&reason));
            delivery("not taken", Some(Time(failed_at.as_nanos())), text)
        }
        (None, Some(reason)) => delivery("stopped", None, short(reason)),
        (None, None) => delivery("", None, unfailed(webhook.waiting, total)),
    })
}

/// Describes a message that is not among the failures that were looked at.
fn unfailed(waiting: usize, failures: usize) -> String {
    let wait = match waiting {
        0 => String::new(),
        1 => " One message waits for it, which may be this one.".to_owned(),
        _ => format!(" {waiting} messages wait for it, and this may be one of them."),
    };
    let rest = match failures > LETTERS as usize {
        true => format!(" Only the newest {LETTERS} of {failures} failures were looked at."),
        false => String::new(),
    };
    format!("No failure of this message is kept.{wait}{rest}")
}

/// Returns true if a message that was not taken is this uplink.
fn is_of(letter: &DeadLetter, record: &Record) -> bool {
    if letter.event != record.kind || letter.dev_id != record.dev_id {
        return false;
    }
    let read = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    let (body, metadata) = (read(letter.body.get()), read(&record.metadata));
    // A simulated uplink has no metadata but its time.
    let time = match &metadata["time"] {
        Value::Null => Timestamp::from_nanos(record.time).to_rfc3339().into(),
        time => time.clone(),
    };
    body["counter"].as_u64().unwrap_or_default() == u64::from(record.counter)
        && body["payload_raw"].as_str().unwrap_or_default() == STANDARD.encode(&record.payload)
        && body["metadata"]["time"] == time
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn nothing_is_said_to_be_taken_that_may_not_be() {
        assert_eq!(unfailed(0, 20), "No failure of this message is kept.");
        let text = unfailed(2, 21);
        assert!(text.contains("2 messages wait") && text.contains("newest 20 of 21 failures"), "{text}");
    }

    #[test]
    fn an_uplink_is_found_by_what_only_it_has() {
        let time = "2026-11-22T16:45:55Z";
        let record = Record {
            kind: "up".into(),
            dev_id: "dev-1".into(),
            counter: 7,
            payload: vec![1, 2],
            metadata: serde_json::json!({ "time": time }).to_string(),
            ..Record::default()
        };
        let letter = |counter: u32, payload: &str, time: &str| DeadLetter {
            id: "1".into(),
            dev_id: "dev-1".into(),
            event: "up".into(),
            time: Timestamp::from_millis(0),
            failed_at: Timestamp::from_millis(0),
            attempts: 1,
            reason: String::new(),
            body: to_raw_value(&serde_json::json!({
                "counter": counter, "payload_raw": payload, "metadata": { "time": time },
            }))
            .unwrap(),
        };
        assert!(is_of(&letter(7, "AQI=", time), &record));
        assert!(!is_of(&letter(8, "AQI=", time), &record));
        assert!(!is_of(&letter(7, "AQM=", time), &record));
        assert!(!is_of(&letter(7, "AQI=", "2026-11-22T16:45:56Z"), &record));
        assert!(!is_of(&letter(7, "AQI=", time), &Record { dev_id: "dev-2".into(), ..record }));
    }
}
