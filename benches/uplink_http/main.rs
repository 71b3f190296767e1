//! Cost of an uplink for the server from HTTP request to MQTT message: CPU time, throughput and latency.
//!
//! Starts `airlock serve` as a process of its own and talks to it over REST and MQTT on loopback, so that two versions
//! can be compared: `AIRLOCK_BINARY` names another binary than the one built with this bench. Simulated uplinks pass
//! the demo's three functions, over 16 connections, first without and then with an MQTT subscriber at QoS 1. CPU time
//! is the server's, user and system, from /proc. Each row takes `UPLINK_SECONDS`, 10 by default. At last, how long uplinks
//! take to the subscriber at half of the rate that was reached.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod delivery;
mod server_process;

use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use server_process::{DEVICE, ServerProcess};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testing::load::Load;
use tokio::time::sleep;

const CONNECTIONS: usize = 16;

/// The CPU time per uplink includes delivery, so a run ends only when no message arrives for this long.
const QUIET: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let seconds = std::env::var_os("UPLINK_SECONDS").map_or(10.0, |text| text.to_str().unwrap().parse().unwrap());
    let server = ServerProcess::start("").await;
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    let load = Load::new(server.handler, &application.uplink(DEVICE), CONNECTIONS);
    load.clone().run_for(Duration::from_secs_f64(seconds / 5.0)).await.all(200);

    println!("{}, {CONNECTIONS} connections, {seconds} s per row\n", server.binary);
    println!("| subscriber | CPU per uplink | uplinks/s | p50 | p99 | delivered |\n|---|--:|--:|--:|--:|--:|");
    let mut rate = 0.0;
    for is_subscribed in [false, true] {
        let delivered = Arc::new(AtomicUsize::new(0));
        let subscriber = if is_subscribed { Some(subscribe(&server, &application, &delivered).await) } else { None };
        let before = server.cpu_time();
        let taken = load.clone().run_for(Duration::from_secs_f64(seconds)).await;
        taken.all(200);
        if is_subscribed {
            until_quiet(&delivered).await;
        }
        let cpu = server.cpu_time() - before;
        let uplinks = taken.of(200);
        println!(
            "| {} | {:.1} µs | {:.0} | {:.2} ms | {:.2} ms | {} of {uplinks} |",
            if is_subscribed { "QoS 1" } else { "none" },
            cpu.as_secs_f64() * 1e6 / uplinks as f64,
            taken.per_second(),
            taken.quantile_ms(0.5),
            taken.quantile_ms(0.99),
            delivered.load(Ordering::Relaxed),
        );
        subscriber.inspect(tokio::task::JoinHandle::abort);
        rate = taken.per_second();
    }
    delivery::run(&server, &application, rate / 2.0, Duration::from_secs_f64(seconds)).await;
}

/// Waits until the count stays the same for a while.
async fn until_quiet(delivered: &AtomicUsize) {
    loop {
        let count = delivered.load(Ordering::Relaxed);
        sleep(QUIET).await;
        if delivered.load(Ordering::Relaxed) == count {
            return;
        }
    }
}

/// Subscribes to all uplinks of the application, and counts them.
async fn subscribe(
    server: &ServerProcess,
    application: &server_process::Application,
    delivered: &Arc<AtomicUsize>,
) -> tokio::task::JoinHandle<()> {
    let (client, mut events) = connect(server, application).await;
    let delivered = Arc::clone(delivered);
    tokio::spawn(async move {
        // Without the client, the event loop would end.
        let _client = client;
        loop {
            if let Event::Incoming(Packet::Publish(_)) = events.poll().await.unwrap() {
                delivered.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
}

async fn connect(server: &ServerProcess, application: &server_process::Application) -> (AsyncClient, EventLoop) {
    let mut options = MqttOptions::new("", server.mqtt.ip().to_string(), server.mqtt.port());
    options.set_credentials(&application.id, &application.key);
    let (client, mut events) = AsyncClient::new(options, 10);
    client.subscribe("+/devices/+/up", QoS::AtLeastOnce).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
    (client, events)
}
