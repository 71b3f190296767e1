//! Metrics of this process, from `/proc`, under the names that Prometheus' own clients use.

use std::fs;

use super::exposition::{Exposition, MetricKind};

/// The kernel reports times to programs in this unit, whatever it uses itself.
const TICKS_PER_SECOND: f64 = 100.0;
/// The fields of `/proc/self/stat` after the name of the program, which may contain spaces.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const START_TICKS: usize = 19;

const NO_LABELS: [(&str, &str); 0] = [];

/// A gauge or counter; those that cannot be read are left out.
struct Metric {
    kind: MetricKind,
    name: &'static str,
    help: &'static str,
    value: Option<f64>,
}

/// The metrics in the text format of Prometheus.
///
/// The crate `metrics` counts whole numbers only, which would round processor time to seconds.
pub(super) fn render() -> String {
    let mut text = Exposition::default();
    for Metric { kind, name, help, value } in metrics() {
        text.add((kind, name), help, value.map(|value| (NO_LABELS, value)));
    }
    text.into_text()
}

fn metrics() -> [Metric; 6] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let gauge = |name, help, value| Metric { kind: MetricKind::Gauge, name, help, value };
    [
        Metric {
            kind: MetricKind::Counter,
            name: "process_cpu_seconds_total",
            help: "Processor time of the process, in seconds",
            value: cpu_seconds(&stat),
        },
        gauge("process_resident_memory_bytes", "Resident memory of the process, in bytes", resident_bytes()),
        gauge("process_open_fds", "Open files and sockets", open_files()),
        gauge("process_max_fds", "Maximum number of open files and sockets", open_files_max()),
        gauge("process_threads", "Threads of the process", field(&stat, THREADS)),
        gauge("process_start_time_seconds", "Start of the process, in Unix time", start_time(&stat)),
    ]
}

fn field(stat: &str, index: usize) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(index)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, USER_TICKS)? + field(stat, SYSTEM_TICKS)?) / TICKS_PER_SECOND)
}

fn start_time(stat: &str) -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = after(&system, "btime ")?.parse().ok()?;
    Some(boot + field(stat, START_TICKS)? / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = after(&status, "VmRSS:")?.parse().ok()?;
    Some(kib * 1024.0)
}

fn open_files() -> Option<f64> {
    // Reading the directory opens a file, too.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

fn open_files_max() -> Option<f64> {
    after(&fs::read_to_string("/proc/self/limits").ok()?, "Max open files")?.parse().ok()
}

/// The first word behind `start` in the line that begins with it.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(start))?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_known_on_linux() {
        for Metric { name, value, .. } in metrics() {
            assert!(value.is_some_and(|value| value > 0.0) || name == "process_cpu_seconds_total", "{name}: {value:?}");
        }
    }

    #[test]
    fn a_program_may_have_spaces_and_brackets_in_its_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 4711 1 2";
        assert_eq!(
            (cpu_seconds(stat), field(stat, THREADS), field(stat, START_TICKS)),
            (Some(3.0), Some(9.0), Some(4711.0))
        );
    }
}
