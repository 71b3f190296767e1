//! Requirements on the machine: descriptors, and processors for the server and for the bench.

use std::{env, process::Command};

/// As many as the packaged service has.
const DESCRIPTORS: u32 = 65_536;

/// Allows this process, and the servers that it starts, as many descriptors as the packaged service has. With
/// `HOSTILE_CORES=1` this process stays on the second processor.
pub(crate) fn prepare() {
    let id = std::process::id().to_string();
    let limit = format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}");
    // Without the right to that, the limit of this process has to do.
    runs("prlimit", &["--pid", &id, &limit]);
    if has_own_cores() {
        assert!(runs("taskset", &["--all-tasks", "--cpu-list", "--pid", "1", &id]));
    }
}

/// Returns the command that runs the server: with `HOSTILE_CORES=1`, it stays on the first processor.
pub(crate) fn server_command() -> &'static [&'static str] {
    if has_own_cores() { &["taskset", "--cpu-list", "0"] } else { &[] }
}

/// With `HOSTILE_CORES=1`, lets the neighbour's clients go before the attackers of this thread: they share a processor
/// here, which says nothing of the server.
pub(crate) fn yield_to_others() {
    if has_own_cores() {
        // On Linux, this is the priority of the calling thread.
        rustix::process::setpriority_process(None, 15).unwrap();
    }
}

fn has_own_cores() -> bool {
    let set = env::var_os("HOSTILE_CORES");
    set.is_some_and(|value| value == "1")
}

fn runs(command: &str, arguments: &[&str]) -> bool {
    Command::new(command).args(arguments).output().is_ok_and(|output| output.status.success())
}
