//! The payload formatters of applications, devices and models, as The Things Stack's API describes them.
//!
//! Each is fetched when the first message that needs it comes. Known ones are refreshed, and kept on disk for a start
//! without the API.

mod cache_file;
mod records;
mod refresh;

use std::{collections::HashMap, num::NonZeroUsize, path::PathBuf, sync::Arc};

use bridge::codec::{
    imports::Imports,
    outcome::CodecError,
    single_flight::{Api, LookUpError, LookUpLimits, Object, SingleFlight},
};
use client::things_stack::{FormatterRole, Link, ThingsStackClient, VersionIds};
use lru::LruCache;
use tokio::time::Instant;
use types::{Kind, Kinded};

pub(crate) use self::records::Loader;
use self::records::{Choice, Defaults, Device, DeviceRecord, Formatters, Model, ModelRecord};
use crate::{
    application::{Application, topic::device_key},
    formatter::{Formatter, FormatterSource},
};

pub(crate) const API: Api = Api {
    network: "The Things Stack",
    key_advice: "give the key the rights to view devices, settings and read application traffic",
};

/// The known formatters.
pub(crate) struct Directory {
    pub(crate) api: ThingsStackClient,
    applications: HashMap<String, Arc<Application>>,
    loader: Loader,
    imports: Arc<Imports<CachedFormatters>>,
    refresh_devices_max: usize,
}

/// Limits on what is kept, and on waiting for it.
pub(crate) struct DirectoryLimits {
    pub(crate) models_max: usize,
    pub(crate) devices_max: usize,
    pub(crate) look_ups: LookUpLimits,
    pub(crate) refresh_devices_max: usize,
}

struct CachedFormatters {
    /// By the id of the application.
    defaults: HashMap<Box<str>, Arc<Defaults>>,
    /// By [`device_key`].
    devices: LruCache<Box<str>, Arc<Device>>,
    /// By [`model_id`].
    models: LruCache<Box<str>, Arc<Model>>,
}

impl Directory {
    /// A directory with the contents of `file`, if it exists.
    pub(crate) fn open(
        api: ThingsStackClient,
        applications: &[Arc<Application>],
        loader: Loader,
        limits: &DirectoryLimits,
        file: PathBuf,
    ) -> Self {
        let capacity = |max| NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN);
        let mut known = CachedFormatters {
            defaults: HashMap::new(),
            devices: LruCache::new(capacity(limits.devices_max)),
            models: LruCache::new(capacity(limits.models_max)),
        };
        cache_file::read(&file, &loader, &mut known);
        let imports = Arc::new(Imports::new(SingleFlight::new(API, limits.look_ups), known, file));
        Self {
            api,
            applications: applications
                .iter()
                .map(|application| (application.uid.clone(), application.clone()))
                .collect(),
            loader,
            imports,
            refresh_devices_max: limits.refresh_devices_max,
        }
    }

    /// Returns true if nothing was imported yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.imports.lock().defaults.is_empty()
    }

    /// An application of the settings.
    pub(crate) fn application(&self, uid: &str) -> Result<&Arc<Application>, CodecError> {
        self.applications
            .get(uid)
            .ok_or_else(|| CodecError::Unknown(format!("the application {uid} is not among the settings")))
    }

    /// The applications that have this id, by which alone none of them is known.
    pub(crate) fn with_tenant(&self, id: &str) -> Vec<&str> {
        if self.applications.contains_key(id) {
            return Vec::new();
        }
        let applications = self.applications.values().filter(|application| application.id() == id);
        let mut uids: Vec<_> = applications.map(|application| application.uid.as_str()).collect();
        uids.sort_unstable();
        uids
    }

    /// The formatters of a device, or else of its application; `model` is what the message says the device is.
    pub(crate) async fn formatters(
        &self,
        uid: &str,
        device: &str,
        model: Option<&VersionIds>,
    ) -> Result<Option<Resolved>, CodecError> {
        let application = self.application(uid)?;
        let device = self.device(application, device).await?;
        let formatters = match &device.formatters {
            Some(formatters) => Some(formatters.clone()),
            None => self.defaults(application).await?.formatters.clone(),
        };
        let Some(formatters) = formatters else { return Ok(None) };
        let needs_model = matches!(formatters.up, Choice::Repository) || matches!(formatters.down, Choice::Repository);
        let model = match device.record.version.as_ref().or(model) {
            Some(version) if needs_model => Some(self.model(application, version).await?),
            _ => None,
        };
        Ok(Some(Resolved { formatters, model }))
    }

    /// Returns true if a device's payloads stay encrypted in The Things Stack, so that no formatter can read them.
    pub(crate) async fn encrypts_payloads(&self, uid: &str, device: &str) -> Result<bool, CodecError> {
        let application = self.application(uid)?;
        match self.device(application, device).await?.record.is_encrypted {
            Some(is_encrypted) => Ok(is_encrypted),
            None => Ok(self.defaults(application).await?.is_encrypted),
        }
    }

    async fn defaults(&self, application: &Application) -> Result<Arc<Defaults>, LookUpError> {
        let known = || self.imports.lock().defaults.get(application.uid.as_str()).cloned();
        let fetch = || self.fetch_defaults(application);
        self.imports.single_flight.get_or_fetch(application.object("application", &application.uid), known, fetch).await
    }

    async fn device(&self, application: &Application, device: &str) -> Result<Arc<Device>, LookUpError> {
        let key = device_key(&application.uid, device);
        let known = || self.imports.lock().devices.get(key.as_str()).cloned();
        self.imports
            .single_flight
            .get_or_fetch(application.object("device", &key), known, || self.fetch_device(application, device))
            .await
    }

    async fn model(&self, application: &Application, version: &VersionIds) -> Result<Arc<Model>, LookUpError> {
        let id = model_id(version);
        let known = || self.imports.lock().models.get(id.as_str()).cloned();
        self.imports
            .single_flight
            .get_or_fetch(application.object("model", &id), known, || self.fetch_model(application, version))
            .await
    }

    /// Fetches and keeps the defaults of an application, which has none if it was never linked.
    async fn fetch_defaults(&self, application: &Application) -> client::Result<Arc<Defaults>> {
        let found = match self.api.link(&application.key.current(), application.id()).await {
            Err(error) if error.kind() == Kind::NotFound => Link::default(),
            found => found?,
        };
        let name = format!("default formatter of {}", application.uid);
        let formatters = |found| Arc::new(self.loader.formatters(self.loader.sources(found), &application.uid, &name));
        let defaults = Arc::new(Defaults {
            formatters: found.default_formatters.map(formatters),
            is_encrypted: found.skip_payload_crypto.unwrap_or_default(),
        });
        let mut known = self.imports.lock();
        let old = known.defaults.insert(application.uid.as_str().into(), defaults.clone());
        self.imports.changed(old.is_none_or(|old| !old.is_same(&defaults)));
        Ok(defaults)
    }

    async fn fetch_device(&self, application: &Application, device: &str) -> client::Result<Arc<Device>> {
        let found = self.api.device(&application.key.current(), application.id(), device).await?;
        let record = DeviceRecord {
            application: application.uid.as_str().into(),
            id: device.into(),
            formatters: found.formatters.map(|found| self.loader.sources(found)),
            version: found.version_ids.filter(|version| !version.brand_id.is_empty()),
            is_encrypted: found.skip_payload_crypto_override,
        };
        let key = device_key(&application.uid, device);
        let device = Arc::new(self.loader.device(record, Some(Instant::now())));
        let mut known = self.imports.lock();
        let old = known.devices.put(key.into(), device.clone());
        self.imports.changed(old.is_none_or(|old| old.record != device.record));
        Ok(device)
    }

    async fn fetch_model(&self, application: &Application, version: &VersionIds) -> client::Result<Arc<Model>> {
        let fetch = async |role| {
            let key = application.key.current();
            match self.api.repository_formatter(&key, application.id(), version, role).await {
                Ok(found) => Ok(self.loader.source(found.formatter, found.formatter_parameter)),
                // A model may have a decoder and no encoder.
                Err(error) if error.kind() == Kind::NotFound => Ok(FormatterSource::default()),
                Err(error) => Err(error),
            }
        };
        let sources = [fetch(FormatterRole::UplinkDecoder).await?, fetch(FormatterRole::DownlinkEncoder).await?];
        let down_decoder = fetch(FormatterRole::DownlinkDecoder).await?;
        let id = model_id(version);
        let (application, version) = (application.uid.clone(), version.clone());
        let record = ModelRecord { application, version, sources, down_decoder };
        let model = Arc::new(self.loader.model(record, &id, Some(Instant::now())));
        let mut known = self.imports.lock();
        let old = known.models.put(id.into(), model.clone());
        self.imports.changed(old.is_none_or(|old| old.record != model.record));
        Ok(model)
    }
}

impl Application {
    fn object<'a>(&'a self, what: &'static str, id: &'a str) -> Object<'a> {
        Object { what, id, application: &self.uid }
    }
}

/// The formatters that apply to a device.
pub(crate) struct Resolved {
    formatters: Arc<Formatters>,
    model: Option<Arc<Model>>,
}

impl Resolved {
    /// Returns the decoder of uplinks.
    pub(crate) fn up(&self) -> Result<&Arc<Formatter>, CodecError> {
        self.resolve(&self.formatters.up, |model| &model.up)
    }

    /// Returns the encoder of downlinks.
    pub(crate) fn down(&self) -> Result<&Arc<Formatter>, CodecError> {
        self.resolve(&self.formatters.down, |model| &model.down)
    }

    /// Returns the decoder of downlinks.
    pub(crate) fn down_decoder(&self) -> Result<&Arc<Formatter>, CodecError> {
        self.resolve(&self.formatters.down, |model| &model.down_decoder)
    }

    fn resolve<'a>(
        &'a self,
        choice: &'a Choice,
        of_model: impl Fn(&'a Model) -> &'a Arc<Formatter>,
    ) -> Result<&'a Arc<Formatter>, CodecError> {
        match (choice, &self.model) {
            (Choice::Own(formatter), _) => Ok(formatter),
            (Choice::Repository, Some(model)) => Ok(of_model(model)),
            (Choice::Repository, None) => Err(CodecError::Unknown(
                "the formatter is that of the device repository, but the device has no version there".to_owned(),
            )),
        }
    }
}

fn model_id(version: &VersionIds) -> String {
    let VersionIds { brand_id, model_id, firmware_version, band_id } = version;
    format!("{brand_id}/{model_id}/{firmware_version}/{band_id}")
}
