//! The settings of the codec service.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

types::settings! {
    /// The codec service: `POST /codecs/{name}`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// The directory of the codecs, each in a file `NAME.js`. If unset, the service is off.
        pub dir: Option<PathBuf>,
        /// The address of the service, plain HTTP.
        pub listen: String = "127.0.0.1:8090".to_owned(),
        /// File with the key that every request must then bring, as `Authorization: Bearer KEY`. Without it, everybody
        /// who reaches the address can run codecs, and nobody can change them.
        pub key_file: Option<PathBuf>,
        /// The names of the service, where only this machine reaches it and there is no key: it answers for no other
        /// host, besides `localhost` and IP addresses. A proxy may pass on its own name.
        pub hosts: Vec<String>,
        /// Interval of reading the directory again, in milliseconds.
        pub refresh_interval_ms: u64 = 1000,
        /// Maximum number of codecs.
        pub codecs_max: usize = 10_000,
        /// Maximum number of messages in one request.
        pub batch_max: usize = 1000,
    }
}
