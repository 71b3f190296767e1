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

const ADDRESSES: usize = 2;
const CONNECTIONS: usize = 2048;
/// How often something is sent on each. Once in 25 s would do, but an attack is shorter here.
const PERIOD: Duration = Duration::from_secs(3);
/// How long a connection that was closed waits before it is made again.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) const HTTP1: Attack = Attack::new(2, "2,048 idle connections from each of two addresses", |server| {
    let to = server.handler;
    Box::pin(async move { attacker(move |end| hold_all(to, false, end)) })
});

pub(crate) const HTTP2: Attack =
    Attack::new(2, "2,048 idle HTTP/2 connections from each of two addresses", |server| {
        let to = server.handler;
        Box::pin(async move { attacker(move |end| hold_all(to, true, end)) })
    });

async fn hold_all(to: SocketAddr, is_http2: bool, end: Instant) -> String {
    let mut holding = JoinSet::new();
    for number in 0..ADDRESSES * CONNECTIONS {
        holding.spawn(hold_until(to, number, is_http2, end));
    }
    let held = holding.join_all().await;
    let open = held.iter().filter(|(is_open, _)| *is_open).count();
    let mut statuses = Statuses::default();
    held.into_iter().for_each(|(_, of)| statuses.merge(of));
    format!("{open} connections at the end; {statuses}")
}

/// Opens a connection again whenever it is closed; returns whether it is open at the end, and the answers.
async fn hold_until(to: SocketAddr, number: usize, is_http2: bool, end: Instant) -> (bool, Statuses) {
    let mut statuses = Statuses::default();
    // One after the other: what is attacked are connections, not the processor.
    sleep(PERIOD.mul_f64(number as f64 / (ADDRESSES * CONNECTIONS) as f64)).await;
    while Instant::now() < end {
        if timeout_at(end.into(), hold(to, 1 + number % ADDRESSES, is_http2, &mut statuses)).await.is_err() {
            return (true, statuses);
        }
        statuses.add(0);
        sleep(PAUSE).await;
    }
    (false, statuses)
}

/// Returns when the connection is closed.
async fn hold(to: SocketAddr, address: usize, is_http2: bool, statuses: &mut Statuses) {
    let Ok(mut stream) = connect_from(address, to).await else { return };
    if is_http2 {
        http2::answer_pings(stream).await.ok();
        return;
    }
    let mut buffer = Vec::new();
    while stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: bench\r\n\r\n").await.is_ok() {
        let Ok(status) = response(&mut stream, &mut buffer).await else { return };
        statuses.add(status);
        sleep(PERIOD).await;
    }
}
