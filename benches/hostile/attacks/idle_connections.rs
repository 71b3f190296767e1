//! Row 2: two addresses open as many HTTP connections as they may, and use them as little as that needs.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    task::JoinSet,
    time::{sleep, timeout_at},
};

use crate::{
    attack::{Attack, attacker},
    http2,
    requests::{Statuses, connect_from, response},
};

/// Connections that are held.
#[derive(Clone, Copy)]
struct Held {
    addresses: usize,
    connections: usize,
    /// Interval at which something is sent on each.
    period: Duration,
    is_http2: bool,
}

/// As many as an address may have. Once in 25 s would do for a request, but an attack is shorter here.
const FROM_TWO: Held = Held { addresses: 2, connections: 2048, period: Duration::from_secs(3), is_http2: false };
/// As many as an address may always have; none is idle for a second. The server has an eighth of the default, so that
/// this takes little processor time.
const FROM_MANY: Held = Held { addresses: 10, connections: 64, period: Duration::from_millis(800), is_http2: false };
/// Until all are open.
const LEAD: Duration = Duration::from_secs(4);
/// Time before a connection that was closed is made again.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) const HTTP1: Attack = Attack {
    lead: LEAD,
    ..Attack::new(2, "2,048 idle connections from each of two addresses", |server| {
        let to = server.handler;
        Box::pin(async move { attacker(move |end| hold_all(to, FROM_TWO, end)) })
    })
};

pub(crate) const HTTP2: Attack = Attack {
    lead: LEAD,
    ..Attack::new(2, "2,048 idle HTTP/2 connections from each of two addresses", |server| {
        let to = server.handler;
        Box::pin(async move { attacker(move |end| hold_all(to, Held { is_http2: true, ..FROM_TWO }, end)) })
    })
};

pub(crate) const MANY: Attack = Attack {
    settings: "serve.connections_max = 512\n",
    lead: LEAD,
    ..Attack::new(2, "64 hardly idle connections from each of 10 addresses, of 512", |server| {
        let to = server.handler;
        Box::pin(async move { attacker(move |end| hold_all(to, FROM_MANY, end)) })
    })
};

async fn hold_all(to: SocketAddr, held: Held, end: Instant) -> String {
    let mut holding = JoinSet::new();
    for number in 0..held.addresses * held.connections {
        holding.spawn(hold_until(to, number, held, end));
    }
    let done = holding.join_all().await;
    let open = done.iter().filter(|(is_open, _)| *is_open).count();
    let mut statuses = Statuses::default();
    done.into_iter().for_each(|(_, of)| statuses.merge(of));
    format!("{open} connections at the end; {statuses}")
}

/// Opens a connection again whenever it is closed; returns whether it is open at the end, and the answers.
async fn hold_until(to: SocketAddr, number: usize, held: Held, end: Instant) -> (bool, Statuses) {
    let mut statuses = Statuses::default();
    // One after the other: what is attacked are connections, not the processor.
    sleep(LEAD.mul_f64(0.8 * number as f64 / (held.addresses * held.connections) as f64)).await;
    while Instant::now() < end {
        if timeout_at(end.into(), hold(to, 1 + number % held.addresses, held, &mut statuses)).await.is_err() {
            return (true, statuses);
        }
        statuses.add(0);
        sleep(PAUSE).await;
    }
    (false, statuses)
}

/// Returns when the connection is closed.
async fn hold(to: SocketAddr, address: usize, held: Held, statuses: &mut Statuses) {
    let Ok(mut stream) = connect_from(address, to).await else { return };
    if held.is_http2 {
        http2::answer_pings(stream).await.ok();
        return;
    }
    let mut buffer = Vec::new();
    while stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: bench\r\n\r\n").await.is_ok() {
        let Ok(status) = response(&mut stream, &mut buffer).await else { return };
        statuses.add(status);
        sleep(held.period).await;
    }
}
