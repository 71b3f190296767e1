//! Errors of connections to a broker, with advice for the operator.

use amqprs::error::Error;

use super::confirms::End;
use crate::sender::link::LinkError;

const LOGIN: &str = "check `username` and `password_file`";
/// After a wrong password, brokers end the connection without a reason. Those that are stopping do so, too.
const ENDED: &str = "if the broker is running, check `username` and `password_file`";
const ENDS: [&str; 3] = ["peer shutdown", "interrupted", "reset by peer"];
const VIRTUAL_HOST: &str =
    "check the virtual host at the end of `url`, and whether the user may use it (`rabbitmqctl set_permissions`)";
const CERTIFICATE: &str = "check `ca_certificate`, and whether the host in `url` is that of the broker's certificate";
const PERMISSION: &str = "let the user write to the exchange, and configure it unless `declare_exchange` is false \
                          (`rabbitmqctl set_permissions`)";
const MISSING: &str = "declare the exchange, or set `declare_exchange`";
const OTHER: &str = "the exchange exists with another type or other properties: set `declare_exchange = false` to use \
                     it as it is, or name another `exchange`";

/// The reply codes of the protocol that say what is wrong.
mod code {
    pub(super) const ACCESS_REFUSED: u16 = 403;
    pub(super) const NOT_FOUND: u16 = 404;
    pub(super) const PRECONDITION_FAILED: u16 = 406;
}

/// Returns the error of a connection that was not opened.
pub(super) fn not_connected(error: &Error) -> LinkError {
    let reason = error.to_string();
    let advice = match error {
        Error::NetworkError(text) if ENDS.iter().any(|end| text.contains(end)) => Some(ENDED),
        Error::NetworkError(text) if text.contains("certificate") => Some(CERTIFICATE),
        Error::ConnectionOpenError(text) if text.contains("ACCESS_REFUSED") => Some(LOGIN),
        Error::ConnectionOpenError(text) if text.contains("NOT_ALLOWED") => Some(VIRTUAL_HOST),
        _ => None,
    };
    LinkError { reason, advice }
}

/// Returns the error of a connection that the broker ended.
pub(super) fn refused(end: &End) -> LinkError {
    let advice = match end.code {
        code::ACCESS_REFUSED => Some(PERMISSION),
        code::NOT_FOUND => Some(MISSING),
        // The size of a message is one, too, but about that message only.
        code::PRECONDITION_FAILED if end.text.contains("inequivalent arg") => Some(OTHER),
        _ => None,
    };
    LinkError { reason: end.text.clone(), advice }
}
