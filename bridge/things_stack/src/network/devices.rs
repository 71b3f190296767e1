//! Facts about devices that only the API has: their attributes, and the id of one that has not been heard yet.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc, time::Duration};

use bridge::codec::single_flight::{LookUpError, LookUpLimits, Object, SingleFlight};
use client::things_stack::{Attributes, ThingsStackClient};
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Mutex as AsyncMutex;
use types::{AppEui, Clock, DevEui, Timestamp};

use super::super::{
    application::{Application, topic::device_key},
    formatter::directory::API,
    settings::ThingsStackSettings,
};

/// Maximum number of pages of devices that are read to find one.
const PAGES_MAX: u32 = 1000;
/// Time for which a list of an application's devices is valid: a device that was not in it is not searched for again.
const LIST_AGE_MAX: Duration = Duration::from_secs(10);

/// The devices of all applications.
pub(super) struct Devices {
    api: ThingsStackClient,
    single_flight: SingleFlight,
    known: Mutex<DeviceCache>,
    /// By application: when all its devices were last listed. One list at a time, which all wait for who need it.
    lists: HashMap<String, AsyncMutex<Option<Timestamp>>>,
    clock: Arc<dyn Clock>,
}

struct DeviceCache {
    /// By [`device_key`].
    attributes: LruCache<Box<str>, Arc<Attributes>>,
    /// By application and DevEUI, which devices with different JoinEUIs may share.
    ids: LruCache<(Box<str>, DevEui), Twins>,
    /// By [`device_key`].
    euis: LruCache<Box<str>, Euis>,
}

/// The JoinEUI, zero if there is none, and the DevEUI of a device.
pub(super) type Euis = (AppEui, DevEui);

/// The JoinEUIs and ids of devices with the same DevEUI.
type Twins = Vec<(AppEui, Box<str>)>;

/// Maximum number of devices that are remembered with the same DevEUI.
const TWINS_MAX: usize = 16;

impl Devices {
    pub(super) fn new(api: ThingsStackClient, settings: &ThingsStackSettings, clock: Arc<dyn Clock>) -> Self {
        let limits = LookUpLimits::new(settings.in_flight_max, settings.api_wait_ms_max, settings.refresh_interval_ms);
        let capacity = NonZeroUsize::new(settings.devices_max).unwrap_or(NonZeroUsize::MIN);
        let known = DeviceCache {
            attributes: LruCache::new(capacity),
            ids: LruCache::new(capacity),
            euis: LruCache::new(capacity),
        };
        let lists = settings.applications.iter().map(|application| (application.id.clone(), AsyncMutex::default()));
        Self {
            api,
            single_flight: SingleFlight::new(API, limits),
            known: Mutex::new(known),
            lists: lists.collect(),
            clock,
        }
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
        self.single_flight.get_or_fetch(object, known, fetch).await
    }

    /// Takes note of the id of a device, which another one may have had before.
    pub(super) fn heard(&self, application: &Application, (app_eui, dev_eui): Euis, device: &str) {
        let key = (application.uid.as_str().into(), dev_eui);
        let mut known = self.lock();
        if known.ids.get(&key).is_some_and(|ids| ids.iter().any(|(eui, id)| *eui == app_eui && **id == *device)) {
            return;
        }
        let former = known.euis.put(device_key(&application.uid, device).into(), (app_eui, dev_eui));
        if let Some(former) = former.filter(|(_, former)| *former != dev_eui) {
            known.ids.pop(&(application.uid.as_str().into(), former.1));
        }
        let ids = known.ids.get_or_insert_mut(key, Vec::new);
        ids.retain(|(eui, id)| *eui != app_eui && **id != *device);
        if ids.len() < TWINS_MAX {
            ids.push((app_eui, device.into()));
        }
    }

    /// Forgets the ids of devices with this DevEUI, and that their application's devices were listed.
    pub(super) async fn forget(&self, application: &Application, dev_eui: DevEui) {
        self.lock().ids.pop(&(application.uid.as_str().into(), dev_eui));
        if let Some(list) = self.lists.get(&application.uid) {
            *list.lock().await = None;
        }
    }

    /// The id of a device, and whether the API has just said it; none if the application has none with these EUIs.
    ///
    /// A device without an AppEUI is the only one with its DevEUI, and one without a JoinEUI has any AppEUI here.
    pub(super) async fn id(
        &self,
        application: &Application,
        (app_eui, dev_eui): Euis,
    ) -> client::Result<(Option<Box<str>>, bool)> {
        let known = || {
            let mut known = self.lock();
            let ids = known.ids.get(&(application.uid.as_str().into(), dev_eui))?;
            let with = |eui| ids.iter().find(|(other, _)| *other == eui);
            let found = match &ids[..] {
                [only] if app_eui.is_zero() => Some(only),
                _ => with(app_eui).or_else(|| with(AppEui::default())),
            };
            found.map(|(_, id)| id.clone())
        };
        if let Some(id) = known() {
            return Ok((Some(id), false));
        }
        let Some(list) = self.lists.get(&application.uid) else { return Ok((None, true)) };
        let mut listed = list.lock().await;
        let now = self.clock.now();
        // A clock that was set back makes no list last.
        let is_recent = listed.is_some_and(|listed| listed <= now && now < listed.plus(LIST_AGE_MAX));
        let pages = if is_recent { 0 } else { PAGES_MAX };
        for page in 1..=pages {
            if let Some(id) = known() {
                return Ok((Some(id), true));
            }
            if !self.read_page(application, page).await? {
                *listed = Some(now);
                break;
            }
        }
        Ok((known(), true))
    }

    /// Takes note of the ids of some of an application's devices; false if there is no such page.
    async fn read_page(&self, application: &Application, page: u32) -> client::Result<bool> {
        let found = self.api.devices(&application.key.current(), application.id(), page).await?;
        let is_page = !found.is_empty();
        for ids in found {
            if let Ok(dev_eui) = ids.dev_eui.parse() {
                self.heard(application, (ids.join_eui.parse().unwrap_or_default(), dev_eui), &ids.device_id);
            }
        }
        Ok(is_page)
    }

    fn lock(&self) -> MutexGuard<'_, DeviceCache> {
        self.known.lock()
    }
}

#[cfg(test)]
mod tests {
    use client::Trust;
    use serde_json::json;
    use testing::{ManualClock, THINGS_STACK_KEY, ThingsStackApi};
    use types::Secret;

    use super::{super::super::settings::ThingsStackApplication, *};

    /// The devices of these applications, one of which is `kitchen` with the DevEUI of ones in each.
    async fn start(uids: &[&str]) -> (ThingsStackApi, Vec<Arc<Application>>, Devices, Arc<ManualClock>) {
        server::system::install_crypto();
        let (api, clock) = (ThingsStackApi::start().await, ManualClock::new());
        let applications = uids.iter().map(|id| ThingsStackApplication { id: (*id).to_owned(), key_file: None });
        let settings = ThingsStackSettings {
            applications: applications.collect(),
            key: Secret::new(THINGS_STACK_KEY),
            ..ThingsStackSettings::default()
        };
        let applications = Application::all(&settings).unwrap();
        for application in &applications {
            set_kitchen(&api, application, "kitchen");
        }
        let client = ThingsStackClient::new(&api.url(), &Trust::System).unwrap();
        (api, applications, Devices::new(client, &settings, clock.clone()), clock)
    }

    fn set_kitchen(api: &ThingsStackApi, application: &Application, device: &str) {
        let known = json!({"ids": {"device_id": device, "dev_eui": "0101010101010101"}});
        api.set_device(application.id(), device, known);
    }

    fn eui(byte: u8) -> Euis {
        (AppEui::default(), DevEui::new([byte; 8]))
    }

    #[tokio::test]
    async fn devices_that_share_a_dev_eui_are_told_apart_by_their_join_euis() {
        let (api, applications, devices, _) = start(&["app1"]).await;
        api.remove_device("app1", "kitchen");
        let dev_eui = DevEui::new([1; 8]);
        devices.heard(&applications[0], (AppEui::new([1; 8]), dev_eui), "twin-1");
        devices.heard(&applications[0], (AppEui::new([2; 8]), dev_eui), "twin-2");
        for (app_eui, expected) in [(1, Some("twin-1")), (2, Some("twin-2")), (3, None), (0, None)] {
            let found = devices.id(&applications[0], (AppEui::new([app_eui; 8]), dev_eui)).await.unwrap().0;
            assert_eq!(found.as_deref(), expected, "{app_eui}");
        }
        // The other one is known by what was heard, too.
        devices.heard(&applications[0], (AppEui::new([2; 8]), dev_eui), "renamed");
        let found = devices.id(&applications[0], (AppEui::new([2; 8]), dev_eui)).await.unwrap();
        assert_eq!(found, (Some("renamed".into()), false));
    }

    #[tokio::test]
    async fn one_list_says_for_a_while_which_devices_there_are() {
        let (api, applications, devices, clock) = start(&["app1"]).await;
        let ghosts = (2..20).map(|byte| devices.id(&applications[0], eui(byte)));
        for found in futures::future::join_all(ghosts).await {
            assert_eq!(found.unwrap(), (None, true));
        }
        // A page with the device, and an empty one.
        assert_eq!(api.calls(), 2);
        assert_eq!(devices.id(&applications[0], eui(1)).await.unwrap(), (Some("kitchen".into()), false));
        clock.advance(LIST_AGE_MAX);
        assert_eq!(devices.id(&applications[0], eui(2)).await.unwrap(), (None, true));
        assert_eq!(api.calls(), 4);
    }

    #[tokio::test]
    async fn a_device_with_another_id_than_before_is_found_again() {
        let (api, applications, devices, _) = start(&["app1"]).await;
        devices.id(&applications[0], eui(2)).await.unwrap();
        api.remove_device("app1", "kitchen");
        set_kitchen(&api, &applications[0], "cellar");
        devices.forget(&applications[0], eui(1).1).await;
        assert_eq!(devices.id(&applications[0], eui(1)).await.unwrap(), (Some("cellar".into()), true));
    }

    #[tokio::test]
    async fn an_application_does_not_wait_for_the_devices_of_another() {
        let (_api, applications, devices, _) = start(&["app1", "app2"]).await;
        let _turn = devices.lists["app1"].lock().await;
        assert_eq!(devices.id(&applications[1], eui(1)).await.unwrap(), (Some("kitchen".into()), true));
    }
}
