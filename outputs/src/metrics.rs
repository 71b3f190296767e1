//! The metrics of queued outputs. No label names an application or a destination.

use metrics::{counter, describe_counter};

use crate::destination::Destination;

const MESSAGES: &str = "airlock_output_messages_total";

pub(crate) fn describe() {
    describe_counter!(
        MESSAGES,
        "Messages of queued outputs, by kind of output and result: delivered, retried, dead (given up) or dropped \
         (the queue was full)"
    );
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Delivered,
    Retried,
    Dead,
    Dropped,
}

pub(crate) fn count(destination: &Destination, fate: Fate, messages: usize) {
    let result = match fate {
        Fate::Delivered => "delivered",
        Fate::Retried => "retried",
        Fate::Dead => "dead",
        Fate::Dropped => "dropped",
    };
    let messages = u64::try_from(messages).unwrap_or(u64::MAX);
    counter!(MESSAGES, "output" => destination.kind.clone(), "result" => result).increment(messages);
}

/// Counts a message that is too large for every destination.
pub(crate) fn too_large() {
    counter!(MESSAGES, "output" => "all", "result" => "dropped").increment(1);
}
