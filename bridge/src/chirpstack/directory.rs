//! The device profiles and devices that events came from, as ChirpStack's API describes them.
//!
//! Each is fetched when its first event comes, so neither tenants nor applications have to be listed, which the API key
//! of a tenant may not do. Known ones are refreshed, and kept on disk for a start without the API.

mod cache_file;
mod records;
mod refresh;

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use client::chirpstack::ChirpStackClient;
use lru::LruCache;
use server::status::ErrorChain;
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    time::{Instant, sleep, timeout_at},
};
use types::{Kind, Kinded};

pub(super) use self::records::{Codecs, Device, Profile};
use super::codec::CodecError;

/// Maximum number of calls of the API at once for objects that are not known yet.
const LOOKUPS_MAX: usize = 16;
/// The pause before an unreachable API is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How often an API that cannot be reached is tried for something that is not known. Until then it stays unknown.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of objects that are remembered as refused by the API.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// The known device profiles and devices.
pub(super) struct Directory {
    api: ChirpStackClient,
    /// Read again and again, because keys are replaced.
    token_file: PathBuf,
    codecs: Codecs,
    known: Mutex<Known>,
    /// One look-up at a time for the same object.
    turns: [AsyncMutex<()>; LOOKUPS_MAX],
    /// One permit for each message that may wait for the API.
    waiting: Semaphore,
    hasher: RandomState,
    wait_max: Duration,
    refresh_interval: Duration,
    file: PathBuf,
}

/// How much is kept, and how long to wait for it.
pub(super) struct DirectoryLimits {
    pub(super) profiles_max: usize,
    pub(super) devices_max: usize,
    /// Maximum number of messages that wait for the API. For others, what is not known yet stays unknown.
    pub(super) waiting_max: usize,
    pub(super) wait_max: Duration,
    pub(super) refresh_interval: Duration,
}

struct Known {
    profiles: LruCache<Box<str>, Arc<Profile>>,
    devices: LruCache<Box<str>, Arc<Device>>,
    /// What the API refused, when, and why.
    refused: LruCache<Box<str>, (Instant, String)>,
    /// When the API may be asked again, while it cannot be reached.
    unreachable_until: Option<Instant>,
    /// Whether the file is out of date.
    is_changed: bool,
}

impl Directory {
    /// A directory with the contents of `file`, if it exists.
    pub(super) fn open(
        (api, token_file): (ChirpStackClient, PathBuf),
        codecs: Codecs,
        limits: &DirectoryLimits,
        file: PathBuf,
    ) -> Self {
        let capacity = |max| NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN);
        let mut known = Known {
            profiles: LruCache::new(capacity(limits.profiles_max)),
            devices: LruCache::new(capacity(limits.devices_max)),
            refused: LruCache::new(REFUSED_MAX),
            unreachable_until: None,
            is_changed: false,
        };
        cache_file::read(&file, &codecs, &mut known);
        Self {
            api,
            token_file,
            codecs,
            known: Mutex::new(known),
            turns: Default::default(),
            waiting: Semaphore::new(limits.waiting_max),
            hasher: RandomState::new(),
            wait_max: limits.wait_max,
            refresh_interval: limits.refresh_interval,
            file,
        }
    }

    /// Whether nothing was imported yet.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().profiles.is_empty()
    }

    /// The device profile with this id.
    pub(super) async fn profile(&self, id: &str) -> Result<Arc<Profile>, CodecError> {
        let known = |known: &mut Known| known.profiles.get(id).cloned();
        self.look_up("device profile", id, known, || self.fetch_profile(id)).await
    }

    /// The device with this EUI.
    pub(super) async fn device(&self, dev_eui: &str) -> Result<Arc<Device>, CodecError> {
        let known = |known: &mut Known| known.devices.get(dev_eui).cloned();
        self.look_up("device", dev_eui, known, || self.fetch_device(dev_eui)).await
    }

    /// Returns what is known, or fetches it, and waits for an API that cannot be reached.
    async fn look_up<T, F: Future<Output = client::Result<T>>>(
        &self,
        what: &'static str,
        id: &str,
        known: impl Fn(&mut Known) -> Option<T>,
        fetch: impl Fn() -> F,
    ) -> Result<T, CodecError> {
        if let Some(found) = known(&mut self.lock()) {
            return Ok(found);
        }
        self.check_refused(id)?;
        self.check_reachable()?;
        let _permit = self
            .waiting
            .try_acquire()
            .map_err(|_| CodecError::Unknown("too many messages wait for ChirpStack's API already".to_owned()))?;
        let deadline = Instant::now() + self.wait_max;
        let unreachable = || self.unreachable();
        loop {
            let turn = self.turns[self.hasher.hash_one(id) as usize % LOOKUPS_MAX].lock();
            let turn = timeout_at(deadline, turn).await.map_err(|_| unreachable())?;
            if let Some(found) = known(&mut self.lock()) {
                return Ok(found);
            }
            let error = match timeout_at(deadline, fetch()).await {
                Ok(Ok(found)) => {
                    self.lock().unreachable_until = None;
                    return Ok(found);
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(unreachable()),
            };
            drop(turn);
            crate::metrics::api_failed(error.kind());
            if is_final(&error) {
                self.lock().unreachable_until = None;
                return Err(self.refuse(what, id, &error));
            }
            tracing::debug!(what, id, error = %ErrorChain(&error), "cannot ask ChirpStack");
            timeout_at(deadline, sleep(RETRY_PAUSE)).await.map_err(|_| unreachable())?;
        }
    }

    async fn fetch_profile(&self, id: &str) -> client::Result<Arc<Profile>> {
        let profile = Arc::new(self.codecs.profile(self.api.device_profile(id).await?));
        let mut known = self.lock();
        known.profiles.put(id.into(), profile.clone());
        known.is_changed = true;
        Ok(profile)
    }

    async fn fetch_device(&self, dev_eui: &str) -> client::Result<Arc<Device>> {
        let device = Arc::new(Device::from(self.api.device(dev_eui).await?));
        let mut known = self.lock();
        known.devices.put(dev_eui.into(), device.clone());
        known.is_changed = true;
        Ok(device)
    }

    /// The error for an object that the API refused a short time ago.
    fn check_refused(&self, id: &str) -> Result<(), CodecError> {
        let mut known = self.lock();
        match known.refused.get(id) {
            Some((when, reason)) if when.elapsed() < self.refresh_interval => Err(CodecError::Unknown(reason.clone())),
            _ => Ok(()),
        }
    }

    /// While the API cannot be reached, fails at once, so that unknown devices do not hold up known ones. After a
    /// pause, one message asks again.
    fn check_reachable(&self) -> Result<(), CodecError> {
        let mut known = self.lock();
        let now = Instant::now();
        match &mut known.unreachable_until {
            Some(until) if now < *until => Err(unreachable()),
            Some(until) => {
                *until = now + UNREACHABLE_PAUSE;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note that the API did not answer in time.
    fn unreachable(&self) -> CodecError {
        self.lock().unreachable_until = Some(Instant::now() + UNREACHABLE_PAUSE);
        unreachable()
    }

    fn refuse(&self, what: &'static str, id: &str, error: &client::Error) -> CodecError {
        let reason = match error.kind() {
            Kind::NotFound => format!("ChirpStack has no {what} {id}: it was deleted, or the API is another server's"),
            Kind::Unauthenticated | Kind::Denied => {
                format!("the API key may not read {what} {id}: use a key of its tenant, or a global one")
            }
            _ => format!("ChirpStack does not return {what} {id}: {error}"),
        };
        tracing::warn!(reason, "cannot decode");
        self.lock().refused.put(id.into(), (Instant::now(), reason.clone()));
        CodecError::Unknown(reason)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere leaves the maps usable.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreachable() -> CodecError {
    CodecError::Unknown("ChirpStack's API cannot be reached".to_owned())
}

/// Whether asking again soon would have the same result. A busy database answers with an internal error.
fn is_final(error: &client::Error) -> bool {
    !matches!(error.kind(), Kind::Unavailable | Kind::Timeout | Kind::Internal | Kind::Exhausted | Kind::Conflict)
}
