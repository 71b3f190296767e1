//! Advice for the operator when Redis refuses.

use link::redis::is_login_refused;
use redis::RedisError;

use crate::sender::link::LinkError;

/// Returns advice for the operator; none if trying again is all there is to do.
pub(super) fn advice(error: &RedisError) -> Option<&'static str> {
    match error.code() {
        _ if is_login_refused(error) => Some("check `username` and `password_file`"),
        Some("NOPERM") => Some("let the user run XADD, PING and INFO on the keys that `stream` names"),
        Some("WRONGTYPE") => Some("the key is no stream: name another one with `stream`"),
        Some("OOM") => Some("Redis has no memory left: raise its `maxmemory`, or set a smaller `length_max`"),
        _ => None,
    }
}

/// Returns the error of a lost connection.
pub(super) fn lost(error: &RedisError) -> LinkError {
    LinkError { reason: error.to_string(), advice: advice(error) }
}
