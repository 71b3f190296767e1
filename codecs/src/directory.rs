//! The codecs of a directory, read again when its files change.

mod files;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use runtime::Pool;
use server::status::ErrorChain;
use tokio::{
    sync::Mutex as AsyncMutex,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use self::files::{CodecFile, Stamp};
use crate::{Error, OpenError, Settings, codec::Codec, metrics, name::CodecName};

/// Number of codecs of the directory loaded at once. One that is saved over HTTP waits behind them.
const LOADS_MAX: usize = 4;

/// A codec whose file has changed, with the version that is used so far.
type ChangedCodec = (CodecName, Option<Option<Stamp>>, CodecFile);

/// Keeps the codecs of a directory up to date with its files.
pub(crate) struct CodecDirectory {
    path: PathBuf,
    pool: Arc<Pool>,
    codecs_max: usize,
    refresh_interval: Duration,
    known: Mutex<KnownCodecs>,
    /// Held while the directory is read or changed.
    changing: AsyncMutex<()>,
}

#[derive(Default)]
struct KnownCodecs {
    codecs: BTreeMap<CodecName, CodecEntry>,
    /// Reason why the directory could not be read.
    problem: Option<String>,
}

struct CodecEntry {
    /// `None` if no version of the file could be read.
    codec: Option<Arc<Codec>>,
    /// `None` if the file could not be read or loaded for now, so that it is tried again.
    stamp: Option<Stamp>,
    /// Reason why the file's newest text is not used.
    problem: Option<String>,
}

/// A codec in a list.
pub(crate) struct Listed {
    pub(crate) name: CodecName,
    /// Reason why the codec cannot be used, or why an older version of it is.
    pub(crate) problem: Option<String>,
}

impl CodecEntry {
    /// Returns true if there is a codec that can be used, as far as that was tried.
    fn works(&self) -> bool {
        self.codec.as_ref().is_some_and(|codec| codec.problem().is_none())
    }
}

impl CodecDirectory {
    /// Reads the directory that the settings name. Codecs are loaded later.
    pub(crate) fn open(settings: &Settings, pool: Arc<Pool>) -> Result<Self, OpenError> {
        let directory = Self {
            path: settings.dir.clone().ok_or(OpenError::NoDirectory)?,
            pool,
            codecs_max: settings.codecs_max,
            refresh_interval: Duration::from_millis(settings.refresh_interval_ms.max(1)),
            known: Mutex::default(),
            changing: AsyncMutex::new(()),
        };
        let found = directory.scan(&BTreeMap::new())?;
        for (name, found) in found {
            let entry = directory.entry(&name, found);
            directory.insert(name, entry);
        }
        directory.count();
        Ok(directory)
    }

    /// The codec of this name.
    pub(crate) fn get(&self, name: &CodecName) -> Result<Arc<Codec>, Error> {
        let known = self.known.lock();
        let entry = known.codecs.get(name).ok_or_else(|| Error::not_found(name))?;
        entry.codec.clone().ok_or_else(|| {
            let problem = entry.problem.clone().unwrap_or_default();
            Error::Unreadable { name: name.to_string(), problem }
        })
    }

    /// All codecs in order of their names.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let listed = |(name, entry): (&CodecName, &CodecEntry)| {
            let cannot_load = || entry.codec.as_ref()?.problem();
            Listed { name: name.clone(), problem: entry.problem.clone().or_else(cannot_load) }
        };
        self.known.lock().codecs.iter().map(listed).collect()
    }

    /// Saves a codec that can be loaded; true if it is new.
    pub(crate) async fn put(&self, name: CodecName, text: String) -> Result<bool, Error> {
        let codec = Arc::new(Codec::new(name.clone(), text, self.pool.clone()));
        codec.check().await?;
        let _changing = self.changing.lock().await;
        let is_new = !self.known.lock().codecs.contains_key(&name);
        if is_new && self.known.lock().codecs.len() >= self.codecs_max {
            return Err(Error::Full(self.codecs_max));
        }
        let (path, saved) = (self.path.join(name.file_name()), codec.clone());
        let stamp = blocking(move || files::write(&path, saved.text())).await.map_err(Error::Change)?;
        tracing::info!(codec = %name, is_new, "saved a codec");
        self.insert(name, CodecEntry { codec: Some(codec), stamp: Some(stamp), problem: None });
        self.count();
        Ok(is_new)
    }

    /// Deletes a codec and its file.
    pub(crate) async fn delete(&self, name: &CodecName) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        if !self.known.lock().codecs.contains_key(name) {
            return Err(Error::not_found(name));
        }
        let path = self.path.join(name.file_name());
        blocking(move || files::remove(&path)).await.map_err(Error::Change)?;
        tracing::info!(codec = %name, "deleted a codec");
        self.known.lock().codecs.remove(name);
        self.count();
        Ok(())
    }

    /// Loads the codecs, then follows changes of the directory for ever.
    pub(crate) async fn follow(self: &Arc<Self>) {
        let codecs: Vec<_> = self.known.lock().codecs.values().filter_map(|entry| entry.codec.clone()).collect();
        let load = async |codec: Arc<Codec>| {
            if let Err(error) = codec.check().await {
                tracing::warn!(error = %ErrorChain(&error), "cannot load a codec");
            }
        };
        stream::iter(codecs).for_each_concurrent(LOADS_MAX, load).await;
        let mut ticks = interval(self.refresh_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let refreshed = self.refresh().await;
            let problem = refreshed.as_ref().err().map(|error| ErrorChain(error).to_string());
            let before = std::mem::replace(&mut self.known.lock().problem, problem.clone());
            match problem {
                Some(problem) if before.is_none() => tracing::error!("{problem}; using the codecs read before"),
                None if before.is_some() => tracing::info!("the directory of codecs can be read again"),
                _ => {}
            }
        }
    }

    /// Fails with the reason why the directory could not be read the last time.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.known.lock().problem.clone().map_or(Ok(()), Err)
    }

    /// Reads files that have changed since the last time, and loads them while others may save and delete codecs.
    async fn refresh(self: &Arc<Self>) -> Result<(), OpenError> {
        let changed = self.changed().await?;
        let load = async |(name, old, found)| {
            let loaded = self.load(&name, found).await;
            let _changing = self.changing.lock().await;
            // Somebody has saved or deleted it in the meantime.
            if self.stamp(&name) == old {
                self.adopt(name, loaded);
            }
        };
        stream::iter(changed).for_each_concurrent(LOADS_MAX, load).await;
        self.count();
        Ok(())
    }

    /// Reads the files that have changed, and forgets those that are gone.
    async fn changed(self: &Arc<Self>) -> Result<Vec<ChangedCodec>, OpenError> {
        let _changing = self.changing.lock().await;
        let stamp = |(name, entry): (&CodecName, &CodecEntry)| Some((name.clone(), entry.stamp?));
        let stamps = self.known.lock().codecs.iter().filter_map(stamp).collect();
        let this = self.clone();
        let found = blocking(move || this.scan(&stamps)).await?;
        self.known.lock().codecs.retain(|name, _| found.contains_key(name));
        let is_changed = found.into_iter().filter(|(_, found)| found.text.is_some());
        Ok(is_changed.map(|(name, found)| (name.clone(), self.stamp(&name), found)).collect())
    }

    /// The version of a file that is used, or was tried; the outer `None` stands for a codec that is not known.
    fn stamp(&self, name: &CodecName) -> Option<Option<Stamp>> {
        self.known.lock().codecs.get(name).map(|entry| entry.stamp)
    }

    /// Returns the codec of a file, and the reason why it cannot be used.
    async fn load(&self, name: &CodecName, found: CodecFile) -> (CodecEntry, Option<String>) {
        let mut new = self.entry(name, found);
        let problem = match (&new.codec, &new.problem) {
            (Some(codec), None) => codec.check().await.err().map(|error| {
                if error.may_pass() {
                    new.stamp = None;
                }
                ErrorChain(&error).to_string()
            }),
            (_, problem) => problem.clone(),
        };
        (new, problem)
    }

    /// Replaces a codec whose file has changed, unless the new text cannot be used.
    fn adopt(&self, name: CodecName, (new, problem): (CodecEntry, Option<String>)) {
        let mut known = self.known.lock();
        let old = known.codecs.get_mut(&name);
        match (problem, old) {
            // It was said before.
            (Some(problem), Some(old)) if old.problem.as_ref() == Some(&problem) => {
                old.stamp = new.stamp;
                return;
            }
            (None, _) => tracing::info!(codec = %name, "read a codec"),
            (Some(problem), Some(old)) if old.works() => {
                tracing::warn!(codec = %name, problem, "cannot use the new version of a codec; keeping the one before");
                (old.stamp, old.problem) = (new.stamp, Some(problem));
                return;
            }
            (Some(problem), _) => tracing::warn!(codec = %name, problem, "cannot use a codec"),
        }
        known.codecs.insert(name, new);
    }

    /// The files of the directory, with the text of those whose stamp is not in `known`.
    fn scan(&self, known: &BTreeMap<CodecName, Stamp>) -> Result<BTreeMap<CodecName, CodecFile>, OpenError> {
        let bytes_max = self.pool.engine().limits().source_bytes_max;
        files::scan(&self.path, known, (self.codecs_max, bytes_max))
            .map_err(|source| OpenError::Directory { path: self.path.clone(), source })
    }

    fn entry(&self, name: &CodecName, found: CodecFile) -> CodecEntry {
        match found.text {
            Some(Err(error)) => {
                let problem = Some(format!("cannot read {}: {error}", name.file_name()));
                CodecEntry { codec: None, stamp: None, problem }
            }
            text => {
                let text = text.and_then(Result::ok).unwrap_or_default();
                let codec = Arc::new(Codec::new(name.clone(), text, self.pool.clone()));
                CodecEntry { codec: Some(codec), stamp: Some(found.stamp), problem: None }
            }
        }
    }

    fn insert(&self, name: CodecName, entry: CodecEntry) {
        self.known.lock().codecs.insert(name, entry);
    }

    fn count(&self) {
        metrics::codecs(self.known.lock().codecs.len());
    }
}

/// Runs file operations where they block nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(result) => result,
        // Blocking tasks are not cancelled, so it panicked, or the process ends.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
