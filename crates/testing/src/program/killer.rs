//! Kills a process at one of its system calls, with `strace`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
};

const PROGRAM: &str = "strace";

/// Watches a process, and kills it right before one of its system calls.
pub struct Killer(Child);

impl Killer {
    /// Kills a running process before it makes a system call with one of these names, separated by commas, for the
    /// `number`th time in one of its threads; the first has the number 1. `None` when the test is skipped.
    ///
    /// A name that begins with `?` need not be known on this processor.
    pub fn attach(process: &Child, calls: &str, number: usize) -> Option<Self> {
        let missing = || crate::skip("strace is missing", "install it, on Debian by `apt-get install strace`");
        if !crate::programs_may_run() {
            missing();
            return None;
        }
        let (traced, killed) = (format!("trace={calls}"), format!("inject={calls}:signal=KILL:when={number}"));
        let mut command = Command::new(PROGRAM);
        command.args(["-f", "-o", "/dev/null", "-e", &traced, "-e", &killed, "-p", &process.id().to_string()]);
        let Ok(mut strace) = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() else {
            missing();
            return None;
        };
        let mut lines = BufReader::new(strace.stderr.take().unwrap()).lines().map_while(Result::ok);
        let is_attached = lines.any(|line| line.contains(" attached"));
        // It would end if it could not write.
        thread::spawn(move || lines.for_each(drop));
        let killer = Self(strace);
        if !is_attached {
            // Containers and kernels may forbid it, whatever is installed.
            crate::report_skipped("no process to kill", "run the test where `strace -p` is permitted");
            return None;
        }
        Some(killer)
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
