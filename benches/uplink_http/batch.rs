//! The cost of an uplink in a batch for the server, beside that of one that comes alone.
//!
//! Starts `airlock serve` as a process of its own and talks to it on loopback, first without history and then with it.
//! Simulated uplinks pass the demo's three functions: each in a request of its own over 16 connections, as lines of four
//! requests that do not end, and as messages of four gRPC streams. CPU time is the server's, user and system, from
//! /proc. Each row takes `UPLINK_SECONDS`, 10 by default. `AIRLOCK_BINARY` names another binary than the one built with
//! this bench.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod server_process;

use std::{
    future::ready,
    time::{Duration, Instant},
};

use api::handler::SimulatedUplinkMessage;
use client::{Trust, handler::HandlerClient};
use futures::{StreamExt as _, stream};
use server_process::{Application, DEVICE, ServerProcess};
use testing::load::Load;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use types::Credential;

/// Number of requests at the same time.
const CONNECTIONS: usize = 16;
/// Number of batches at the same time.
const BATCHES: usize = 4;
/// Number of lines that are sent together.
const LINES: usize = 64;
/// Maximum CPU time of an uplink of a batch, in µs.
const GOAL_US: f64 = 20.0;

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let seconds = std::env::var_os("UPLINK_SECONDS").map_or(10.0, |text| text.to_str().unwrap().parse().unwrap());
    println!("{CONNECTIONS} connections or {BATCHES} batches, {seconds} s per row, goal {GOAL_US} µs in a batch\n");
    println!("| history | uplinks | CPU per uplink | uplinks/s |\n|---|---|--:|--:|");
    // Without TLS, which HTTP has none of here.
    for (history, settings) in [("off", "tls.mode = 'off'\nhistory = { bytes_max = 0 }"), ("on", "tls.mode = 'off'")] {
        let server = ServerProcess::start(settings).await;
        let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
        let load = Load::new(server.handler, &application.uplink(DEVICE), CONNECTIONS);
        load.clone().run_for(Duration::from_secs_f64(seconds / 5.0)).await.all(200);
        let before = server.cpu_time();
        let taken = load.run_for(Duration::from_secs_f64(seconds)).await;
        taken.all(200);
        print(history, "alone", (server.cpu_time() - before, taken.of(200)), taken.per_second());
        let (before, began) = (server.cpu_time(), Instant::now());
        let uplinks = batches(&server, &application, Duration::from_secs_f64(seconds)).await;
        let rate = uplinks as f64 / began.elapsed().as_secs_f64();
        print(history, "in batches", (server.cpu_time() - before, uplinks), rate);
        let (before, began) = (server.cpu_time(), Instant::now());
        let uplinks = streams(&server, &application, Duration::from_secs_f64(seconds)).await;
        let rate = uplinks as f64 / began.elapsed().as_secs_f64();
        print(history, "in gRPC streams", (server.cpu_time() - before, uplinks), rate);
    }
}

fn print(history: &str, what: &str, (cpu, uplinks): (Duration, usize), rate: f64) {
    println!("| {history} | {what} | {:.1} µs | {rate:.0} |", cpu.as_secs_f64() * 1e6 / uplinks as f64);
}

/// Sends streams over gRPC for this long, and returns how many uplinks were accepted.
async fn streams(server: &ServerProcess, application: &Application, time: Duration) -> usize {
    let mut streams = JoinSet::new();
    for _ in 0..BATCHES {
        // With a connection of its own, as the batches.
        let credential = Credential::Token(application.token.clone());
        let handler =
            HandlerClient::connect_to(&server.handler_grpc.to_string(), &Trust::Plaintext, credential).unwrap();
        let uplink = SimulatedUplinkMessage {
            app_id: application.id.clone(),
            dev_id: DEVICE.to_owned(),
            payload: vec![1, 0x9a, 0xa8, 0xa0],
            port: 1,
        };
        let end = Instant::now() + time;
        let uplinks = stream::repeat(uplink).take_while(move |_| ready(Instant::now() < end));
        streams.spawn(async move {
            let mut answers = handler.simulate_uplinks(uplinks).await.unwrap();
            let mut accepted = 0;
            while let Some(answer) = answers.next().await.unwrap() {
                assert!(answer.error.is_none(), "every uplink is answered and published");
                accepted += 1;
            }
            accepted
        });
    }
    streams.join_all().await.into_iter().sum()
}

/// Sends batches for this long, and returns how many uplinks were accepted.
async fn batches(server: &ServerProcess, application: &Application, time: Duration) -> usize {
    let mut batches = JoinSet::new();
    for _ in 0..BATCHES {
        let head = format!(
            "POST /applications/{}/uplinks HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             transfer-encoding: chunked\r\n\r\n",
            application.id,
            application.token.expose()
        );
        let stream = TcpStream::connect(server.handler).await.unwrap();
        stream.set_nodelay(true).unwrap();
        batches.spawn(batch(stream, head, time));
    }
    batches.join_all().await.into_iter().sum()
}

async fn batch(stream: TcpStream, head: String, time: Duration) -> usize {
    let lines = format!("{{\"dev_id\":\"{DEVICE}\",\"port\":1,\"payload\":\"AZqooA==\"}}\n").repeat(LINES);
    let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
    let (mut response, mut request) = stream.into_split();
    let sending = tokio::spawn(async move {
        let (began, mut sent) = (Instant::now(), 0);
        request.write_all(head.as_bytes()).await.unwrap();
        while began.elapsed() < time {
            request.write_all(chunk.as_bytes()).await.unwrap();
            sent += LINES;
        }
        request.write_all(b"0\r\n\r\n").await.unwrap();
        (request, sent)
    });
    let mut answers = Answers::default();
    let mut buffer = vec![0; 64 * 1024];
    while !answers.has_ended {
        let read = response.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the response was cut off");
        answers.read(&buffer[..read]);
    }
    let (_request, sent) = sending.await.unwrap();
    assert_eq!((answers.lines, answers.failed), (sent, 0), "every uplink is answered and published");
    sent
}

/// Counts the answers in the bytes of a response.
#[derive(Default)]
struct Answers {
    line: Vec<u8>,
    lines: usize,
    failed: usize,
    has_ended: bool,
}

impl Answers {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let is_answer = self.line.starts_with(b"{");
            self.lines += usize::from(is_answer);
            self.failed += usize::from(is_answer && self.line.windows(8).any(|part| part == b"\"status\""));
            // An empty line follows.
            self.has_ended |= self.line == b"0\r";
            self.line.clear();
        }
    }
}
