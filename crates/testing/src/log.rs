//! The log of a test.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tracing::{
    Dispatch, Level,
    subscriber::{DefaultGuard, set_default},
};

/// Maximum time until a line. Some come only after several attempts of a client.
const LINE_WAIT_MAX: Duration = Duration::from_secs(180);

/// The log of a test's thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

/// Logging into a [`Log`], which ends when this is dropped.
pub struct Logging {
    _subscriber: DefaultGuard,
    _second: Dispatch,
}

impl Log {
    /// Keeps what this thread logs from now on, on this level and above.
    pub fn start(level: Level) -> (Self, Logging) {
        // With a single subscriber, `tracing` asks only the thread that logs an event first whether anybody wants it.
        let second = Dispatch::new(tracing_subscriber::registry());
        let log = Self::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt().with_max_level(level).with_ansi(false);
        let subscriber = set_default(lines.with_writer(move || writer.clone()).finish());
        (log, Logging { _subscriber: subscriber, _second: second })
    }

    /// Waits for a line with this text, and returns everything that was logged.
    ///
    /// # Panics
    ///
    /// If the line does not come.
    pub async fn until(&self, text: &str) -> String {
        let waiting = async {
            while !self.text().contains(text) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LINE_WAIT_MAX, waiting).await.unwrap_or_else(|_| panic!("no line with {text:?} in: {}", self.text()));
        self.text()
    }

    /// Everything that was logged.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
