//! The metrics of queued outputs. Labels name the outputs of the operator, but no application and no webhook.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::destination::{Destination, WEBHOOK};

const MESSAGES: &str = "airlock_output_messages_total";
const CONNECTED: &str = "airlock_output_connected";

pub(crate) fn describe() {
    describe_counter!(
        MESSAGES,
        "Messages of queued outputs, by kind of output, its name unless it is a webhook, and result: delivered, \
         retried, dead (given up) or dropped (the queue was full)"
    );
    describe_gauge!(CONNECTED, "Whether an output of the operator is connected, by kind and name");
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
    // Owners of applications choose the names of webhooks, without a bound.
    let name = if destination.kind == WEBHOOK { String::new() } else { destination.name.clone() };
    counter!(MESSAGES, "output" => destination.kind.clone(), "name" => name, "result" => result).increment(messages);
}

/// Counts a message that is too large for every destination.
pub(crate) fn too_large() {
    counter!(MESSAGES, "output" => "all", "name" => "", "result" => "dropped").increment(1);
}

/// Notes whether an output of the operator is connected.
pub(crate) fn connected(kind: &'static str, name: &str, is_connected: bool) {
    gauge!(CONNECTED, "output" => kind, "name" => name.to_owned()).set(f64::from(u8::from(is_connected)));
}
