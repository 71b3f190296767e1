//! The handler's status: its traffic, its process and its machine, as v2 clients expect it.

mod rates;

use std::{fs, str::FromStr, sync::Arc};

use api::{
    api::{ComponentStats, SystemStats, component_stats, system_stats},
    handler::Status,
};
use types::{ComponentId, Timestamp};

pub use self::rates::{Meter, Traffic};

/// The kernel's clock ticks per second, `USER_HZ`, on every Linux that we know.
const TICKS_PER_SECOND: f32 = 100.0;

/// What the status is made of.
pub struct Component {
    /// The id with which it announces itself.
    pub id: ComponentId,
    /// When it was started.
    pub started: Timestamp,
    /// Its traffic.
    pub traffic: Arc<Traffic>,
}

impl Component {
    /// The status `now`; what the system does not say is zero.
    pub fn status(&self, now: Timestamp) -> Status {
        let uptime_ms = now.as_millis().saturating_sub(self.started.as_millis());
        let process = read("/proc/self/status");
        let component = ComponentStats {
            uptime: u64::try_from(uptime_ms / 1000).unwrap_or_default(),
            cpu: Some(process_time(&read("/proc/self/stat"), uptime_ms)),
            memory: Some(process_memory(&process)),
            // The closest we have to goroutines.
            goroutines: number(&process, "Threads:"),
            ..Default::default()
        };
        let system = SystemStats {
            load: Some(load(&read("/proc/loadavg"))),
            cpu: Some(processors(&read("/proc/stat"))),
            memory: Some(memory(&read("/proc/meminfo"))),
        };
        let Traffic { uplink, downlink, activations } = self.traffic.as_ref();
        Status {
            system: Some(system),
            component: Some(component),
            uplink: Some(uplink.rates(now)),
            downlink: Some(downlink.rates(now)),
            activations: Some(activations.rates(now)),
        }
    }
}

/// The text of a file; empty if it does not exist.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn load(text: &str) -> system_stats::Loadstats {
    let mut numbers = numbers(text);
    let mut next = || numbers.next().unwrap_or_default();
    system_stats::Loadstats { load1: next(), load5: next(), load15: next() }
}

/// The processor time since the machine started, and the percentage that was used.
fn processors(text: &str) -> system_stats::CpuStats {
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<f32> = numbers(line).collect();
    let [user, nice, system, idle, ..] = ticks[..] else { return Default::default() };
    let all: f32 = ticks.iter().sum();
    system_stats::CpuStats {
        user: (user + nice) / TICKS_PER_SECOND,
        system: system / TICKS_PER_SECOND,
        idle: idle / TICKS_PER_SECOND,
        percentage: if all > 0.0 { 100.0 * (all - idle) / all } else { 0.0 },
    }
}

fn memory(text: &str) -> system_stats::MemoryStats {
    let (total, available) = (bytes(text, "MemTotal:"), bytes(text, "MemAvailable:"));
    system_stats::MemoryStats { total, available, used: total.saturating_sub(available) }
}

/// The processor time of this process, and the percentage of one processor since it started.
fn process_time(text: &str, uptime_ms: i64) -> component_stats::CpuStats {
    // The name in parentheses may contain anything. The field after it is the third.
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let mut ticks = fields.split_ascii_whitespace().skip(11).filter_map(|field| field.parse::<f32>().ok());
    let mut next = || ticks.next().unwrap_or_default() / TICKS_PER_SECOND;
    let (user, system) = (next(), next());
    let uptime = uptime_ms as f32 / 1000.0;
    let percentage = if uptime > 0.0 { 100.0 * (user + system) / uptime } else { 0.0 };
    component_stats::CpuStats { user, system, idle: (uptime - user - system).max(0.0), percentage }
}

fn process_memory(text: &str) -> component_stats::MemoryStats {
    component_stats::MemoryStats {
        memory: bytes(text, "VmRSS:"),
        swap: bytes(text, "VmSwap:"),
        heap: bytes(text, "VmData:"),
        stack: bytes(text, "VmStk:"),
    }
}

/// The number of a line like `VmRSS:   1234 kB`, in bytes.
fn bytes(text: &str, name: &str) -> u64 {
    number(text, name) * 1024
}

/// The number of a line like `Threads:   12`.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    numbers(line).next().unwrap_or_default()
}

fn numbers<T: FromStr>(text: &str) -> impl Iterator<Item = T> {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_kernel_writes() {
        let load = load("0.50 1.25 2.00 3/456 789\n");
        assert_eq!((load.load1, load.load5, load.load15), (0.5, 1.25, 2.0));
        let processors = processors("cpu  100 100 100 700 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
        assert_eq!((processors.user, processors.idle, processors.percentage), (2.0, 7.0, 30.0));
        let memory = memory("MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable:   40 kB\n");
        assert_eq!((memory.total, memory.available, memory.used), (102_400, 40_960, 61_440));
        let process = process_memory("Name:\tx\nVmStk:\t 2 kB\nVmRSS:\t  10 kB\n");
        assert_eq!((process.memory, process.stack, process.swap), (10_240, 2048, 0));
        let time = process_time("1 (a) b) S 2 3 4 5 6 7 8 9 10 11 150 50 0 0 20 0\n", 8000);
        assert_eq!((time.user, time.system, time.idle, time.percentage), (1.5, 0.5, 6.0, 25.0));
        assert_eq!(number("Name:\tx\nThreads:\t12\n", "Threads:"), 12);
    }

    #[test]
    fn missing_values_are_zero() {
        assert_eq!(processors("cpu  1 2"), Default::default());
        assert_eq!(memory(""), Default::default());
        assert_eq!(load("so much"), Default::default());
        assert_eq!(process_time("", 0), Default::default());
    }

    #[test]
    fn shows_the_uptime() {
        let (id, traffic) = ("handler".parse().unwrap(), Arc::default());
        let component = Component { id, started: Timestamp::from_millis(1000), traffic };
        let status = component.status(Timestamp::from_millis(61_999));
        assert_eq!(status.component.unwrap().uptime, 60);
        assert_eq!(component.status(Timestamp::from_millis(0)).component.unwrap().uptime, 0);
    }
}
