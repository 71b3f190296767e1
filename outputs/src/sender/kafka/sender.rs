//! Sends a record to a topic, and waits until the cluster has confirmed it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rskafka::{chrono::DateTime, record::Record};
use server::ledger::Owner;
use tokio::time::timeout;
use types::{AppId, Random};

use super::{
    advice::{TOPIC, advice},
    connection::{KafkaCluster, KafkaConnection},
    producers::Failure,
    settings::KafkaSettings,
};
use crate::{
    Error, Settings,
    message::Outgoing,
    sender::{
        SendError, SendReceipt, Sender,
        link::{Link, OutputName},
    },
};

const APPLICATION: &str = "{app_id}";
/// Maximum length of the name of a topic in Kafka, in bytes.
const TOPIC_BYTES_MAX: usize = 249;
const NAME: &str = "must have 1 to 200 letters, digits, dots, dashes or underscores, and may have {app_id}";

/// Sends to the topics of one cluster.
pub(crate) struct KafkaSender {
    link: Link<KafkaConnection>,
    /// Name of the output in the log and the metrics.
    name: OutputName,
    topic: String,
    timeout: Duration,
    /// True if the last record was refused.
    is_refused: AtomicBool,
}

impl KafkaSender {
    /// Checks the settings, and connects in the background.
    pub(crate) fn start(settings: &KafkaSettings, delivery: &Settings, random: Arc<dyn Random>) -> Result<Self, Error> {
        if !is_topic(&settings.topic) {
            return Err(Error::setting("kafka", &settings.name, "topic", NAME));
        }
        let timeout = Duration::from_millis(delivery.timeout_ms.max(1));
        let cluster = KafkaCluster::new(settings, timeout)?;
        let name = OutputName { kind: "kafka", name: settings.name.clone() };
        let link = Link::start(cluster, name.clone(), random);
        Ok(Self { link, name, topic: settings.topic.clone(), timeout, is_refused: AtomicBool::new(false) })
    }

    /// The first of several refusals is an error, because somebody may have to do something.
    fn report(&self, app_id: &AppId, reason: &str, advice: Option<&'static str>) {
        let output = &self.name;
        match advice {
            Some(advice) if !self.is_refused.swap(true, Ordering::Relaxed) => {
                tracing::error!(%output, %app_id, reason, "cannot send to a topic, so messages wait: {advice}");
            }
            _ => tracing::debug!(%output, %app_id, reason, "cannot send to a topic"),
        }
    }
}

#[async_trait]
impl Sender for KafkaSender {
    async fn ready(&self, _owner: &Owner) {
        self.link.usable(|_| true).await;
    }

    async fn send(&self, message: &Outgoing) -> Result<SendReceipt, SendError> {
        let Some(connection) = self.link.current() else {
            return Err(SendError::Unreachable("Kafka is not connected".to_owned()));
        };
        let (topic, key) = (topic(&self.topic, &message.app_id), key(message));
        let sending = connection.send(&topic, key.as_bytes(), record(message, &key));
        let (reason, advice) = match timeout(self.timeout, sending).await {
            Ok(Ok(())) => {
                self.is_refused.store(false, Ordering::Relaxed);
                return Ok(SendReceipt::default());
            }
            Ok(Err(Failure::TooLarge)) => {
                return Err(SendError::refused("the message is larger than Kafka takes"));
            }
            Ok(Err(Failure::NoTopic)) => (format!("there is no topic `{topic}`"), Some(TOPIC)),
            Ok(Err(Failure::Other(error))) => (error.to_string(), advice(&error)),
            Err(_) => {
                connection.failed();
                ("Kafka did not confirm the message in time".to_owned(), None)
            }
        };
        self.report(&message.app_id, &reason, advice);
        Err(SendError::Unreachable(reason))
    }
}

/// The topic of an application.
fn topic(template: &str, app_id: &AppId) -> String {
    template.replace(APPLICATION, app_id.as_str())
}

fn is_topic(template: &str) -> bool {
    // The longest id that an application can have.
    let topic = template.replace(APPLICATION, &"a".repeat(36));
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=TOPIC_BYTES_MAX).contains(&topic.len()) && topic.bytes().all(is_valid) && topic != "." && topic != ".."
}

/// Returns the key that decides about the partition: the device, so that its messages stay in order.
fn key(Outgoing { app_id, message, .. }: &Outgoing) -> String {
    message.dev_id.as_ref().map_or_else(|| app_id.to_string(), |dev_id| format!("{app_id}/{dev_id}"))
}

fn record(Outgoing { id, app_id, message, .. }: &Outgoing, key: &str) -> Record {
    let dev_id = message.dev_id.as_ref().map(|dev_id| ("dev_id", dev_id.as_str()));
    let headers =
        [("id", id.as_str()), ("app_id", app_id.as_str()), ("event", &message.event)].into_iter().chain(dev_id);
    Record {
        key: Some(key.as_bytes().to_vec()),
        value: Some(message.body.get().as_bytes().to_vec()),
        headers: headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect::<BTreeMap<_, _>>(),
        timestamp: DateTime::from_timestamp_millis(message.time.as_millis()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_names_that_kafka_allows() {
        for (template, expected) in [
            ("airlock", true),
            ("lora.{app_id}_v2", true),
            ("", false),
            ("..", false),
            ("lora/{app_id}", false),
            ("{dev_id}", false),
        ] {
            assert_eq!(is_topic(template), expected, "{template}");
        }
        assert!(is_topic(&"x".repeat(TOPIC_BYTES_MAX)) && !is_topic(&"x".repeat(TOPIC_BYTES_MAX + 1)));
        assert_eq!(topic("lora.{app_id}", &"my-app".parse().unwrap()), "lora.my-app");
    }
}
