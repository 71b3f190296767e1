//! Settings of what is published, and where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

types::settings! {
    /// Published messages, and their destinations.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct OutputSettings {
        /// Without effect: messages reach the broker without a queue. Accepted, with a warning, so that older files
        /// work.
        #[serde(skip_serializing)]
        #[schemars(skip)]
        pub queue_messages_max: Option<usize>,
        /// True to publish each field of an uplink on its own topic as well.
        pub field_topics: bool = true,
        /// True if the metadata of an uplink says which version of the payload functions ran, as `functions_version`.
        pub functions_version: bool,
        /// Queues and attempts of webhooks, AMQP, Redis and Kafka.
        pub delivery: outputs::Settings,
        /// AMQP brokers, each in a table `[[output.amqp]]`.
        pub amqp: Vec<outputs::AmqpSettings>,
        /// Redis servers, each in a table `[[output.redis]]`.
        pub redis: Vec<outputs::RedisSettings>,
        /// Kafka clusters, each in a table `[[output.kafka]]`. Only in builds with the feature `kafka`.
        pub kafka: Vec<outputs::KafkaSettings>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_without_effect_is_accepted_and_not_printed() {
        let settings: OutputSettings = serde_json::from_str(r#"{"queue_messages_max": 7}"#).unwrap();
        assert_eq!(settings.queue_messages_max, Some(7));
        let printed = serde_json::to_value(&settings).unwrap();
        assert_eq!(printed["field_topics"], true);
        assert_eq!(printed.get("queue_messages_max"), None);
    }
}
