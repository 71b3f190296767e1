//! The cost of each message as a row of a table.

use super::table::Table;
use crate::bench::figures::{Change, CodecBench, Loading, MessageBench, Peer};

pub(super) fn describe(loading: &Loading) -> String {
    let change = loading.change.map(|change| format!(" ({})", fuel_change(change))).unwrap_or_default();
    let interval = match loading.time.has_interval() {
        true => format!(" (95%: {} to {})", time(loading.time.median_low), time(loading.time.median_high)),
        false => String::new(),
    };
    format!(
        "{}{interval}, fuel {}{change}, {} bytes of memory between messages",
        time(loading.time.median),
        loading.fuel,
        loading.idle_bytes
    )
}

/// The measurements of a codec's messages. Columns that no message has are left out.
pub(super) fn messages(codec: &CodecBench) -> Table {
    let mut names = vec!["message", "time", "95% interval", "p50", "p99", "first", "per second", "fuel", "of limit"];
    let is_compared = codec.messages.iter().any(|message| message.change.is_some());
    let has_peer = codec.messages.iter().any(|message| message.peer.is_some());
    names.extend(is_compared.then_some(["fuel change", "time change"]).into_iter().flatten());
    names.extend(has_peer.then_some(["Node, warm", "Node, fresh"]).into_iter().flatten());
    let mut table = Table::new(&names);
    for (message, number) in codec.messages.iter().zip(1..) {
        let mut row = row(message, number);
        if is_compared {
            let change = |show: fn(Change) -> String| message.change.map_or_else(|| "new".to_owned(), show);
            row.extend([change(fuel_change), change(time_change)]);
        }
        if has_peer {
            row.extend(peer(message));
        }
        table.push(row);
    }
    table
}

fn row(message: &MessageBench, number: usize) -> Vec<String> {
    let times = &message.time;
    vec![
        message.title(number),
        time(times.median),
        match times.has_interval() {
            true => format!("{} – {}", time(times.median_low), time(times.median_high)),
            false => "too few runs".to_owned(),
        },
        time(message.single.median),
        time(message.single.p99),
        time(message.first_microseconds),
        format!("{:.0}", times.per_second()),
        message.fuel.to_string(),
        format!("{:.2}%", 100.0 * message.fuel as f64 / message.fuel_max.max(1) as f64),
    ]
}

fn fuel_change(change: Change) -> String {
    match change.fuel_percent {
        0.0 => "same fuel".to_owned(),
        percent => format!("{percent:+.2}% fuel"),
    }
}

fn time_change(change: Change) -> String {
    match change.is_time_certain {
        true => format!("{:+.0}%", change.time_percent),
        false => "none certain".to_owned(),
    }
}

/// The times of another engine, as multiples of ours.
fn peer(message: &MessageBench) -> [String; 2] {
    let own = message.time.median.max(f64::MIN_POSITIVE);
    let shown = |median: f64| format!("{} ({:.1}×)", time(median), median / own);
    match &message.peer {
        Some(Peer::Ran { warm, fresh }) => [shown(warm.median), shown(fresh.median)],
        Some(Peer::Failed(_)) => ["fails".to_owned(), "fails".to_owned()],
        None => ["–".to_owned(), "–".to_owned()],
    }
}

pub(super) fn failed(codec: &CodecBench) -> impl Iterator<Item = (usize, &MessageBench)> {
    (1..).zip(&codec.messages).filter(|(_, message)| message.failure.is_some())
}

pub(super) fn peer_failures(codec: &CodecBench) -> impl Iterator<Item = String> {
    (1..).zip(&codec.messages).filter_map(|(number, message)| match &message.peer {
        Some(Peer::Failed(reason)) => Some(format!("{} fails in Node: {reason}", message.title(number))),
        _ => None,
    })
}

/// Microseconds, or milliseconds if there are many.
fn time(microseconds: f64) -> String {
    match microseconds {
        long if long >= 10_000.0 => format!("{:.1} ms", long / 1e3),
        short if short < 100.0 => format!("{short:.1} µs"),
        middle => format!("{middle:.0} µs"),
    }
}
