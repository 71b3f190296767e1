//! The handler's status: its traffic, its process and its machine, as v2 clients expect it; its metrics, and the cost
//! of messages in the sandbox.

pub(crate) mod cost;
pub(crate) mod metrics;
mod rates;

use std::sync::Arc;

use api::{
    api::{ComponentStats, SystemStats, component_stats, system_stats},
    handler::Status,
};
use procfs::{
    CpuTime, Current, CurrentSI, KernelStats, LoadAverage, Meminfo,
    process::{Process, Stat},
};
use types::{ComponentId, Timestamp};

pub use self::rates::{Meter, Traffic};

/// Sources of the status of this component.
pub struct Component {
    /// The id with which it announces itself.
    pub id: ComponentId,
    /// When it was started.
    pub started: Timestamp,
    /// Counts of its messages.
    pub traffic: Arc<Traffic>,
}

impl Component {
    /// The status `now`; what the system does not say is zero.
    pub(crate) fn status(&self, now: Timestamp) -> Status {
        let uptime_ms = now.as_millis().saturating_sub(self.started.as_millis());
        let process = Process::myself();
        let stat = process.as_ref().ok().and_then(|process| process.stat().ok());
        let process = process.and_then(|process| process.status()).ok();
        let bytes = |kib: Option<u64>| kib.unwrap_or_default() * 1024;
        let component = ComponentStats {
            uptime: u64::try_from(uptime_ms / 1000).unwrap_or_default(),
            cpu: Some(stat.map(|stat| process_time(&stat, uptime_ms)).unwrap_or_default()),
            // The closest we have to goroutines.
            goroutines: process.as_ref().map_or(0, |process| process.threads),
            memory: Some(process.map_or_else(Default::default, |process| component_stats::MemoryStats {
                memory: bytes(process.vmrss),
                swap: bytes(process.vmswap),
                heap: bytes(process.vmdata),
                stack: bytes(process.vmstk),
            })),
            ..Default::default()
        };
        let load = LoadAverage::current().map(|load| system_stats::Loadstats {
            load1: load.one,
            load5: load.five,
            load15: load.fifteen,
        });
        let system = SystemStats {
            load: Some(load.unwrap_or_default()),
            cpu: Some(KernelStats::current().map(|stats| processors(&stats.total)).unwrap_or_default()),
            memory: Some(Meminfo::current().map(|memory| system_memory(&memory)).unwrap_or_default()),
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

/// The processor time since the machine started, and the percentage that was used.
fn processors(time: &CpuTime) -> system_stats::CpuStats {
    let CpuTime { user, nice, system, idle, .. } = *time;
    // `user` and `nice` already include the time of guests.
    let others = [time.iowait, time.irq, time.softirq, time.steal];
    let all = seconds(user + nice + system + idle + others.iter().flatten().sum::<u64>());
    let idle = seconds(idle);
    let percentage = if all > 0.0 { 100.0 * (all - idle) / all } else { 0.0 };
    system_stats::CpuStats { user: seconds(user + nice), system: seconds(system), idle, percentage }
}

fn system_memory(memory: &Meminfo) -> system_stats::MemoryStats {
    let (total, available) = (memory.mem_total, memory.mem_available.unwrap_or_default());
    system_stats::MemoryStats { total, available, used: total.saturating_sub(available) }
}

/// The processor time of this process, and the percentage of one processor since it started.
fn process_time(stat: &Stat, uptime_ms: i64) -> component_stats::CpuStats {
    let (user, system) = (seconds(stat.utime), seconds(stat.stime));
    let uptime = uptime_ms as f32 / 1000.0;
    let percentage = if uptime > 0.0 { 100.0 * (user + system) / uptime } else { 0.0 };
    component_stats::CpuStats { user, system, idle: (uptime - user - system).max(0.0), percentage }
}

fn seconds(ticks: u64) -> f32 {
    ticks as f32 / procfs::ticks_per_second() as f32
}

#[cfg(test)]
mod tests {
    use procfs::{FromBufRead, FromBufReadSI, FromRead};

    use super::*;

    #[test]
    fn computes_shares_of_processors_and_memory() {
        let text = "cpu  100 100 100 700 0 0 0 0 50 50\nctxt 1\nbtime 1\nprocesses 1\n";
        let stats = KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        let time = processors(&stats.total);
        assert_eq!((time.user, time.idle, time.percentage), (2.0, 7.0, 30.0));

        let rest =
            ["Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Dirty", "Writeback"];
        let more = ["Mapped", "Slab", "Committed_AS", "VmallocTotal", "VmallocUsed", "VmallocChunk"];
        let rest: String = rest.iter().chain(&more).map(|name| format!("{name}: 0 kB\n")).collect();
        let text = format!("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n{rest}");
        let memory = system_memory(&Meminfo::from_buf_read(text.as_bytes()).unwrap());
        assert_eq!((memory.total, memory.available, memory.used), (102_400, 40_960, 61_440));
    }

    #[test]
    fn computes_the_share_of_a_process() {
        let zeros = " 0".repeat(37);
        let text = format!("1 (a) b) S 2 3 4 5 6 7 8 9 10 11 150 50{zeros}\n");
        let time = process_time(&Stat::from_read(text.as_bytes()).unwrap(), 8000);
        assert_eq!((time.user, time.system, time.idle, time.percentage), (1.5, 0.5, 6.0, 25.0));
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
