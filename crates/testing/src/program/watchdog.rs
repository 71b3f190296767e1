//! Ends programs that do not end by themselves, so that no test waits for ever.

use std::{
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
};

use crate::PATIENCE;

/// Kills a process unless this is dropped in time.
pub struct Watchdog {
    _watched: Sender<()>,
}

impl Watchdog {
    /// Watches a process. Whoever waits for it, or reads what it writes, then waits no longer than that.
    pub fn of(child: &Child) -> Self {
        let (watched, is_over) = channel::<()>();
        let id = child.id().to_string();
        thread::spawn(move || {
            if is_over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        Self { _watched: watched }
    }
}

/// Returns the output of a program; kills it if it takes too long.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    child.wait_with_output().unwrap()
}
