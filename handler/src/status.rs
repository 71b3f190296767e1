//! Figures about the handler's process and its machine, as v2 clients ask for them.

use std::{fs, str::FromStr};

use api::{
    api::{ComponentStats, SystemStats, component_stats, system_stats},
    handler::Status,
};
use types::{ComponentId, Timestamp};

/// How many ticks of the kernel's clock make a second, on every Linux that we know.
const TICKS_PER_SECOND: f32 = 100.0;

/// What the handler says about itself.
pub struct Component {
    /// The id with which it announces itself.
    pub id: ComponentId,
    /// When it was started.
    pub started: Timestamp,
}

impl Component {
    /// The figures as they are `now`; those that the system does not tell are zero.
    pub fn status(&self, now: Timestamp) -> Status {
        let uptime_ms = now.as_millis().saturating_sub(self.started.as_millis());
        let component = ComponentStats {
            uptime: u64::try_from(uptime_ms / 1000).unwrap_or_default(),
            memory: Some(process_memory(&read("/proc/self/status"))),
            ..Default::default()
        };
        let system = SystemStats {
            load: Some(load(&read("/proc/loadavg"))),
            cpu: Some(processors(&read("/proc/stat"))),
            memory: Some(memory(&read("/proc/meminfo"))),
        };
        Status { system: Some(system), component: Some(component), ..Default::default() }
    }
}

/// The text of a file; nothing where there is no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn load(text: &str) -> system_stats::Loadstats {
    let mut numbers = numbers(text);
    let mut next = || numbers.next().unwrap_or_default();
    system_stats::Loadstats { load1: next(), load5: next(), load15: next() }
}

/// Processor time since the start of the machine, and which part of it was used.
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

fn process_memory(text: &str) -> component_stats::MemoryStats {
    component_stats::MemoryStats {
        memory: bytes(text, "VmRSS:"),
        swap: bytes(text, "VmSwap:"),
        heap: bytes(text, "VmData:"),
        stack: bytes(text, "VmStk:"),
    }
}

/// The figure of a line like `VmRSS:   1234 kB`, in bytes.
fn bytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    numbers::<u64>(line).next().unwrap_or_default() * 1024
}

fn numbers<T: FromStr>(text: &str) -> impl Iterator<Item = T> {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let load = load("0.50 1.25 2.00 3/456 789\n");
        assert_eq!((load.load1, load.load5, load.load15), (0.5, 1.25, 2.0));
        let processors = processors("cpu  100 100 100 700 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
        assert_eq!((processors.user, processors.idle, processors.percentage), (2.0, 7.0, 30.0));
        let memory = memory("MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable:   40 kB\n");
        assert_eq!((memory.total, memory.available, memory.used), (102_400, 40_960, 61_440));
        let process = process_memory("Name:\tx\nVmStk:\t 2 kB\nVmRSS:\t  10 kB\n");
        assert_eq!((process.memory, process.stack, process.swap), (10_240, 2048, 0));
    }

    #[test]
    fn what_is_not_there_is_zero() {
        assert_eq!(processors("cpu  1 2"), Default::default());
        assert_eq!(memory(""), Default::default());
        assert_eq!(load("so much"), Default::default());
    }

    #[test]
    fn a_component_says_for_how_long_it_runs() {
        let component = Component { id: "handler".parse().unwrap(), started: Timestamp::from_millis(1000) };
        let status = component.status(Timestamp::from_millis(61_999));
        assert_eq!(status.component.unwrap().uptime, 60);
        assert_eq!(component.status(Timestamp::from_millis(0)).component.unwrap().uptime, 0);
    }
}
