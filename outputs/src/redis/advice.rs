//! What to do when Redis refuses.

use redis::{ErrorKind, RedisError};

use crate::link::LinkError;

const LOGIN: &str = "check `username` and `password_file`";

/// What to do; none where trying again is all there is to do.
pub(super) fn advice(error: &RedisError) -> Option<&'static str> {
    match error.code() {
        _ if error.kind() == ErrorKind::AuthenticationFailed => Some(LOGIN),
        Some("NOAUTH" | "WRONGPASS") => Some(LOGIN),
        Some("NOPERM") => Some("let the user run XADD, PING and INFO on the keys that `stream` names"),
        Some("WRONGTYPE") => Some("the key is no stream: name another one with `stream`"),
        Some("OOM") => Some("Redis has no memory left: raise its `maxmemory`, or set a smaller `length_max`"),
        _ => None,
    }
}

/// Why there is no connection.
pub(super) fn lost(error: &RedisError) -> LinkError {
    LinkError { reason: error.to_string(), advice: advice(error) }
}
