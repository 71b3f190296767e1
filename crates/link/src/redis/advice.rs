//! Advice for the case that Redis refuses a command.

use redis::{ErrorKind, RedisError};

/// Returns advice for the user; `None` if all one can do is try again.
pub(super) fn advice(error: &RedisError) -> Option<&'static str> {
    match error.code() {
        _ if is_login_refused(error) => Some("check `username` and `password_file`"),
        Some("NOPERM") => Some(
            "let this user run XADD where events go; where they come from, XGROUP, XREADGROUP, XREAD, XREVRANGE, XACK, XCLAIM, XAUTOCLAIM and XINFO; and INFO",
        ),
        Some("WRONGTYPE") => Some("the key is no stream: check `key_prefix`, which is ChirpStack's"),
        _ => None,
    }
}

/// Returns true if Redis does not know the user, or wants another password.
pub fn is_login_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
}

#[cfg(test)]
mod tests {
    use testing::RedisProcess;

    use super::{
        super::{node::Node, settings::StreamSettings, stream::Stream},
        *,
    };

    async fn failure(redis: &RedisProcess, key: &str) -> RedisError {
        let settings = StreamSettings { url: redis.url(), ..StreamSettings::default() };
        let node = Node::of_stream(&settings, "test").unwrap();
        match Stream::open(&node, &settings, key, "me").await {
            Ok(mut stream) => stream.create_group().await.unwrap_err(),
            Err(error) => error,
        }
    }

    #[tokio::test]
    async fn a_real_refusal_says_what_to_do() {
        let Some(redis) = RedisProcess::start() else { return };
        redis.call(&[b"SET", b"text", b"x"]);
        assert!(advice(&failure(&redis, "text").await).unwrap().contains("`key_prefix`"));
        redis.call(&[b"ACL", b"SETUSER", b"default", b"-xgroup"]);
        assert!(advice(&failure(&redis, "events").await).unwrap().contains("XGROUP"));
        redis.call(&[b"CONFIG", b"SET", b"requirepass", b"hush"]);
        assert!(advice(&failure(&redis, "events").await).unwrap().contains("`password_file`"));
    }
}
