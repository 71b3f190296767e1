//! Changes of several steps, made to their end also when their client hangs up.
//!
//! The future of a request is dropped then. A device that only the network server has kept would block its EUIs there.

use std::panic::resume_unwind;

use tracing::Instrument;

use crate::Error;

/// Makes a change in a task of its own, which ends with the last step.
pub(super) async fn uncancellable<T: Send + 'static>(
    change: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match tokio::spawn(change.in_current_span()).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The process ends, and nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    }
}
