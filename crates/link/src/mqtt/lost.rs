//! Reasons why a connection ended, or was not made.

use std::{fmt::Display, io};

use super::protocol::Protocol;

/// Reason why a connection ended, or was not made.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Lost {
    /// The reason, for people.
    pub reason: String,
    /// The name of the code with which the broker refused the connection, such as `NotAuthorized`.
    pub refusal: Option<String>,
    /// True if the broker may only know another version of the protocol.
    pub(super) is_protocol_unknown: bool,
    /// True if the broker said so.
    pub(super) is_version_refused: bool,
    source: Option<io::Error>,
}

impl Lost {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        let (refusal, source) = (None, None);
        Self { reason: reason.into(), refusal, is_protocol_unknown: false, is_version_refused: false, source }
    }

    /// The broker refused the connection with this code.
    pub(super) fn refused(code: String, is_version_refused: bool) -> Self {
        let advice = match code.as_str() {
            "BadUserNamePassword" | "NotAuthorized" => ": check the user and the password",
            _ => "",
        };
        let reason = format!("the broker refused the connection ({code}){advice}");
        let refusal = Some(code);
        Self { refusal, is_protocol_unknown: is_version_refused, is_version_refused, ..Self::because(reason) }
    }

    /// The broker sent something that cannot be read.
    pub(super) fn unreadable(error: impl Display, protocol: Protocol) -> Self {
        let reason = format!("the broker sent a packet that cannot be read: {error}");
        Self { is_protocol_unknown: protocol == Protocol::V5, ..Self::because(reason) }
    }

    /// Reading or writing failed. Brokers that do not know a version may just close the connection.
    pub(super) fn io(error: io::Error, protocol: Protocol) -> Self {
        let reason = error.to_string();
        let is_closed_by_peer = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
        );
        let is_protocol_unknown = is_closed_by_peer && protocol == Protocol::V5;
        Self { is_protocol_unknown, source: Some(error), ..Self::because(reason) }
    }

    pub(super) fn closed(protocol: Protocol) -> Self {
        Self { is_protocol_unknown: protocol == Protocol::V5, ..Self::because("the broker closed the connection") }
    }
}
