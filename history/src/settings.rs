//! The settings of history.

pub(crate) mod bounds;
pub(crate) mod bucket;

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::AppId;

use self::bucket::BucketSettings;

types::settings! {
    /// Messages in history, and their retention.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// Where history is. Handlers that share a directory see what the others have moved to Parquet files. By
        /// default, `history` in the data directory. `airlock bridge` records in the directory of the bridge, or below
        /// this one.
        pub dir: Option<PathBuf>,
        /// Maximum size of the history of all applications on disk, in bytes. If there is more, the oldest is deleted;
        /// zero switches history off.
        pub bytes_max: u64 = 1_000_000_000,
        /// Maximum size of the history of one application on disk, in bytes. Defaults to a quarter of `bytes_max`.
        pub application_bytes_max: Option<u64>,
        /// Retention of messages, in days.
        pub days_max: u32 = 7,
        /// Time that a live message waits to be on disk before it goes on, in milliseconds.
        pub wait_ms_max: u64 = 1000,
        /// Maximum size of messages in memory that wait to be written, in bytes, at most 256 MiB. If there are more,
        /// further ones are not kept.
        pub queue_bytes_max: usize = 32 << 20,
        /// Size of the file of new messages, in bytes, at which they move to Parquet files: up to four times this if
        /// they are of 512 applications or more, but at most an eighth of each limit that is set.
        pub segment_bytes_max: u64 = 16 << 20,
        /// Time that new messages stay out of Parquet files, in minutes.
        pub seal_after_minutes: u32 = 60,
        /// Number of queries that read at the same time. Others wait, and one application reads with one at a time.
        pub scans_max: usize = 2,
        /// Where handlers that share no directory see each other's Parquet files.
        pub bucket: BucketSettings,
        /// Other bounds for single applications, by application id.
        #[schemars(with = "BTreeMap<String, ApplicationSettings>")]
        pub applications: BTreeMap<AppId, ApplicationSettings>,
    }
}

/// Stored messages of one application, where its settings differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApplicationSettings {
    /// Maximum size of its history on disk, in bytes; zero keeps nothing. Files are deleted whole, and each has what is
    /// of the application in up to 1 MiB of new messages: with less than 8 MiB, much less may be kept than fits.
    pub bytes_max: Option<u64>,
    /// Retention of its messages, in days.
    pub days_max: Option<u32>,
}
