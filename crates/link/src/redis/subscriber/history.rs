//! Says loudly when a stream is too short: entries leave it before they are read.

use super::super::stream::Progress;
use crate::metrics;

/// A stream that keeps fewer entries is too short for a bridge that restarts.
const LENGTH_MIN: u64 = 1000;
const ADVICE: &str = "set `device_event_log_max_history` in ChirpStack's [monitoring] to 100000";

/// Entries that a stream has lost, as far as is known.
#[derive(Default)]
pub(super) struct History {
    /// Number of entries that had left unread when the group had last read all others.
    unread: Option<u64>,
    has_warned: bool,
}

impl History {
    /// Takes a look before anything is read. Returns the number of entries that left while nobody read, or earlier.
    pub(super) fn start(&mut self, progress: Progress) -> u64 {
        self.check_length(progress);
        let (Some(added), Some(read)) = (progress.added, progress.read) else { return 0 };
        let has_gap = progress.length > 0 && progress.first > progress.delivered;
        let lost = added.saturating_sub(progress.length).saturating_sub(read);
        if has_gap && self.unread.is_none() { self.lose(lost) } else { 0 }
    }

    /// Takes a look in between. Returns the number of entries that have left unread since the last look.
    pub(super) fn look(&mut self, progress: Progress) -> u64 {
        self.check_length(progress);
        let (Some(added), Some(read)) = (progress.added, progress.read) else { return 0 };
        // Otherwise there are entries that can still be read.
        if progress.delivered != progress.last {
            return 0;
        }
        let unread = added.saturating_sub(read);
        let before = self.unread.replace(unread).unwrap_or(unread);
        self.lose(unread.saturating_sub(before))
    }

    /// Counts entries that left the stream before they were dealt with.
    pub(super) fn lose(&self, lost: u64) -> u64 {
        if lost > 0 {
            tracing::error!(lost, "events left the Redis stream before they were read: {ADVICE}");
            metrics::lost(lost);
        }
        lost
    }

    fn check_length(&mut self, progress: Progress) {
        let is_trimmed = progress.added.is_some_and(|added| added > progress.length);
        let is_short = is_trimmed && progress.length < LENGTH_MIN;
        if is_short && !self.has_warned {
            let events = progress.length;
            tracing::error!(events, "the Redis stream is too short; what comes while no bridge runs is lost: {ADVICE}");
        }
        self.has_warned = is_short;
    }
}

#[cfg(test)]
mod tests {
    use testing::RedisProcess;

    use super::{
        super::super::{node::Node, settings::StreamSettings, stream::Stream},
        *,
    };

    /// The counts of a real Redis.
    #[tokio::test]
    async fn a_stream_that_is_too_short_is_noticed() {
        let Some(redis) = RedisProcess::start() else { return };
        let settings = StreamSettings { url: redis.url(), ..StreamSettings::default() };
        let node = Node::of_stream(&settings, "test").unwrap();
        let mut stream = Stream::open(&node, &settings, "events", "me").await.unwrap();
        let add = |count| {
            for _ in 0..count {
                redis.call(&[b"XADD", b"events", b"MAXLEN", b"10", b"*", b"up", b"x"]);
            }
        };
        stream.create_group().await.unwrap();
        add(5);
        let mut history = History::default();
        assert_eq!(history.start(stream.progress().await.unwrap()), 0);
        assert_eq!(stream.read_new(100).await.unwrap().len(), 5);
        assert_eq!(history.look(stream.progress().await.unwrap()), 0);
        add(200);
        assert_eq!(history.look(stream.progress().await.unwrap()), 0);
        assert_eq!(stream.read_new(100).await.unwrap().len(), 10);
        assert_eq!(history.look(stream.progress().await.unwrap()), 190);
        add(100);
        assert!(History::default().start(stream.progress().await.unwrap()) >= 90);
    }

    fn at(added: u64, read: u64) -> Progress {
        let (last, delivered) = ((added, 0), (added, 0));
        Progress { length: 10, added: Some(added), read: Some(read), first: (added - 9, 0), last, delivered }
    }

    #[test]
    fn counts_what_left_unread_since_the_last_look() {
        let mut history = History::default();
        for (progress, lost) in [(at(30, 20), 0), (at(35, 25), 0), (at(235, 35), 190), (at(240, 40), 0)] {
            assert_eq!(history.look(progress), lost, "{progress:?}");
        }
        // Some can still be read.
        assert_eq!(history.look(Progress { delivered: (1, 0), ..at(250, 45) }), 0);
        // As Redis 6 answers.
        assert_eq!(history.look(Progress { added: None, read: None, ..at(300, 45) }), 0);
    }

    #[test]
    fn counts_what_left_while_nobody_read() {
        let progress = Progress { delivered: (30, 0), ..at(130, 30) };
        assert_eq!(History::default().start(progress), 90);
        assert_eq!(History::default().start(at(130, 130)), 0);
        assert_eq!(History::default().start(Progress { delivered: (125, 0), ..at(130, 125) }), 0);
    }
}
