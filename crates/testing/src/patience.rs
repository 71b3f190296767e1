//! Maximum times for tests to wait.

use std::time::Duration;

/// Long enough for anything that happens at all; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
///
/// # Panics
///
/// If it does not happen in time.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}
