//! What only the API says about devices: their attributes, and the id of one that has not been heard yet.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use client::things_stack::{Attributes, ThingsStackClient};
use lru::LruCache;
use tokio::sync::Mutex as AsyncMutex;
use types::DevEui;

use super::super::{application::Application, directory::API, settings::ThingsStackSettings, topic::device_key};
use crate::look_up::{LookUpError, LookUpLimits, LookUps, Object};

/// Maximum number of pages of devices that are read to find one.
const PAGES_MAX: u32 = 1000;

/// The devices of all applications.
pub(super) struct Devices {
    api: ThingsStackClient,
    look_ups: LookUps,
    known: Mutex<Known>,
    /// One search at a time, because each reads all devices of an application.
    search: AsyncMutex<()>,
}

struct Known {
    /// By [`device_key`].
    attributes: LruCache<Box<str>, Arc<Attributes>>,
    /// By application and DevEUI.
    ids: LruCache<(Box<str>, DevEui), Box<str>>,
    /// By [`device_key`].
    euis: LruCache<Box<str>, DevEui>,
}

impl Devices {
    pub(super) fn new(api: ThingsStackClient, settings: &ThingsStackSettings) -> Self {
        let limits = LookUpLimits {
            // A part of the messages in progress, so that the others go on.
            waiting_max: usize::from(settings.in_flight_max / 4).max(1),
            wait_max: Duration::from_millis(settings.api_wait_ms_max),
            refused_for: Duration::from_millis(settings.refresh_interval_ms.max(1)),
        };
        let capacity = NonZeroUsize::new(settings.devices_max).unwrap_or(NonZeroUsize::MIN);
        let known =
            Known { attributes: LruCache::new(capacity), ids: LruCache::new(capacity), euis: LruCache::new(capacity) };
        Self { api, look_ups: LookUps::new(API, limits), known: Mutex::new(known), search: AsyncMutex::default() }
    }

    /// The attributes of a device, as they were when it was first heard.
    pub(super) async fn attributes(
        &self,
        application: &Application,
        device: &str,
    ) -> Result<Arc<Attributes>, LookUpError> {
        let key = device_key(&application.uid, device);
        let known = || self.lock().attributes.get(key.as_str()).cloned();
        let fetch = || async {
            let found = self.api.attributes(&application.key.current(), application.id(), device).await?;
            let found = Arc::new(found);
            self.lock().attributes.put(key.as_str().into(), found.clone());
            Ok(found)
        };
        let object = Object { what: "device", id: &key, application: &application.uid };
        self.look_ups.look_up(object, known, fetch).await
    }

    /// Takes note of the id of a device, which another one may have had before.
    pub(super) fn heard(&self, application: &Application, dev_eui: DevEui, device: &str) {
        let (key, eui_key) = ((application.uid.as_str().into(), dev_eui), device_key(&application.uid, device));
        let mut known = self.lock();
        if known.ids.get(&key).is_some_and(|id| **id == *device) {
            return;
        }
        if let Some(former) = known.euis.put(eui_key.into(), dev_eui).filter(|former| *former != dev_eui) {
            known.ids.pop(&(application.uid.as_str().into(), former));
        }
        known.ids.put(key, device.into());
    }

    /// Forgets the id of a device.
    pub(super) fn forget(&self, application: &Application, dev_eui: DevEui) {
        self.lock().ids.pop(&(application.uid.as_str().into(), dev_eui));
    }

    /// The id of a device, and whether the API has just said it; none if the application has none with this DevEUI.
    pub(super) async fn id(
        &self,
        application: &Application,
        dev_eui: DevEui,
    ) -> client::Result<(Option<Box<str>>, bool)> {
        let known = || self.lock().ids.get(&(application.uid.as_str().into(), dev_eui)).cloned();
        if let Some(id) = known() {
            return Ok((Some(id), false));
        }
        let _search = self.search.lock().await;
        for page in 1..=PAGES_MAX {
            if let Some(id) = known() {
                return Ok((Some(id), true));
            }
            let found = self.api.devices(&application.key.current(), application.id(), page).await?;
            if found.is_empty() {
                break;
            }
            for ids in found {
                if let Ok(dev_eui) = ids.dev_eui.parse() {
                    self.heard(application, dev_eui, &ids.device_id);
                }
            }
        }
        Ok((known(), true))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere leaves the maps usable.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
