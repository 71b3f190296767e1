//! Resource use of this process, according to the kernel.

/// Resident memory in MiB.
pub fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Minor page faults so far.
pub fn faults() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}
