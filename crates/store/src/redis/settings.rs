//! Settings of the Redis store.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::Error;

const PREFIX_BYTES_MAX: usize = 32;

/// Connection to Redis.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedisSettings {
    /// Addresses such as `redis://user:password@host:6379`: the one of a single server, or some nodes of a cluster. With
    /// sentinels, the host is the name by which they know the primary, as in `redis://user:password@mymaster`.
    #[serde(serialize_with = "without_passwords")]
    pub urls: Vec<String>,
    /// True if it is a Redis Cluster.
    pub cluster: bool,
    /// Addresses of the sentinels that watch over Redis, such as `redis://host:26379`; none if there are none.
    #[serde(serialize_with = "without_passwords")]
    pub sentinels: Vec<String>,
    /// Number of replicas that must have a change before it counts as made (`WAIT`). With 0, a change that no replica
    /// has yet is lost when the primary is.
    pub confirming_replicas: u8,
    /// The prefix of every key, so that several installations can share one Redis.
    pub prefix: String,
    /// Time that connecting may take, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Time that a response may take, in milliseconds.
    pub response_timeout_ms: u64,
    /// Time to wait at the start for a Redis that is still loading its data, in milliseconds.
    pub loading_timeout_ms: u64,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            urls: vec!["redis://127.0.0.1:6379".to_owned()],
            cluster: false,
            sentinels: Vec::new(),
            confirming_replicas: 0,
            prefix: "airlock:".to_owned(),
            connect_timeout_ms: 2000,
            response_timeout_ms: 5000,
            loading_timeout_ms: 600_000,
        }
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("urls", &printable(&self.urls))
            .field("cluster", &self.cluster)
            .field("sentinels", &printable(&self.sentinels))
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl RedisSettings {
    /// Refuses settings that cannot work, before connecting.
    pub(super) fn check(&self) -> Result<(), Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if self.prefix.len() > PREFIX_BYTES_MAX || !self.prefix.bytes().all(allowed) {
            let rule = "up to 32 letters, digits and -_.: are allowed";
            return Err(Error::invalid("prefix of Redis keys", &self.prefix, rule));
        }
        let count = self.urls.len();
        if count == 0 || (count > 1 && !self.cluster) {
            let rule = "`store.redis.urls` has one, or several of a cluster";
            return Err(Error::invalid(
                "list of Redis addresses",
                &format!("[{}]", printable(&self.urls).join(", ")),
                rule,
            ));
        }
        if self.cluster && !self.sentinels.is_empty() {
            let rule = "`store.redis.sentinels` is empty for a cluster, because its nodes replace each other";
            return Err(Error::invalid(
                "list of Redis sentinels",
                &format!("[{}]", printable(&self.sentinels).join(", ")),
                rule,
            ));
        }
        Ok(())
    }
}

fn printable(urls: &[String]) -> Vec<String> {
    urls.iter().map(|url| without_password(url)).collect()
}

fn without_passwords<S: Serializer>(urls: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(printable(urls))
}

/// The address with everything before its last `@` replaced by stars.
pub(super) fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => format!("{}***{}", &url[..scheme + 3], &url[at..]),
        _ => url.to_owned(),
    }
}
