//! Resources of another process, according to the kernel.

use std::{fmt, fs};

use crate::server_process::ServerProcess;

/// Memory and file descriptors of the server.
pub(crate) struct Usage {
    resident_mb: f64,
    peak_mb: f64,
    descriptors: usize,
}

impl Usage {
    pub(crate) fn of(server: &ServerProcess) -> Self {
        let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let megabytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
        };
        let descriptors = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
        Self { resident_mb: megabytes("VmRSS:"), peak_mb: megabytes("VmHWM:"), descriptors }
    }

    /// Describes what each of this many clients added since `before`.
    pub(crate) fn per_client(&self, before: &Self, clients: usize) -> String {
        let bytes = (self.resident_mb - before.resident_mb) * 1e6 / clients as f64;
        let descriptors = (self.descriptors - before.descriptors) as f64 / clients as f64;
        format!("{:.1} kB, {descriptors:.2} descriptors", bytes / 1000.0)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.0} MB, at most {:.0}; {} descriptors", self.resident_mb, self.peak_mb, self.descriptors)
    }
}
