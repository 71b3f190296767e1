//! Rates, and the processor time of another process, according to the kernel.

use std::{
    fs,
    time::{Duration, Instant},
};

use testing::figures::Figures;

use crate::bridge_process::BridgeProcess;

/// Clock ticks per second in /proc, the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) all: f64,
    sandbox: f64,
}

impl Cpu {
    pub(crate) fn of(process: u32) -> Self {
        let seconds = |path: String| -> f64 {
            let Ok(stat) = fs::read_to_string(path) else { return 0.0 };
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS_PER_SECOND
        };
        let tasks = format!("/proc/{process}/task");
        let threads = fs::read_dir(&tasks).unwrap().map(|thread| thread.unwrap().path().display().to_string());
        let is_sandbox =
            |path: &String| fs::read_to_string(format!("{path}/comm")).is_ok_and(|name| name.trim() == "sandbox");
        let sandbox = threads.filter(is_sandbox).map(|path| seconds(format!("{path}/stat"))).sum();
        Self { all: seconds(format!("/proc/{process}/stat")), sandbox }
    }

    /// Of both.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self { all: self.all + other.all, sandbox: self.sandbox + other.sandbox }
    }

    pub(crate) fn since(self, before: &Self) -> Self {
        Self { all: self.all - before.all, sandbox: self.sandbox - before.sandbox }
    }
}

/// Times of a run.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    /// From the start of the process to the first decoded uplink.
    pub(crate) first_s: f64,
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
    sandbox_us: f64,
}

impl Measured {
    pub(crate) fn new(first_s: f64, uplinks: usize, elapsed: Duration, cpu: Cpu) -> Self {
        let each = |seconds: f64| seconds * 1e6 / uplinks as f64;
        Self {
            first_s,
            per_s: uplinks as f64 / elapsed.as_secs_f64(),
            cpu_us: each(cpu.all),
            sandbox_us: each(cpu.sandbox),
        }
    }

    pub(crate) fn add_to(&self, figures: &mut Figures, what: &str, goal: &str) {
        figures.add(what, format!("{:.0}/s", self.per_s), goal);
        figures.add("of that, processor time per uplink", format!("{:.1} µs", self.cpu_us), "");
        let beyond = self.cpu_us - self.sandbox_us;
        figures.add("of that, beyond the sandbox's threads", format!("{beyond:.1} µs"), "≤ 15 µs");
    }
}

/// Returns the number of uplinks per second that processes decode together.
pub(crate) async fn rate(bridges: &[BridgeProcess], uplinks: usize) -> f64 {
    let decoded = || bridges.iter().map(BridgeProcess::decoded).sum::<usize>();
    let until = async |uplinks: usize| {
        while decoded() < uplinks {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (decoded(), Instant::now())
    };
    let (before, start) = until(uplinks / 10).await;
    let (after, end) = until(uplinks / 100 * 97).await;
    (after - before) as f64 / (end - start).as_secs_f64()
}
