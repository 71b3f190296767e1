//! Notices deletions that were interrupted, so that they are completed without a restart.

use tokio::sync::Notify;

/// The interrupted deletions of this process.
#[derive(Debug, Default)]
pub(super) struct Interrupted(Notify);

/// A deletion that has begun. If it is dropped before it has ended, as when the client hangs up, it counts as
/// interrupted.
pub(super) struct RunningDeletion<'a> {
    interrupted: &'a Interrupted,
    has_ended: bool,
}

impl Interrupted {
    pub(super) fn begin(&self) -> RunningDeletion<'_> {
        RunningDeletion { interrupted: self, has_ended: false }
    }

    /// Notes that something else was interrupted, which is completed beside deletions.
    pub(super) fn note(&self) {
        self.0.notify_one();
    }

    /// Waits for an interruption, or returns at once if there was one since the last call.
    pub(super) async fn wait(&self) {
        self.0.notified().await;
    }
}

impl RunningDeletion<'_> {
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for RunningDeletion<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.interrupted.0.notify_one();
        }
    }
}
