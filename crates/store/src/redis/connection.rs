//! Connects as the settings say.

use std::time::Duration;

use link::redis::{Connection, Node};
use redis::{ConnectionInfo, IntoConnectionInfo, RedisError};

use super::settings::{RedisSettings, without_password};
use crate::Error;

/// Connects; fails when the server does not answer.
pub(super) async fn open(settings: &RedisSettings) -> Result<Connection, Error> {
    let failed = |error: RedisError| Error::unavailable("connect to Redis", error);
    let (addresses, sentinels) = (parse(&settings.urls)?, parse(&settings.sentinels)?);
    let connect_timeout = Duration::from_millis(settings.connect_timeout_ms);
    let node = Node::with_logins(addresses, sentinels, settings.cluster, connect_timeout).map_err(failed)?;
    Connection::open(&node, Duration::from_millis(settings.response_timeout_ms)).await.map_err(failed)
}

fn parse(urls: &[String]) -> Result<Vec<ConnectionInfo>, Error> {
    let rule = "an address in `store.redis.urls` looks like redis://host:6379";
    let invalid = |url: &str| Error::invalid("Redis address", &without_password(url), rule);
    urls.iter().map(|url| url.as_str().into_connection_info().map_err(|_| invalid(url))).collect()
}
