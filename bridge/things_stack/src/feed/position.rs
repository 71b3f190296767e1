//! Positions up to which the messages of applications have been dealt with, kept on disk for the next start.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use server::private_file::write_private;
use tokio::time::sleep;
use types::Timestamp;

/// Interval at which changed positions are written.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time that The Things Stack's clock may be ahead of ours. A message from still later, such as a simulated
/// one, would hide whatever is missed after it.
const AHEAD_MAX: Duration = Duration::from_secs(300);

/// The positions of all applications.
pub(crate) struct Positions {
    file: PathBuf,
    positions: Mutex<HashMap<String, Position>>,
}

/// Times are those at which The Things Stack received messages.
#[derive(Default)]
struct Position {
    /// Number of messages in progress, by time.
    in_progress: BTreeMap<Timestamp, usize>,
    /// That of the newest message that was dealt with.
    newest: Option<Timestamp>,
    /// Time of the first connection, by our clock, which may differ.
    first_connected: Option<Timestamp>,
    /// Time after which messages may be missing.
    gap: Option<Timestamp>,
}

impl Positions {
    /// The positions in `file`, if it exists. Without them, nothing is caught up on.
    pub(crate) fn open(file: PathBuf) -> Self {
        let read = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<HashMap<String, Timestamp>>(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(error) => Err(error),
        };
        let read = read.unwrap_or_else(|error| {
            tracing::error!(
                path = %file.display(), %error,
                "cannot read up to when messages were published: what came while the bridge was down is not caught up on"
            );
            HashMap::new()
        });
        let position = |newest| Position { newest: Some(newest), ..Position::default() };
        let positions = read.into_iter().map(|(uid, newest)| (uid, position(newest))).collect();
        Self { file, positions: Mutex::new(positions) }
    }

    /// Takes note of a connection, before which messages may have been missed; returns since when. On the very first
    /// one that is `now`.
    pub(crate) fn connected(&self, uid: &str, now: Timestamp) -> Timestamp {
        let mut positions = self.positions.lock();
        let position = positions.entry(uid.to_owned()).or_default();
        position.newest = position.newest.map(|newest| newest.min(latest(now)));
        // On the very first connection nothing can be missing.
        let is_first = position.first_connected.is_none() && position.newest.is_none();
        position.first_connected.get_or_insert(now);
        let since = position.get().unwrap_or(now);
        position.gap = (!is_first).then_some(since);
        since
    }

    /// The messages before a connection have been caught up on up to a time, and later ones are still missing.
    pub(crate) fn caught_up_to(&self, uid: &str, until: Timestamp) {
        if let Some(gap) = self.positions.lock().get_mut(uid).and_then(|position| position.gap.as_mut()) {
            *gap = until.max(*gap);
        }
    }

    /// The messages before a connection have been caught up on, or never will be.
    pub(crate) fn caught_up(&self, uid: &str) {
        if let Some(position) = self.positions.lock().get_mut(uid) {
            position.gap = None;
        }
    }

    /// A message is in progress.
    pub(crate) fn begin(&self, uid: &str, received_at: Timestamp) {
        let mut positions = self.positions.lock();
        *positions.entry(uid.to_owned()).or_default().in_progress.entry(received_at).or_default() += 1;
    }

    /// A message has been dealt with, now.
    pub(crate) fn end(&self, uid: &str, received_at: Timestamp, now: Timestamp) {
        let mut positions = self.positions.lock();
        let position = positions.entry(uid.to_owned()).or_default();
        position.newest = position.newest.max(Some(received_at.min(latest(now))));
        if let Some(count) = position.in_progress.get_mut(&received_at) {
            *count -= 1;
            if *count == 0 {
                position.in_progress.remove(&received_at);
            }
        }
    }

    /// Writes the positions again and again.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut saved = HashMap::new();
        loop {
            sleep(SAVE_INTERVAL).await;
            let current = self.current();
            if current == saved {
                continue;
            }
            let (this, writing) = (self.clone(), current.clone());
            if tokio::task::spawn_blocking(move || this.write(&writing)).await.unwrap_or(false) {
                saved = current;
            }
        }
    }

    /// Writes the positions.
    pub(crate) fn save(&self) {
        self.write(&self.current());
    }

    fn current(&self) -> HashMap<String, Timestamp> {
        let positions = self.positions.lock();
        positions.iter().filter_map(|(uid, position)| Some((uid.clone(), position.get()?))).collect()
    }

    fn write(&self, positions: &HashMap<String, Timestamp>) -> bool {
        let written = serde_json::to_vec(positions).map_err(io::Error::from);
        match written.and_then(|bytes| write_private(&self.file, &bytes)) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(path = %self.file.display(), %error, "cannot write up to when messages were published");
                false
            }
        }
    }
}

impl Position {
    /// Everything before has been dealt with.
    fn get(&self) -> Option<Timestamp> {
        let oldest = self.in_progress.keys().next().copied();
        [oldest, self.gap, self.newest.or(self.first_connected)].into_iter().flatten().min()
    }
}

/// The latest time that a message can have been received at.
pub(crate) fn latest(now: Timestamp) -> Timestamp {
    Timestamp::from_nanos(now.as_nanos().saturating_add(AHEAD_MAX.as_nanos() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_position_is_behind_everything_that_is_not_finished() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("positions");
        let positions = Positions::open(file.clone());
        assert_eq!(positions.connected("a", at(99)), at(99));
        assert_eq!(positions.connected("a", at(100)), at(99));
        positions.begin("a", at(10));
        positions.end("a", at(10), at(100));
        [at(11), at(12), at(12), at(13)].iter().for_each(|time| positions.begin("a", *time));
        [at(13), at(12)].iter().for_each(|time| positions.end("a", *time, at(100)));
        assert_eq!(positions.current()["a"], at(11));
        positions.end("a", at(11), at(100));
        assert_eq!(positions.current()["a"], at(12));
        positions.end("a", at(12), at(100));
        assert_eq!(positions.current()["a"], at(13));
        positions.save();
        // After a restart, and until the gap is filled, nothing counts.
        let positions = Positions::open(file);
        assert_eq!(positions.connected("a", at(20)), at(13));
        positions.begin("a", at(20));
        positions.end("a", at(20), at(100));
        assert_eq!(positions.current()["a"], at(13));
        positions.caught_up("a");
        assert_eq!(positions.current()["a"], at(20));
    }

    /// An uplink that was missed before the second connection is older than the first live one after it.
    #[test]
    fn after_the_first_connection_nothing_may_be_missed() {
        let dir = tempfile::tempdir().unwrap();
        let positions = Positions::open(dir.path().join("positions"));
        assert_eq!(positions.connected("a", at(10)), at(10));
        assert_eq!(positions.connected("a", at(20)), at(10));
        positions.begin("a", at(21));
        positions.end("a", at(21), at(21));
        assert_eq!((positions.current()["a"], positions.connected("a", at(30))), (at(10), at(10)));
        positions.caught_up_to("a", at(15));
        assert_eq!(positions.current()["a"], at(15));
        positions.caught_up("a");
        assert_eq!(positions.current()["a"], at(21));
    }

    #[test]
    fn a_message_from_the_future_hides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("positions");
        let positions = Positions::open(file.clone());
        positions.connected("a", at(10));
        positions.begin("a", at(1_000_000));
        positions.end("a", at(1_000_000), at(20));
        assert_eq!(positions.current()["a"], latest(at(20)));
        fs::write(&file, r#"{"a": "2200-11-20T17:46:40Z"}"#).unwrap();
        assert_eq!(Positions::open(file).connected("a", at(30)), latest(at(30)));
    }
}
