//! Reads a stream over one connection after the other.

use redis::{RedisError, RedisResult};
use tokio_util::sync::CancellationToken;

use super::{advice::advice, node::Node};
use crate::{backoff::Backoff, connection_state::ConnectionReporter};

/// A reader of a stream.
pub(super) trait Reading: Send {
    /// The server.
    fn node(&self) -> &Node;

    /// Returns the state of the reader: true while the stream is being read.
    fn subscribed(&self) -> &ConnectionReporter;

    /// Reads until something fails.
    fn serve(&mut self) -> impl Future<Output = RedisResult<()>> + Send;
}

/// Reads until it is told to end, and connects again after each failure.
pub(super) async fn read(mut reading: impl Reading, end: CancellationToken) {
    let (mut backoff, mut is_failing) = (Backoff::default(), false);
    loop {
        let failed = tokio::select! {
            failed = reading.serve() => failed,
            () = end.cancelled() => return,
        };
        let reason = failed.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if reading.subscribed().lost(&reason) {
            backoff.reset();
            is_failing = false;
        }
        if let Err(error) = failed {
            report(&error, reading.node(), is_failing);
        }
        is_failing = true;
        tokio::select! {
            () = backoff.pause() => {}
            () = end.cancelled() => return,
        }
    }
}

/// Logs why reading ended; repeated failures only in detail.
fn report(error: &RedisError, node: &Node, is_failing: bool) {
    let redis = &node.url;
    match advice(error) {
        _ if is_failing => tracing::debug!(redis, %error, "still cannot read the stream"),
        Some(advice) => tracing::error!(redis, %error, "cannot read the stream: {advice}"),
        None => tracing::warn!(redis, %error, "cannot read the stream: trying again"),
    }
}
