//! Resources of the server, according to the kernel.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::server_process::ServerProcess;

/// Interval at which disk and descriptors are read.
const PERIOD: Duration = Duration::from_millis(300);

/// The most that a server takes while this is watched.
pub(crate) struct Watch {
    process: Process,
    ended: Arc<AtomicBool>,
    watching: JoinHandle<Most>,
}

/// Memory, disk and file descriptors of a server at most.
#[derive(Clone, Copy, Default)]
pub(crate) struct Most {
    pub(crate) memory_mb: f64,
    pub(crate) disk_mb: f64,
    pub(crate) descriptors: usize,
}

#[derive(Clone)]
struct Process {
    id: u32,
    dir: PathBuf,
}

impl Watch {
    pub(crate) fn start(server: &ServerProcess) -> Self {
        let process = Process { id: server.id(), dir: server.dir().to_owned() };
        // Makes the kernel count the most memory from now on.
        fs::write(format!("/proc/{}/clear_refs", process.id), "5").unwrap();
        let ended = Arc::<AtomicBool>::default();
        let watching = thread::spawn({
            let (process, ended) = (process.clone(), Arc::clone(&ended));
            move || {
                let mut most = Most::default();
                while !ended.load(Ordering::Relaxed) {
                    most.take(&process);
                    #[expect(clippy::disallowed_methods, reason = "no event tells that a process has grown")]
                    thread::sleep(PERIOD);
                }
                most.take(&process);
                most
            }
        });
        Self { process, ended, watching }
    }

    /// Resident memory now; `None` if the server has ended.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        self.process.status_mb("VmRSS:")
    }

    /// The disk that it uses now.
    pub(crate) fn disk_mb(&self) -> f64 {
        bytes(&self.process.dir) as f64 / 1e6
    }

    pub(crate) fn end(self) -> Most {
        self.ended.store(true, Ordering::Relaxed);
        self.watching.join().unwrap()
    }
}

impl Most {
    fn take(&mut self, process: &Process) {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.id)).map_or(0, Iterator::count);
        let memory_mb = process.status_mb("VmHWM:").unwrap_or_default();
        *self = Self {
            memory_mb: self.memory_mb.max(memory_mb),
            disk_mb: self.disk_mb.max(bytes(&process.dir) as f64 / 1e6),
            descriptors: self.descriptors.max(descriptors),
        };
    }
}

impl Process {
    /// A line of its status in megabytes; `None` if it has ended.
    fn status_mb(&self, name: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? * 1024.0 / 1e6)
    }
}

/// The size of all files below `dir`.
fn bytes(dir: &Path) -> u64 {
    let sizes = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        // A file may be gone before it is looked at.
        match entry.metadata().ok()? {
            found if found.is_dir() => Some(bytes(&entry.path())),
            found => Some(found.len()),
        }
    };
    fs::read_dir(dir).map_or(0, |entries| entries.filter_map(sizes).sum())
}
