//! The device profiles and devices that events came from, as ChirpStack's API describes them.
//!
//! Each is fetched when its first event comes, so neither tenants nor applications have to be listed, which the API key
//! of a tenant may not do. Known ones are refreshed, and kept on disk for a start without the API.

mod cache_file;
mod records;
mod refresh;

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc};

use api::chirpstack::{GetDeviceProfileResponse, GetDeviceResponse};
use bridge::codec::{
    imports::Imports,
    single_flight::{Api, LookUpError, LookUpLimits, Object, SingleFlight},
};
use client::chirpstack::ChirpStackClient;
use lru::LruCache;

pub(crate) use self::records::{Codecs, Device, Profile};

pub(crate) const API: Api = Api { network: "ChirpStack", key_advice: "use a key of its tenant, or a global one" };

/// The known device profiles and devices.
pub(crate) struct Directory {
    api: ChirpStackClient,
    /// Read again and again, because keys are replaced.
    token_file: PathBuf,
    codecs: Codecs,
    imports: Arc<Imports<CachedCodecs>>,
}

/// Limits on what is kept, and on waiting for it.
pub(crate) struct DirectoryLimits {
    pub(crate) profiles_max: usize,
    pub(crate) devices_max: usize,
    pub(crate) look_ups: LookUpLimits,
}

struct CachedCodecs {
    profiles: LruCache<Box<str>, Arc<Profile>>,
    devices: LruCache<Box<str>, Arc<Device>>,
}

impl Directory {
    /// A directory with the contents of `file`, if it exists.
    pub(crate) fn open(
        (api, token_file): (ChirpStackClient, PathBuf),
        codecs: Codecs,
        limits: &DirectoryLimits,
        file: PathBuf,
    ) -> Self {
        let capacity = |max| NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN);
        let mut known = CachedCodecs {
            profiles: LruCache::new(capacity(limits.profiles_max)),
            devices: LruCache::new(capacity(limits.devices_max)),
        };
        cache_file::read(&file, &codecs, &mut known);
        let imports = Arc::new(Imports::new(SingleFlight::new(API, limits.look_ups), known, file));
        Self { api, token_file, codecs, imports }
    }

    /// Returns true if nothing was imported yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.imports.lock().profiles.is_empty()
    }

    /// The device profile with this id.
    pub(crate) async fn profile(&self, id: &str) -> Result<Arc<Profile>, LookUpError> {
        let known = || self.imports.lock().profiles.get(id).cloned();
        self.imports.single_flight.get_or_fetch(object("device profile", id), known, || self.fetch_profile(id)).await
    }

    /// The device with this EUI.
    pub(crate) async fn device(&self, dev_eui: &str) -> Result<Arc<Device>, LookUpError> {
        let known = || self.imports.lock().devices.get(dev_eui).cloned();
        self.imports.single_flight.get_or_fetch(object("device", dev_eui), known, || self.fetch_device(dev_eui)).await
    }

    /// The same, as the API describes it now.
    pub(crate) async fn device_now(&self, dev_eui: &str) -> Result<Arc<Device>, LookUpError> {
        self.imports.single_flight.get_or_fetch(object("device", dev_eui), || None, || self.fetch_device(dev_eui)).await
    }

    /// Returns true if the device with this EUI is in this application; none if the API does not answer.
    pub(crate) async fn has_device(&self, application_id: &str, dev_eui: &str) -> Option<bool> {
        match self.device(dev_eui).await {
            Ok(device) => Some(*device.application_id == *application_id),
            Err(LookUpError::Refused(_)) => Some(false),
            Err(LookUpError::Unreachable { .. }) => None,
        }
    }

    /// ChirpStack's API.
    pub(crate) fn api(&self) -> &ChirpStackClient {
        &self.api
    }

    async fn fetch_profile(&self, id: &str) -> client::Result<Arc<Profile>> {
        Ok(self.add_profile(self.api.device_profile(id).await?))
    }

    async fn fetch_device(&self, dev_eui: &str) -> client::Result<Arc<Device>> {
        Ok(self.add_device(self.api.device(dev_eui).await?))
    }

    /// Adds a device profile as the API describes it.
    pub(crate) fn add_profile(&self, response: GetDeviceProfileResponse) -> Arc<Profile> {
        let profile = Arc::new(self.codecs.profile(response));
        let mut known = self.imports.lock();
        known.profiles.put(profile.record.id.as_str().into(), profile.clone());
        self.imports.changed(true);
        profile
    }

    /// Adds a device as the API describes it.
    pub(crate) fn add_device(&self, response: GetDeviceResponse) -> Arc<Device> {
        let device = Arc::new(Device::from(response));
        let mut known = self.imports.lock();
        known.devices.put(device.dev_eui.clone(), device.clone());
        self.imports.changed(true);
        device
    }
}

/// One API key reads everything.
fn object<'a>(what: &'static str, id: &'a str) -> Object<'a> {
    Object { what, id, application: "" }
}
