//! Up to when the messages of applications have been dealt with, kept on disk for the next start.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use server::private_file::write_private;
use tokio::time::sleep;
use types::Timestamp;

/// How often positions are written, if they have changed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The positions of all applications.
pub(super) struct Positions {
    file: PathBuf,
    positions: Mutex<HashMap<String, Position>>,
}

/// Times are those at which The Things Stack received messages.
#[derive(Default)]
struct Position {
    /// How many messages of a time are in progress.
    in_progress: BTreeMap<Timestamp, usize>,
    /// That of the newest message that was dealt with.
    newest: Option<Timestamp>,
    /// When the first connection was made, by our clock, which may differ.
    first_connected: Option<Timestamp>,
    /// Since when messages may be missing.
    gap: Option<Timestamp>,
}

impl Positions {
    /// The positions in `file`, if it exists. Without them, nothing is caught up on.
    pub(super) fn open(file: PathBuf) -> Self {
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
    pub(super) fn connected(&self, uid: &str, now: Timestamp) -> Timestamp {
        let mut positions = self.lock();
        let position = positions.entry(uid.to_owned()).or_default();
        position.first_connected.get_or_insert(now);
        let since = position.get().unwrap_or(now);
        // On the first connection nothing can be missing.
        position.gap = position.newest.map(|_| since);
        since
    }

    /// The messages before a connection have been caught up on, or never will be.
    pub(super) fn caught_up(&self, uid: &str) {
        if let Some(position) = self.lock().get_mut(uid) {
            position.gap = None;
        }
    }

    /// A message is in progress.
    pub(super) fn begin(&self, uid: &str, received_at: Timestamp) {
        let mut positions = self.lock();
        *positions.entry(uid.to_owned()).or_default().in_progress.entry(received_at).or_default() += 1;
    }

    /// A message has been dealt with.
    pub(super) fn end(&self, uid: &str, received_at: Timestamp) {
        let mut positions = self.lock();
        let position = positions.entry(uid.to_owned()).or_default();
        position.newest = position.newest.max(Some(received_at));
        if let Some(count) = position.in_progress.get_mut(&received_at) {
            *count -= 1;
            if *count == 0 {
                position.in_progress.remove(&received_at);
            }
        }
    }

    /// Writes the positions again and again.
    pub(super) async fn run(self: Arc<Self>) {
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
    pub(super) fn save(&self) {
        self.write(&self.current());
    }

    fn current(&self) -> HashMap<String, Timestamp> {
        let positions = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Position>> {
        // A panic elsewhere leaves the positions usable.
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Position {
    /// Everything before has been dealt with.
    fn get(&self) -> Option<Timestamp> {
        let oldest = self.in_progress.keys().next().copied();
        [oldest, self.gap, self.newest.or(self.first_connected)].into_iter().flatten().min()
    }
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
        positions.end("a", at(10));
        [at(11), at(12), at(12), at(13)].iter().for_each(|time| positions.begin("a", *time));
        [at(13), at(12)].iter().for_each(|time| positions.end("a", *time));
        assert_eq!(positions.current()["a"], at(11));
        positions.end("a", at(11));
        assert_eq!(positions.current()["a"], at(12));
        positions.end("a", at(12));
        assert_eq!(positions.current()["a"], at(13));
        positions.save();
        // After a restart, and until the gap is filled, nothing counts.
        let positions = Positions::open(file);
        assert_eq!(positions.connected("a", at(20)), at(13));
        positions.begin("a", at(20));
        positions.end("a", at(20));
        assert_eq!(positions.current()["a"], at(13));
        positions.caught_up("a");
        assert_eq!(positions.current()["a"], at(20));
    }
}
