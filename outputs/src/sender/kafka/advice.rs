//! Errors of Kafka connections, with advice for the operator.

use rskafka::client::error::{Error, ProtocolError};

use crate::sender::link::LinkError;

const LOGIN: &str = "check `username`, `password_file` and `mechanism`";
const CERTIFICATE: &str =
    "check `ca_certificate`, and whether the names of the brokers are those of their certificates";
const ENDED: &str = "check `brokers` and `tls`: the port may speak TLS, or want another listener";
pub(super) const TOPIC: &str = "create the topic, or let the user describe it";
const PERMISSION: &str = "let the user write to the topic";

/// Returns advice for the operator; none if trying again is all there is to do.
pub(super) fn advice(error: &Error) -> Option<&'static str> {
    match refusal(error) {
        Some(ProtocolError::UnknownTopicOrPartition) => Some(TOPIC),
        Some(ProtocolError::TopicAuthorizationFailed | ProtocolError::ClusterAuthorizationFailed) => Some(PERMISSION),
        Some(_) => None,
        // The causes of lost connections are only told in words.
        None => match error.to_string().to_lowercase() {
            text if text.contains("sasl") => Some(LOGIN),
            text if text.contains("certificate") => Some(CERTIFICATE),
            text if text.contains("corrupt message") || text.contains("eof") => Some(ENDED),
            _ => None,
        },
    }
}

/// Returns the error of a lost connection.
pub(super) fn lost(error: &Error) -> LinkError {
    LinkError { reason: error.to_string(), advice: advice(error) }
}

/// Returns true if a batch has more bytes than the broker takes.
pub(super) fn is_too_large(error: &Error) -> bool {
    matches!(refusal(error), Some(ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge))
}

fn refusal(error: &Error) -> Option<ProtocolError> {
    match error {
        Error::ServerError { protocol_error, .. } => Some(*protocol_error),
        _ => None,
    }
}
