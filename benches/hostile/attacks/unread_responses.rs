//! Row 19: large lists that are requested and never read, over HTTP/2 without a window and over HTTP/1.1.

use std::{io, net::SocketAddr, time::Instant};

use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout_at};

use super::lists;
use crate::{
    attack::{Attack, attacker},
    http2::{self, GOAWAY, HEADERS, RST_STREAM},
    requests::connect_from,
};

const PATH: &str = "/applications/lists-0/devices";
const USERS: [&str; 3] = ["lists-0", "lists-1", "lists-2"];
/// As long as a description may be. Each character takes two in JSON.
const DESCRIPTION_BYTES: usize = 1024;
const HTTP2_CONNECTIONS: usize = 6;
const STREAMS: u32 = 100;
const CONNECTIONS: usize = 600;

pub(crate) const HTTP2: Attack = Attack::new(19, "600 lists over HTTP/2 that are not read", |server| {
    Box::pin(async {
        let authorization = lists::prepare(server, USERS[0], &"\"".repeat(DESCRIPTION_BYTES)).await;
        let to = server.handler;
        attacker(move |end| request_streams(to, authorization, end))
    })
});

pub(crate) const HTTP1: Attack = Attack::new(19, "lists of three users over 600 connections, not read", |server| {
    Box::pin(async {
        let mut requests = Vec::new();
        for id in USERS {
            let authorization = lists::prepare(server, id, &"\"".repeat(DESCRIPTION_BYTES)).await;
            requests.push(lists::list(id, &authorization));
        }
        let to = server.handler;
        attacker(move |end| request_each(to, requests, end))
    })
});

async fn request_streams(to: SocketAddr, authorization: String, end: Instant) -> String {
    let mut holding = JoinSet::new();
    for number in 0..HTTP2_CONNECTIONS {
        let authorization = authorization.clone();
        holding.spawn(async move {
            let (mut answered, mut reset) = (0, 0);
            let holding = hold_streams(to, number, &authorization, (&mut answered, &mut reset));
            let is_open = timeout_at(end.into(), holding).await.is_err();
            [usize::from(is_open), answered, reset]
        });
    }
    let done = holding.join_all().await;
    let [open, answered, reset] = [0, 1, 2].map(|of| done.iter().map(|counts| counts[of]).sum::<usize>());
    format!("{answered} answered, {reset} reset, {open} connections open at the end")
}

/// Returns when the server closes the connection.
async fn hold_streams(
    to: SocketAddr,
    number: usize,
    authorization: &str,
    (answered, reset): (&mut usize, &mut usize),
) -> io::Result<()> {
    let mut connection = http2::Connection::start(connect_from(1 + number, to).await?).await?;
    for stream in 0..STREAMS {
        connection.get(stream, PATH, authorization).await?;
    }
    loop {
        match connection.next().await? {
            HEADERS => *answered += 1,
            RST_STREAM => *reset += 1,
            GOAWAY => return Ok(()),
            _ => {}
        }
    }
}

async fn request_each(to: SocketAddr, requests: Vec<Vec<u8>>, end: Instant) -> String {
    let mut streams = Vec::new();
    for number in 0..CONNECTIONS {
        let Ok(mut stream) = connect_from(1 + number % 20, to).await else { continue };
        if stream.write_all(&requests[number % USERS.len()]).await.is_ok() {
            streams.push(stream);
        }
    }
    tokio::time::sleep_until(end.into()).await;
    format!("{} requests sent", streams.len())
}
