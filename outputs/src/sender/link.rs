//! A connection that is made again when it is lost.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use types::Random;

use crate::metrics;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest and the longest pause between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A connection that is lost sooner counts as a failed attempt: it may be lost because of what is sent.
const LASTING: Duration = Duration::from_secs(10);

/// Connects to one server.
#[async_trait]
pub(crate) trait Connector: Send + Sync + 'static {
    type Connection: Clone + Send + Sync + 'static;

    /// Connects, so far that messages can be sent.
    async fn connect(&self) -> Result<Self::Connection, LinkError>;

    /// Waits until nothing more can be sent, and says why.
    async fn lost(&self, connection: Self::Connection) -> LinkError;
}

/// Error of a connection, with advice for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct LinkError {
    pub(crate) reason: String,
    /// Advice; none if trying again is all there is to do.
    pub(crate) advice: Option<&'static str>,
}

/// Name of an output in the log and the metrics.
#[derive(Clone)]
pub(crate) struct OutputName {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl fmt::Display for OutputName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "output.{} {}", self.kind, self.name)
    }
}

/// A connection to one server, for all workers that send there.
pub(crate) struct Link<C> {
    current: watch::Receiver<Option<C>>,
    _task: AbortOnDropHandle<()>,
}

impl<C: Clone + Send + Sync + 'static> Link<C> {
    /// Connects in the background, however long the server is away.
    pub(crate) fn start(
        connector: impl Connector<Connection = C>,
        output: OutputName,
        random: Arc<dyn Random>,
    ) -> Self {
        let (sender, current) = watch::channel(None);
        Self { current, _task: AbortOnDropHandle::new(tokio::spawn(run(connector, output, random, sender))) }
    }

    /// The connection; none while there is none.
    pub(crate) fn current(&self) -> Option<C> {
        self.current.borrow().clone()
    }

    /// Waits for a connection that can be used.
    pub(crate) async fn usable(&self, is_usable: impl Fn(&C) -> bool) -> Option<C> {
        let mut current = self.current.clone();
        // It fails only when the link has ended.
        current.wait_for(|current| current.as_ref().is_some_and(&is_usable)).await.ok()?.clone()
    }
}

async fn run<C: Connector>(
    connector: C,
    output: OutputName,
    random: Arc<dyn Random>,
    current: watch::Sender<Option<C::Connection>>,
) {
    metrics::connected(output.kind, &output.name, false);
    let (mut pause, mut is_failing) = (PAUSE_MIN, false);
    loop {
        let connected = timeout(CONNECT_TIMEOUT, connector.connect()).await;
        let error = match connected.unwrap_or_else(|_| Err(LinkError::without_advice("no answer in time"))) {
            Ok(connection) => {
                let since = Instant::now();
                current.send_replace(Some(connection.clone()));
                metrics::connected(output.kind, &output.name, true);
                tracing::info!(%output, "connected");
                let error = connector.lost(connection).await;
                current.send_replace(None);
                metrics::connected(output.kind, &output.name, false);
                if since.elapsed() > LASTING {
                    (pause, is_failing) = (PAUSE_MIN, false);
                }
                error
            }
            Err(error) => error,
        };
        report(&output, &error, is_failing);
        is_failing = true;
        let [chance] = random.array::<1>();
        sleep(pause / 2 + pause / 2 * u32::from(chance) / 255).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Only the first of several failures is more than a detail.
fn report(output: &OutputName, error: &LinkError, is_failing: bool) {
    match error.advice {
        _ if is_failing => tracing::debug!(%output, %error, "still no connection: messages wait"),
        Some(advice) => tracing::error!(%output, %error, "no connection, so messages wait: {advice}"),
        None => tracing::warn!(%output, %error, "no connection, so messages wait: trying again"),
    }
}

impl LinkError {
    pub(crate) fn without_advice(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: None }
    }
}
