//! Adds messages that were sent again to a report.

use api::rest::handler::{RefusedMessages, SendReport};

use super::prepare::{Fate, Prepared};
use crate::output::Receipt;

/// A message that is not sent at all.
pub(super) fn add_skipped(report: &mut SendReport, Prepared { id, fate }: &Prepared) {
    add(report, id.to_string());
    match fate {
        Fate::DeviceGone => report.device_gone += 1,
        Fate::NeverPublished => report.never_published += 1,
        Fate::Sent(_) | Fate::Unreadable => report.unreadable += 1,
    }
}

/// A message that was sent, or refused by somebody.
pub(super) fn add_sent(report: &mut SendReport, Prepared { id, .. }: &Prepared, receipt: Receipt) {
    add(report, id.to_string());
    match (receipt.refused.is_empty(), receipt.taken) {
        (true, 0) => report.unwanted += 1,
        (true, _) => report.sent += 1,
        (false, _) => report.refused += 1,
    }
    for refused in receipt.refused {
        let new = RefusedMessages { count: 1, reason: refused.reason, id: id.to_string() };
        RefusedMessages::add_to(&mut report.receivers, refused.receiver, new);
    }
}

/// A message that would be sent.
pub(super) fn add_counted(report: &mut SendReport, Prepared { id, .. }: &Prepared, has_receiver: bool) {
    add(report, id.to_string());
    let count = if has_receiver { &mut report.sent } else { &mut report.unwanted };
    *count += 1;
}

fn add(report: &mut SendReport, id: String) {
    report.examined += 1;
    report.next = id;
}
