//! Shutdown: the first signal drains, the second stops at once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Error;

/// What the operator's signals request.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Cancelled by the first signal: accept nothing new, and finish what was accepted.
    pub requested: CancellationToken,
    /// Cancelled by the second signal: stop at once.
    pub forced: CancellationToken,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was accepted is finished.
    Finished,
    /// The deadline passed.
    TimedOut,
    /// A second signal arrived.
    Forced,
}

impl Shutdown {
    /// Handles `SIGTERM` and `SIGINT` from now on. Must be called in a tokio runtime.
    pub fn on_signals() -> Result<Self, Error> {
        let mut signals = Signals::new()?;
        let shutdown = Self::default();
        let Self { requested, forced } = shutdown.clone();
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!("shutting down; a second signal stops at once");
            requested.cancel();
            signals.next().await;
            forced.cancel();
        });
        Ok(shutdown)
    }

    /// Waits for `work` to finish what was accepted, at most until `deadline`.
    pub async fn drain(&self, work: impl Future<Output = ()>, deadline: Duration) -> Drained {
        tokio::select! {
            biased;
            () = work => Drained::Finished,
            () = self.forced.cancelled() => Drained::Forced,
            () = tokio::time::sleep(deadline) => Drained::TimedOut,
        }
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, Error> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // If the handler cannot be installed, Ctrl-C ends the process by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
