//! Cost of a downlink over MQTT for the server, and the time to its acknowledgement, which leaves when it is on disk.
//!
//! Starts `airlock serve` as a process of its own and publishes at QoS 1 on loopback; `AIRLOCK_BINARY` names another
//! binary than the one built with this bench. One client publishes to 200 devices in turn, with a window of 1, 32 and 256,
//! and eight clients with a window of 32 each; every downlink replaces the one before. CPU time is the server's, user and
//! system, from /proc. Each row takes `DOWNLINK_SECONDS`, 5 by default.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod server_process;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use rumqttc::{
    QoS,
    mqttbytes::v4::{Connect, Login, Publish},
};
use server_process::{Application, ServerProcess};
use testing::figures::quantile;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

const DEVICES: usize = 200;

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let seconds = std::env::var_os("DOWNLINK_SECONDS").map_or(5.0, |text| text.to_str().unwrap().parse().unwrap());
    let server = ServerProcess::start("broker.publishes_per_second_max = 1000000").await;
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    for number in 0..DEVICES {
        server.add_device(&application, &device(number)).await;
    }
    let application = Arc::new(application);
    println!("| clients × window | CPU per downlink | downlinks/s | p50 | p99 |\n|---|--:|--:|--:|--:|");
    for (clients, window) in [(1, 1), (1, 32), (1, 256), (8, 32)] {
        let (before, began) = (server.cpu_time(), Instant::now());
        let end = began + Duration::from_secs_f64(seconds);
        let mut publishing = JoinSet::new();
        for number in 0..clients {
            let first = number * DEVICES / clients;
            publishing.spawn(publish(server.mqtt, Arc::clone(&application), first, window, end));
        }
        let mut times = publishing.join_all().await.concat();
        let cpu = (server.cpu_time() - before).as_secs_f64() * 1e6 / times.len() as f64;
        let rate = times.len() as f64 / began.elapsed().as_secs_f64();
        let [p50, p99] = [0.5, 0.99].map(|part| quantile(&mut times, part));
        println!("| {clients} × {window} | {cpu:.0} µs | {rate:.0} | {p50:.2} ms | {p99:.2} ms |");
    }
}

fn device(number: usize) -> String {
    format!("dev-{}", number % DEVICES)
}

/// Publishes until `end`; returns what each acknowledgement took, in milliseconds.
async fn publish(
    address: std::net::SocketAddr,
    application: Arc<Application>,
    first: usize,
    window: usize,
    end: Instant,
) -> Vec<f64> {
    let mut stream = connect(address, &application, first).await;
    let (mut output, mut input) = (BytesMut::new(), BytesMut::new());
    let (mut sent, mut times, mut number) = (VecDeque::new(), Vec::new(), 0_usize);
    loop {
        while sent.len() < window && Instant::now() < end {
            let topic = format!("{}/devices/{}/down", application.id, device(first + number));
            let mut publish = Publish::new(topic, QoS::AtLeastOnce, r#"{"payload_raw":"AQID","schedule":"replace"}"#);
            publish.pkid = (number % 60_000) as u16 + 1;
            publish.write(&mut output).unwrap();
            sent.push_back((publish.pkid, Instant::now()));
            number += 1;
        }
        if sent.is_empty() {
            return times;
        }
        stream.write_all_buf(&mut output).await.unwrap();
        assert_ne!(stream.read_buf(&mut input).await.unwrap(), 0, "the broker closed the connection");
        while input.len() >= 4 {
            let acknowledgement = input.split_to(4);
            let (packet, began) = sent.pop_front().unwrap();
            assert_eq!(acknowledgement[..], [0x40, 2, (packet >> 8) as u8, packet as u8], "not in order");
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
}

async fn connect(address: std::net::SocketAddr, application: &Application, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut connect = Connect::new(format!("bench-{number}"));
    connect.clean_session = true;
    connect.login = Some(Login::new(&application.id, &application.key));
    let mut output = BytesMut::new();
    connect.write(&mut output).unwrap();
    stream.write_all(&output).await.unwrap();
    let mut accepted = [0; 4];
    stream.read_exact(&mut accepted).await.unwrap();
    assert_eq!(accepted, [0x20, 2, 0, 0]);
    stream
}
