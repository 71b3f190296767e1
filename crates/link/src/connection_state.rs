//! The state of a connection: for those who wait for it, and for people, who want to know since when and why.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// Maximum number of characters of a reason that are kept.
const REASON_CHARS_MAX: usize = 400;

/// The state of a connection at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionState {
    /// True while it is made.
    pub is_connected: bool,
    /// The time for which that has been so.
    pub lasted: Duration,
    /// The reason why the last connection or attempt ended; none if there is a connection, or the first is being made.
    pub failure: Option<String>,
}

/// Shows the state of a connection. Clones show the same one.
#[derive(Clone)]
pub struct ConnectionWatch {
    connected: watch::Receiver<bool>,
    notes: Arc<Mutex<Notes>>,
}

/// Says what the state of a connection is.
pub struct ConnectionReporter {
    connected: watch::Sender<bool>,
    notes: Arc<Mutex<Notes>>,
}

struct Notes {
    changed: Instant,
    failure: Option<String>,
}

/// A connection that is not made yet.
pub fn connection_state() -> (ConnectionReporter, ConnectionWatch) {
    let (sender, connected) = watch::channel(false);
    let notes = Arc::new(Mutex::new(Notes { changed: Instant::now(), failure: None }));
    (ConnectionReporter { connected: sender, notes: notes.clone() }, ConnectionWatch { connected, notes })
}

impl ConnectionWatch {
    /// Returns a receiver that is true while there is a connection.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Returns true while there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Returns the state at this moment, in which all parts fit together.
    pub fn state(&self) -> ConnectionState {
        let notes = self.notes.lock();
        let is_connected = self.is_connected();
        let failure = notes.failure.clone().filter(|_| !is_connected);
        ConnectionState { is_connected, lasted: notes.changed.elapsed(), failure }
    }
}

impl ConnectionReporter {
    /// There is a connection.
    pub fn made(&self) {
        if !*self.connected.borrow() {
            let mut notes = self.notes.lock();
            *notes = Notes { changed: Instant::now(), failure: None };
            self.connected.send_replace(true);
        }
    }

    /// The connection or an attempt ended, for this reason. Returns true if there was a connection.
    pub fn lost(&self, reason: &str) -> bool {
        let mut notes = self.notes.lock();
        let was_connected = self.connected.send_replace(false);
        notes.failure = Some(reason.chars().take(REASON_CHARS_MAX).collect());
        if was_connected {
            notes.changed = Instant::now();
        }
        was_connected
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn state(is_connected: bool, secs: u64, failure: Option<&str>) -> ConnectionState {
        ConnectionState { is_connected, lasted: Duration::from_secs(secs), failure: failure.map(str::to_owned) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_has_its_time_and_the_last_reason_why_there_is_no_connection() {
        let (reporter, watch) = connection_state();
        assert_eq!(watch.state(), state(false, 0, None));
        advance(Duration::from_secs(5)).await;
        assert!(!reporter.lost("refused"));
        assert_eq!(watch.state(), state(false, 5, Some("refused")));
        reporter.made();
        advance(Duration::from_secs(7)).await;
        reporter.made();
        assert_eq!(watch.state(), state(true, 7, None));
        assert!(reporter.lost("closed"));
        advance(Duration::from_secs(1)).await;
        assert!(!reporter.lost(&"x".repeat(1000)));
        let state = watch.state();
        assert_eq!((state.lasted, state.failure.unwrap().len()), (Duration::from_secs(1), REASON_CHARS_MAX));
    }
}
