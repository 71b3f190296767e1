//! Follows changes: lists known objects, and fetches those that have changed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bridge::codec::{imports::LOAD_WAIT, single_flight::is_final};
use client::chirpstack::PAGE_ITEMS;
use link::secret_file::read_secret;
use server::status::ErrorChain;
use tokio::time::Instant;
use types::{Kind, Kinded};

use super::{
    Device, Directory, Profile,
    records::{ChangeTime, changed},
};
use crate::codec::Codec;

impl Directory {
    /// Checks that the API can be used, with the key that its file has now.
    pub(crate) async fn check(&self) -> client::Result<()> {
        self.read_token();
        self.api.check().await
    }

    /// Refreshes known objects at an interval, and keeps them on disk.
    pub(crate) async fn run(self: Arc<Self>) {
        self.imports.follow("codecs", || self.refresh()).await;
    }

    /// Writes known objects to disk, if they have changed.
    pub(crate) async fn save(&self) {
        self.imports.save().await;
    }

    /// Refreshes everything that can be; returns the first error.
    async fn refresh(&self) -> client::Result<()> {
        self.read_token();
        let profiles = self.refresh_profiles().await;
        let devices = self.refresh_devices().await;
        profiles.and(devices)
    }

    /// Takes over a new API key. A file that is being replaced is read again next time.
    fn read_token(&self) {
        match read_secret(&self.token_file) {
            Ok(token) => self.api.set_token(token),
            Err(error) => tracing::debug!(%error, "cannot read the API key again"),
        }
    }

    async fn refresh_profiles(&self) -> client::Result<()> {
        let mut result = Ok(());
        let profiles: Vec<Arc<Profile>> =
            self.imports.lock().profiles.iter().map(|(_, profile)| profile.clone()).collect();
        let tenants: BTreeSet<&str> = profiles.iter().map(|profile| profile.tenant_id()).collect();
        let mut listed = HashMap::new();
        for tenant in tenants {
            // Profiles of no tenant, and those that the key may not list, are fetched one by one.
            match self.list_profiles(tenant).await {
                Ok(page) => _ = listed.insert(tenant, page),
                Err(error) if is_final(&error) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        for profile in &profiles {
            let list = listed.get(profile.tenant_id());
            let found = list.and_then(|list| list.get(&profile.record.id));
            if found != Some(&profile.record.changed) {
                result = result.and(self.refresh_profile(profile, list.is_some() && found.is_none()).await);
            }
        }
        result
    }

    async fn list_profiles(&self, tenant_id: &str) -> client::Result<HashMap<String, ChangeTime>> {
        let mut listed = HashMap::new();
        for page in 0.. {
            let response = self.api.device_profiles(tenant_id, page * PAGE_ITEMS).await?;
            let count = response.result.len();
            listed.extend(response.result.into_iter().map(|item| (item.id, changed(item.updated_at))));
            if count < PAGE_ITEMS as usize {
                break;
            }
        }
        Ok(listed)
    }

    async fn refresh_profile(&self, old: &Arc<Profile>, is_unlisted: bool) -> client::Result<()> {
        let id = old.record.id.as_str();
        let new = match self.api.device_profile(id).await {
            Ok(response) => self.codecs.profile(response).with_codec_of(old),
            Err(error) => {
                let forget = |known: &mut super::CachedCodecs| known.profiles.pop(id).is_some();
                return self.gone(error, is_unlisted, ("device profile", id), forget);
            }
        };
        // Loaded before it is used, so that no message waits for it.
        if let Codec::JavaScript(script) = &new.codec
            && let Ok(Err(failure)) = script.load(Instant::now() + LOAD_WAIT).await
        {
            tracing::warn!(id, name = new.name(), %failure, "the codec of a device profile cannot be loaded");
        }
        let mut known = self.imports.lock();
        if new.record != old.record && known.profiles.contains(id) {
            known.profiles.put(id.into(), Arc::new(new));
            self.imports.changed(true);
            tracing::info!(id, "a device profile has changed");
        }
        Ok(())
    }

    async fn refresh_devices(&self) -> client::Result<()> {
        let mut result = Ok(());
        let applications: BTreeSet<Box<str>> =
            self.imports.lock().devices.iter().map(|(_, device)| device.application_id.clone()).collect();
        for application in applications {
            let listed = match self.list_devices(&application).await {
                Ok(listed) => listed,
                Err(error) if is_final(&error) => continue,
                Err(error) => {
                    result = result.and(Err(error));
                    continue;
                }
            };
            for device in self.outdated(&application, &listed) {
                let is_unlisted = !listed.contains_key(&device.dev_eui);
                result = result.and(self.refresh_device(&device, is_unlisted).await);
            }
        }
        result
    }

    async fn list_devices(&self, application_id: &str) -> client::Result<HashMap<Box<str>, ChangeTime>> {
        let mut listed = HashMap::new();
        for page in 0.. {
            let response = self.api.devices(application_id, page * PAGE_ITEMS).await?;
            let count = response.result.len();
            listed.extend(response.result.into_iter().map(|item| (item.dev_eui.into(), changed(item.updated_at))));
            if count < PAGE_ITEMS as usize {
                break;
            }
        }
        Ok(listed)
    }

    /// The known devices of an application that the list does not have, or has with another time.
    fn outdated(&self, application_id: &str, listed: &HashMap<Box<str>, ChangeTime>) -> Vec<Arc<Device>> {
        let known = self.imports.lock();
        let devices = known.devices.iter().map(|(_, device)| device);
        devices
            .filter(|device| &*device.application_id == application_id)
            .filter(|device| listed.get(&device.dev_eui) != Some(&device.changed))
            .cloned()
            .collect()
    }

    async fn refresh_device(&self, old: &Device, is_unlisted: bool) -> client::Result<()> {
        let dev_eui = &*old.dev_eui;
        match self.fetch_device(dev_eui).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let forget = |known: &mut super::CachedCodecs| known.devices.pop(dev_eui).is_some();
                self.gone(error, is_unlisted, ("device", dev_eui), forget)
            }
        }
    }

    /// Forgets what was deleted. To the key of a tenant, ChirpStack refuses what does not exist: it was deleted if a
    /// list that the key may read lacks it. What the key may no longer read otherwise stays as it was.
    fn gone(
        &self,
        error: client::Error,
        is_unlisted: bool,
        (what, id): (&'static str, &str),
        forget: impl FnOnce(&mut super::CachedCodecs) -> bool,
    ) -> client::Result<()> {
        if !is_final(&error) {
            return Err(error);
        }
        if error.kind() == Kind::NotFound || is_unlisted {
            tracing::warn!(id, "a {what} was deleted");
            let mut known = self.imports.lock();
            self.imports.changed(forget(&mut known));
        } else {
            tracing::warn!(id, error = %ErrorChain(&error), "cannot refresh a {what}");
        }
        Ok(())
    }
}
