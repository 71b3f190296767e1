//! The settings of queued outputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

types::settings! {
    /// Webhooks, and the queues of all outputs except MQTT.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// Maximum number of messages that wait for one webhook, or for one output of one application. If there are
        /// more, the oldest are dropped.
        pub queue_messages_max: usize = 1000,
        /// Maximum size of the messages that wait for one of these, in bytes, and again of those that were given up. If
        /// there are more, the oldest are dropped.
        pub queue_bytes_max: usize = 16 << 20,
        /// Maximum size of the same for all webhooks and outputs of one application, in bytes. Each of them gets the
        /// same part of it, but at least 512 KiB.
        pub application_bytes_max: usize = 64 << 20,
        /// Maximum number of messages of each that were given up and are kept to be sent again. If there are more, the
        /// oldest are dropped.
        pub dead_letters_max: usize = 1000,
        /// Maximum number of messages of each that were delivered or given up and are remembered, with the time and the
        /// status of the last attempt, and of uplinks of each application that an external broker has confirmed. They
        /// are in memory; 0 remembers none.
        pub recent_deliveries_max: usize = 128,
        /// Maximum memory for all of these, in bytes, and again for those of an external broker. If more is needed,
        /// owners with most webhooks and outputs have some of theirs forgotten.
        pub recent_deliveries_bytes_max: usize = 16 << 20,
        /// Attempts to send a message before it is given up. Those that do not reach the receiver do not count.
        pub attempts_max: u32 = 10,
        /// Time that a receiver may take to answer, in milliseconds.
        pub timeout_ms: u64 = 10_000,
        /// Lets webhooks have addresses of this machine and of private networks. Owners of applications could then
        /// reach services there that trust this server.
        pub allow_private_addresses: bool,
    }
}
