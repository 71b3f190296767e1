//! Effects of one caller's overload on others: latency beside 2,000 connections, goodput at 10 and 100 times the load,
//! and throughput beside 1,500 endless loops.
//!
//! Starts `airlock serve` as a process of its own; `AIRLOCK_BINARY` names another binary than the one built with this
//! bench. All connections come from one address. Each load has a thread of its own, so that a busy one does not delay
//! the measurements of another, but all share the machine with the server. `OVERLOAD_SECONDS` is the time per row, 5 by
//! default.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod server_process;

use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::json;
use server_process::{DEVICE, ServerProcess};
use testing::load::{Load, Taken};

/// Connections of the neighbour, each of which sends its next request when it has a response.
const NEIGHBOUR: usize = 40;
/// Connections of the caller beside it.
const FLOOD: usize = 2000;
/// Connections that run functions that never end.
const ENDLESS: usize = 1500;
/// Connections of the lightest load, which already takes all of the processors.
const LOAD: usize = 16;
/// Time of a flood before others are measured beside it.
const LEAD: Duration = Duration::from_secs(2);

struct Bench {
    server: ServerProcess,
    time: Duration,
}

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let seconds = std::env::var_os("OVERLOAD_SECONDS").map_or(5.0, |text| text.to_str().unwrap().parse().unwrap());
    let server = ServerProcess::start("").await;
    let endless = json!({ "payload_format": "custom", "decoder": "function Decoder() { while (true) {} }" });
    let neighbour = server.create_application("neighbour", ServerProcess::demo_functions()).await.uplink(DEVICE);
    let flood = server.create_application("flood", ServerProcess::demo_functions()).await.uplink(DEVICE);
    let endless = server.create_application("endless", endless).await.uplink(DEVICE);
    let bench = Bench { server, time: Duration::from_secs_f64(seconds) };
    let load = |request: &[u8], connections| Load::new(bench.server.handler, request, connections);
    let (neighbour, paced) = (load(&neighbour, NEIGHBOUR), load(&neighbour, 1).at(20));
    bench.run(&neighbour, None);

    println!(
        "{}, {seconds} s per row; the load generator shares the processors with the server\n",
        bench.server.binary
    );
    println!("| load | answered 200 | others | p50 | p99 | CPU of the server |\n|---|--:|--:|--:|--:|--:|");
    let alone = bench.row("40 connections alone", &neighbour, None);
    let beside = bench.row("40 beside 2,000 of another caller", &neighbour, Some(load(&flood, FLOOD)));
    let paced_alone = bench.row("one connection, 20/s, alone", &paced, None);
    let paced_beside = bench.row("one beside 2,000 of another caller", &paced, Some(load(&flood, FLOOD)));
    let goodput = [1, 10, 100].map(|times| {
        let name = format!("{times} × {LOAD} connections of one caller");
        bench.row(&name, &load(&flood, times * LOAD), None)
    });
    let honest = bench.row("40 beside 1,500 with endless loops", &neighbour, Some(load(&endless, ENDLESS)));

    let p99 = |taken: &Taken| taken.quantile_ms(0.99);
    let rate = |taken: &Taken| taken.per_second_of(200);
    println!("\n| figure | measured | goal |\n|---|--:|--:|");
    println!("| p99 of 40 connections beside 2,000 ÷ alone | {:.2} | ≤ 3 |", p99(&beside) / p99(&alone));
    println!("| p99 of one paced connection beside 2,000 ÷ alone | {:.2} | |", p99(&paced_beside) / p99(&paced_alone));
    let peak = goodput.iter().map(rate).fold(0.0, f64::max);
    for (times, taken) in [10, 100].into_iter().zip(&goodput[1..]) {
        println!("| goodput at {times} times the load ÷ peak | {:.2} | ≥ 0.9 |", rate(taken) / peak);
    }
    let share = rate(&alone) / 2.0;
    println!("| 40 honest callers beside 1,500 endless loops ÷ their half | {:.2} | ≥ 0.7 |", rate(&honest) / share);
}

impl Bench {
    /// Measures a load, alone or beside another, and prints it.
    fn row(&self, name: &str, load: &Load, beside: Option<Load>) -> Taken {
        let (taken, cpu) = self.run(load, beside);
        println!(
            "| {name} | {:.0}/s | {:.0}/s | {:.2} ms | {:.2} ms | {:.0}% |",
            taken.per_second_of(200),
            taken.per_second() - taken.per_second_of(200),
            taken.quantile_ms(0.5),
            taken.quantile_ms(0.99),
            cpu * 100.0,
        );
        taken
    }

    /// Runs a load; returns its answers, and how many processors the server used meanwhile.
    fn run(&self, load: &Load, beside: Option<Load>) -> (Taken, f64) {
        let beside = beside.map(|other| {
            let other = in_thread(other, LEAD + self.time + LEAD);
            #[expect(clippy::disallowed_methods, reason = "no event says that a flood is at its height")]
            thread::sleep(LEAD);
            other
        });
        let before = self.server.cpu_time();
        let taken = in_thread(load.clone(), self.time).join().unwrap();
        let cpu = (self.server.cpu_time() - before).div_duration_f64(self.time);
        if let Some(beside) = beside {
            let beside = beside.join().unwrap();
            println!("| (beside it) | {:.0}/s | | {:.0} ms | | |", beside.per_second(), beside.quantile_ms(0.5));
        }
        (taken, cpu)
    }
}

/// Runs a load in a thread of its own.
fn in_thread(load: Load, time: Duration) -> JoinHandle<Taken> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(load.run_for(time))
    })
}
