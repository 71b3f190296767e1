//! The metrics of queued outputs. Labels name the outputs of the operator, but no application and no webhook.

use metrics::{Gauge, counter, describe_counter, describe_gauge, gauge};

use crate::destination::{Destination, WEBHOOK};

const MESSAGES: &str = "airlock_output_messages_total";
const QUEUED: &str = "airlock_output_queued_messages";
const CONNECTED: &str = "airlock_output_connected";

pub(crate) fn describe() {
    describe_counter!(
        MESSAGES,
        "Messages of queued outputs, by kind of output, its name unless it is a webhook, and result: delivered, \
         retried, dead (given up) or dropped (the queue was full)"
    );
    describe_gauge!(
        QUEUED,
        "Messages that wait for a receiver, as of the last attempt to deliver, by kind of output and its name unless it \
         is a webhook"
    );
    describe_gauge!(CONNECTED, "Whether an output of the operator is connected, by kind and name");
}

/// Fates of a message, as a label of metrics.
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
    let labels = (destination.kind.clone(), name(destination));
    counter!(MESSAGES, "output" => labels.0, "name" => labels.1, "result" => result).increment(messages);
}

/// Owners of applications choose the names of webhooks, without a bound.
fn name(destination: &Destination) -> String {
    if destination.kind == WEBHOOK { String::new() } else { destination.name.clone() }
}

/// The length of a destination's queue, which counts until it is dropped.
pub(crate) struct QueueLength {
    gauge: Gauge,
    messages: usize,
}

impl QueueLength {
    pub(crate) fn of(destination: &Destination) -> Self {
        let gauge = gauge!(QUEUED, "output" => destination.kind.clone(), "name" => name(destination));
        Self { gauge, messages: 0 }
    }

    pub(crate) fn set(&mut self, messages: usize) {
        // Other destinations may share the gauge.
        self.gauge.increment(messages as f64 - self.messages as f64);
        self.messages = messages;
    }
}

impl Drop for QueueLength {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Counts a message that is too large for every destination.
pub(crate) fn too_large() {
    counter!(MESSAGES, "output" => "all", "name" => "", "result" => "dropped").increment(1);
}

/// Notes whether an output of the operator is connected.
pub(crate) fn connected(kind: &'static str, name: &str, is_connected: bool) {
    gauge!(CONNECTED, "output" => kind, "name" => name.to_owned()).set(f64::from(u8::from(is_connected)));
}
