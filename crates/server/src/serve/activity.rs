//! Activity of a connection: its running requests, and the responses that its client reads.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, interval},
};

/// Number of checks whether a client reads, within the time that it may take.
const CHECKS: u32 = 4;

/// Activity of a connection, which decides whether it may stay open.
pub(super) struct Activity {
    state: Mutex<ConnectionState>,
    closed: Notify,
}

struct ConnectionState {
    /// Requests whose responses have not begun.
    running: usize,
    /// Time of its last activity.
    last: Instant,
    responses: HashMap<u64, Progress>,
    next: u64,
}

/// Progress of the client in reading a response.
struct Progress {
    /// Number of its parts that have been handed over and not been sent.
    parts: usize,
    /// True if its client waits for the service.
    is_wanted: bool,
    since: Instant,
}

/// A request that runs, until it is dropped.
pub(super) struct Running(Arc<Activity>);

/// A response that is being sent, until it is dropped.
pub(super) struct Sending {
    activity: Arc<Activity>,
    number: u64,
}

impl Activity {
    /// A connection that was just opened.
    pub(super) fn new() -> Arc<Self> {
        let state = ConnectionState { running: 0, last: Instant::now(), responses: HashMap::new(), next: 0 };
        Arc::new(Self { state: Mutex::new(state), closed: Notify::new() })
    }

    /// Notes that a request has begun.
    pub(super) fn begin_request(self: &Arc<Self>) -> Running {
        let mut state = self.state.lock();
        state.running += 1;
        state.last = Instant::now();
        Running(Arc::clone(self))
    }

    /// Notes that a response has begun.
    pub(super) fn begin_response(self: &Arc<Self>) -> Sending {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.responses.insert(number, Progress { parts: 0, is_wanted: false, since: Instant::now() });
        Sending { activity: Arc::clone(self), number }
    }

    /// Returns the time since its last activity; `None` while a request runs.
    pub(super) fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        (state.running == 0).then(|| state.last.elapsed())
    }

    /// Has the connection closed.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Waits until a response has not been read any further for `limit`, although more of it is there.
    pub(super) async fn unread_for(&self, limit: Duration) {
        let mut checks = interval((limit / CHECKS).max(Duration::from_millis(1)));
        while !self.state.lock().responses.values().any(|response| response.is_unread_for(limit)) {
            checks.tick().await;
        }
    }
}

impl Progress {
    fn is_unread_for(&self, limit: Duration) -> bool {
        (self.parts > 0 || !self.is_wanted) && self.since.elapsed() >= limit
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running -= 1;
        state.last = Instant::now();
    }
}

impl Sending {
    /// Notes that a part of the response was handed over, to be sent.
    pub(super) fn note_part(&self) {
        self.note(|progress| {
            progress.parts += 1;
            progress.is_wanted = false;
        });
    }

    /// Notes that a part was sent, or will not be.
    pub(super) fn note_sent(&self) {
        self.note(|progress| progress.parts -= 1);
    }

    /// Notes that the client has read everything that there is so far.
    pub(super) fn note_wanted(&self) {
        self.note(|progress| progress.is_wanted = true);
    }

    fn note(&self, note: impl FnOnce(&mut Progress)) {
        let now = Instant::now();
        let mut state = self.activity.state.lock();
        state.last = now;
        if let Some(progress) = state.responses.get_mut(&self.number) {
            progress.since = now;
            note(progress);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.responses.remove(&self.number);
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    async fn is_cut(activity: &Activity) -> bool {
        tokio::time::timeout(2 * LIMIT, activity.unread_for(LIMIT)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_cut_while_something_waits_to_be_read() {
        let activity = Activity::new();
        assert!(!is_cut(&activity).await, "there is no response");
        let sending = activity.begin_response();
        assert!(is_cut(&activity).await, "nobody asks for it");
        sending.note_wanted();
        assert!(!is_cut(&activity).await, "the service has nothing to send");
        sending.note_part();
        sending.note_wanted();
        assert!(is_cut(&activity).await, "a part was not sent");
        sending.note_sent();
        assert!(!is_cut(&activity).await, "everything was sent");
        drop(sending);
        assert!(!is_cut(&activity).await, "the response has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_read_slowly_is_not_cut() {
        let activity = Activity::new();
        let sending = activity.begin_response();
        let read = async {
            for _ in 0..20 {
                tokio::time::sleep(LIMIT / 2).await;
                sending.note_part();
                sending.note_sent();
            }
        };
        tokio::select! { () = read => {}, () = activity.unread_for(LIMIT) => panic!("it was cut") }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_no_request_runs() {
        let activity = Activity::new();
        let running = activity.begin_request();
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.idle(), None);
        drop(running);
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.idle(), Some(LIMIT));
    }
}
