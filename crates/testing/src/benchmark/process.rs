//! Resource use of processes, according to the kernel.

use std::{fs, time::Duration};

/// Clock ticks per second in /proc, the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time that a process has used so far, user and system.
pub fn cpu_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The numbers start after the name of the program in parentheses; the first is field 3.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
    Duration::from_secs_f64(ticks / TICKS_PER_SECOND)
}

/// Resident memory of this process in MiB.
pub fn resident_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Minor page faults of this process so far.
pub fn faults() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}
