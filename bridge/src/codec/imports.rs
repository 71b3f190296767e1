//! Objects imported from a network's API: refreshed, and kept on disk for a start without the API.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use server::{private_file::write_private, status::ErrorChain};
use tokio::time::sleep;
use types::Kinded;

use super::single_flight::SingleFlight;
use crate::metrics;

/// Maximum time that a changed script may take to load before it is used.
pub const LOAD_WAIT: Duration = Duration::from_secs(10);

/// Imported objects, in memory and on disk.
pub struct Imports<K> {
    /// Looks up what is not known yet.
    pub single_flight: SingleFlight,
    known: Mutex<K>,
    file: PathBuf,
    is_file_outdated: AtomicBool,
    /// Held while the file is written, so that nobody replaces it with older contents.
    writing: Mutex<()>,
}

/// Imported objects that can be written to a file.
pub trait Export: Send + 'static {
    /// Copies what the file needs, and returns a function that serializes it later, without the lock.
    fn export(&self) -> impl FnOnce() -> serde_json::Result<Vec<u8>> + use<Self>;
}

impl<K: Export> Imports<K> {
    /// Takes what `file` has as `known`.
    pub fn new(single_flight: SingleFlight, known: K, file: PathBuf) -> Self {
        let known = Mutex::new(known);
        Self { single_flight, known, file, is_file_outdated: AtomicBool::new(false), writing: Mutex::default() }
    }

    /// Locks the imported objects.
    pub fn lock(&self) -> MutexGuard<'_, K> {
        self.known.lock()
    }

    /// Marks the file as outdated if `is_changed`. The caller holds the lock of the objects.
    pub fn changed(&self, is_changed: bool) {
        self.is_file_outdated.fetch_or(is_changed, Ordering::AcqRel);
    }

    /// Refreshes the objects at an interval, and saves them. `codecs` is the network's word for codecs, for the log.
    pub async fn follow<F: Future<Output = client::Result<()>>>(
        self: &Arc<Self>,
        codecs: &str,
        refresh: impl Fn() -> F,
    ) {
        let (network, interval) = (self.single_flight.api.network, self.single_flight.limits.refused_for);
        let mut is_failing = false;
        loop {
            sleep(interval).await;
            let refreshed = refresh().await;
            match &refreshed {
                Ok(()) if is_failing => tracing::info!("{network}'s API can be used again"),
                Ok(()) => {}
                Err(error) => {
                    metrics::api_failed(error.kind());
                    if !is_failing {
                        tracing::warn!(error = %ErrorChain(error), "cannot refresh {codecs} from {network}'s API: using the last ones");
                    }
                }
            }
            is_failing = refreshed.is_err();
            self.save().await;
        }
    }

    /// Writes the objects to disk if they have changed.
    pub async fn save(self: &Arc<Self>) {
        let this = self.clone();
        // Many devices take a while to write.
        match tokio::task::spawn_blocking(move || this.write()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(path = %self.file.display(), %error, "cannot write the cache"),
            Err(error) => tracing::error!(%error, "writing the cache panicked"),
        }
    }

    /// Writes the file in one step; only its owner may read it.
    fn write(&self) -> io::Result<()> {
        let _writing = self.writing.lock();
        if !self.is_file_outdated.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let to_json = self.lock().export();
        let written = to_json().map_err(io::Error::from).and_then(|json| write_private(&self.file, &json));
        self.changed(written.is_err());
        written
    }
}

/// Reads a file of imports. Returns none if it cannot be read or used: everything is fetched again then.
pub fn read<T: DeserializeOwned>(file: &Path, is_readable: impl FnOnce(&T) -> bool) -> Option<T> {
    let contents = match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => Err(error),
    };
    match contents {
        Ok(contents) if is_readable(&contents) => return Some(contents),
        Ok(_) => tracing::info!(path = %file.display(), "the cache is of another version: importing again"),
        Err(error) => tracing::warn!(path = %file.display(), %error, "cannot read the cache: importing again"),
    }
    None
}
