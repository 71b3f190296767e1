//! Watches whether a network's API can be used, as a connection whose state people see.

use std::time::Duration;

use futures::future::BoxFuture;
use link::connection_state::{ConnectionState, ConnectionWatch, connection_state};
use server::status::ErrorChain;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::Error;

/// Interval at which an API that can be used is asked, for each call that this takes.
const INTERVAL: Duration = Duration::from_secs(10);
/// The longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(120);
/// The pause before an API that cannot be used is asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Asks an API again and again, until it is dropped.
pub struct ApiWatch {
    connection: ConnectionWatch,
    _task: AbortOnDropHandle<()>,
}

impl ApiWatch {
    /// Asks in the background. `check` fails with the reason why the API cannot be used, after this number of calls at
    /// most.
    pub fn start(calls: usize, check: impl Fn() -> BoxFuture<'static, Result<(), Error>> + Send + 'static) -> Self {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
        let interval = INTERVAL.saturating_mul(calls).min(INTERVAL_MAX);
        let (reporter, connection) = connection_state();
        let task = async move {
            loop {
                match check().await {
                    Ok(()) => {
                        reporter.made();
                        sleep(interval).await;
                    }
                    Err(error) => {
                        let reason = reason(&error);
                        tracing::debug!(%reason, "the API of a network cannot be used");
                        reporter.lost(&reason);
                        sleep(RETRY_PAUSE.saturating_mul(calls).min(INTERVAL_MAX)).await;
                    }
                }
            }
        };
        Self { connection, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// Returns since when the API can be used, or why it cannot.
    pub fn state(&self) -> ConnectionState {
        self.connection.state()
    }
}

/// The causes of a client's error are those of libraries, so it has a text for people.
fn reason(error: &Error) -> String {
    match error {
        Error::Api { source, .. } => {
            let reason = source.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{error}: {source}{reason}")
        }
        error => ErrorChain(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_state_follows_the_answers() {
        let (usable, answer) = watch::channel(false);
        let api = ApiWatch::start(1, move || {
            let is_usable = *answer.borrow();
            Box::pin(async move { if is_usable { Ok(()) } else { Err(Error::setting("key", "is wrong")) } })
        });
        assert_eq!(api.state().failure, None, "it has not answered yet");
        let mut connected = api.connection.connected();
        sleep(RETRY_PAUSE).await;
        assert!(api.state().failure.unwrap().contains("is wrong"));
        usable.send_replace(true);
        connected.wait_for(|connected| *connected).await.unwrap();
        assert_eq!(api.state().failure, None);
        usable.send_replace(false);
        connected.wait_for(|connected| !connected).await.unwrap();
        assert!(api.state().failure.unwrap().contains("is wrong"));
    }
}
