//! The settings of the bucket that handlers share.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

types::settings! {
    /// A bucket of S3, or of what is compatible with it, in which handlers see each other's Parquet files.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct BucketSettings {
        /// The bucket and the folder in it: `s3://bucket/folder`. If it is empty, there is none.
        pub url: String,
        /// URL of the server, if it is not that of AWS: `https://host:9000`. With `http`, nothing is encrypted.
        pub endpoint: Option<String>,
        /// The region. By default, that of the environment variable `AWS_REGION`, or `us-east-1`.
        pub region: Option<String>,
        /// Id of the access key. If it is unset, the environment says who this is, as for other programs that use AWS:
        /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the role of the container or machine.
        pub access_key_id: Option<String>,
        /// File with the secret access key. It is read again when it changes.
        pub secret_access_key_file: Option<PathBuf>,
        /// Maximum size of copies of other handlers' files on this disk, in bytes. A larger file is read
        /// only by queries that need less than half of it, and at most 8 MiB at once.
        pub cache_bytes_max: u64 = 250_000_000,
    }
}
