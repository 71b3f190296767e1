//! Settings for the sizes of the budgets.

use std::thread;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limits, Resource};

/// Numbers of large lists in memory at once: maximum of all owners, maximum of one owner, and minimum of each owner.
const LISTS: (u64, u64, u64) = (16, 4, 1);

types::settings! {
    /// Budgets of what can run out. An owner is the user to whom an application or gateway belongs or, for calls
    /// without credentials, an address. The more all owners use, the less each of them may have.
    // The defaults fit 2 GiB of memory and 65,536 file descriptors, as in the packaged service.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct BudgetSettings {
        /// Maximum size of the records of all owners in the store, in bytes.
        pub stored_bytes_max: u64 = 16 << 30,
        /// Maximum size of the records of one owner in the store, in bytes.
        pub stored_bytes_per_owner_max: u64 = 1 << 30,
        /// Bytes of the disk of an embedded store that stay free for the service itself, but at most a twentieth of the
        /// disk: with less, owners cannot store more.
        pub disk_reserve_bytes: u64 = 512 << 20,
        /// Maximum memory of the sessions of MQTT clients, with their subscriptions and the messages that wait, in
        /// bytes.
        pub queued_bytes_max: u64 = 512 << 20,
        /// Maximum memory of one owner's sessions, with their subscriptions and the messages that wait, in bytes.
        pub queued_bytes_per_owner_max: u64 = 128 << 20,
        /// Maximum memory of bodies of requests that have not been read completely, in bytes.
        pub body_bytes_max: u64 = 128 << 20,
        /// Maximum memory of one owner's bodies of requests that have not been read completely, in bytes.
        pub body_bytes_per_owner_max: u64 = 32 << 20,
        /// Maximum memory of responses that have not been sent completely, in bytes.
        pub response_bytes_max: u64 = 128 << 20,
        /// Maximum memory of one owner's responses that have not been sent completely, in bytes.
        pub response_bytes_per_owner_max: u64 = 32 << 20,
        /// Maximum number of messages that are on their way to webhooks and other receivers; more wait.
        pub deliveries_max: u64 = 1024,
        /// Maximum number of one owner's messages that are on their way to webhooks and other receivers; more wait.
        pub deliveries_per_owner_max: u64 = 256,
        /// Maximum number of host names that are being resolved; more wait.
        pub look_ups_max: u64 = 64,
        /// Maximum number of one owner's host names that are being resolved; more wait.
        pub look_ups_per_owner_max: u64 = 8,
    }
}

impl BudgetSettings {
    /// The limits of a budget that is set here.
    pub(super) fn limits(&self, resource: Resource) -> Limits {
        let (total, owner_max, owner_min) = match resource {
            Resource::StoredBytes => (self.stored_bytes_max, self.stored_bytes_per_owner_max, 1 << 20),
            Resource::QueuedBytes => (self.queued_bytes_max, self.queued_bytes_per_owner_max, 256 << 10),
            Resource::BodyBytes => (self.body_bytes_max, self.body_bytes_per_owner_max, 64 << 10),
            Resource::ResponseBytes => (self.response_bytes_max, self.response_bytes_per_owner_max, 64 << 10),
            Resource::Deliveries => (self.deliveries_max, self.deliveries_per_owner_max, 1),
            Resource::LookUps => (self.look_ups_max, self.look_ups_per_owner_max, 1),
            Resource::Lists => LISTS,
            Resource::LongWork => ((processors() / 2).max(1), 1, 1),
            // Their limits are next to what takes them.
            Resource::HttpConnections
            | Resource::MqttConnections
            | Resource::Downlinks
            | Resource::PasswordChecks
            | Resource::Questions
            | Resource::LiveViews => (u64::MAX, u64::MAX, 1),
        };
        Limits { total, owner_max, owner_min }
    }
}

fn processors() -> u64 {
    thread::available_parallelism().map_or(1, |count| count.get() as u64)
}
