//! Shutdown by signals: the first one drains, the second one stops at once.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// The requests of the signals so far.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Cancelled by the first signal: accept no more work, finish what was accepted.
    pub requested: CancellationToken,
    /// Cancelled by the second signal: stop now.
    pub forced: CancellationToken,
}

/// Outcome of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All accepted work is finished.
    Finished,
    /// The deadline passed.
    TimedOut,
    /// A second signal came.
    Forced,
}

impl Shutdown {
    /// Listens for `SIGTERM` and `SIGINT`; must be called in a tokio runtime.
    pub fn on_signals() -> Result<Self, Error> {
        let mut signals = Signals::new()?;
        let shutdown = Self::default();
        let Self { requested, forced } = shutdown.clone();
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!("shutting down: finishing accepted work; a second signal stops at once");
            requested.cancel();
            signals.next().await;
            forced.cancel();
        });
        Ok(shutdown)
    }

    /// Waits for `work` to finish, for `deadline` at most.
    pub async fn drain(&self, work: impl Future<Output = ()>, deadline: Duration) -> Drained {
        tokio::select! {
            biased;
            () = work => Drained::Finished,
            () = self.forced.cancelled() => Drained::Forced,
            () = tokio::time::sleep(deadline) => Drained::TimedOut,
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Error> {
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
