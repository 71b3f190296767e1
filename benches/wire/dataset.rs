//! Stores with generated applications and devices.

use std::{path::PathBuf, sync::Arc};

use airlock::settings::{Settings, StoreSettings};
use handler::{
    application::Applications,
    device::{Device, Devices, Lorawan},
    sealer::Sealer,
};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::{OsRandom, SystemClock},
};
use store::{Embedded, Redis, RedisSettings, Store, StoreClock};
use tempfile::TempDir;
use testing::RedisProcess;
use tokio::task::JoinSet;
use types::{AppId, Clock as _, DevId};

/// Concurrent writers; the store commits what they write together.
const WRITERS: usize = 256;

/// A store in a temporary directory or a Redis process.
pub(crate) struct Dataset {
    pub(crate) dir: TempDir,
    redis: Option<RedisProcess>,
}

pub(crate) fn app_id(number: usize) -> AppId {
    format!("app-{number:05}").parse().unwrap()
}

pub(crate) fn dev_id(number: usize) -> DevId {
    format!("dev-{number:05}").parse().unwrap()
}

impl Dataset {
    pub(crate) fn file() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), redis: None }
    }

    pub(crate) fn redis() -> Option<Self> {
        let redis = Some(RedisProcess::start()?);
        Some(Self { dir: tempfile::tempdir().unwrap(), redis })
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.redis.is_some() { "Redis" } else { "redb" }
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default().temporary(self.dir.path());
        let redis = self.redis.as_ref();
        let redis = redis.map(|redis| RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() });
        settings.store = StoreSettings { redis, ..StoreSettings::default() };
        settings
    }

    /// Opens the store; redb allows only one user at a time.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        let clock = StoreClock::new(|| SystemClock.now().as_unix_ms());
        match self.settings().store.redis {
            Some(redis) => Arc::new(Redis::connect(&redis, clock).await.unwrap()),
            None => Arc::new(Embedded::open(&self.file_path(), clock).unwrap()),
        }
    }

    /// Opens the applications and devices, with the key file that the handler will use.
    pub(crate) async fn devices(&self, store: Arc<dyn Store>) -> (Applications, Devices) {
        let keys =
            SealingKeys::load_or_create(KeyOwner::Handler, &self.dir.path().join("handler.key"), &OsRandom).unwrap();
        let sealer = Sealer::for_store(keys, store.as_ref(), Arc::new(OsRandom)).await.unwrap();
        (Applications::new(store.clone(), sealer.clone()), Devices::new(store, sealer, Arc::new(SystemClock)))
    }

    /// The size of the embedded store on disk, in MiB.
    pub(crate) fn file_mib(&self) -> f64 {
        std::fs::metadata(self.file_path()).unwrap().len() as f64 / (1 << 20) as f64
    }

    /// Registers applications, each with this number of devices.
    pub(crate) async fn fill(&self, applications: usize, devices: usize) {
        let kept = self.devices(self.open().await).await;
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let kept = kept.clone();
            writers.spawn(async move {
                for number in (writer..applications * devices).step_by(WRITERS) {
                    put(&kept, number / devices, number % devices).await;
                }
            });
        }
        writers.join_all().await;
    }

    fn file_path(&self) -> PathBuf {
        self.dir.path().join("airlock.redb")
    }
}

/// Adds a device, and its application if that is missing.
async fn put((applications, devices): &(Applications, Devices), application: usize, number: usize) {
    let app_id = app_id(application);
    let device = device(app_id.clone(), number);
    if devices.set(device.clone()).await.is_err() {
        // Another writer may have registered it meanwhile.
        let _ = applications.register(&app_id).await;
        devices.set(device).await.unwrap();
    }
}

/// A typical device, with keys, location and attributes.
pub(crate) fn device(app_id: AppId, number: usize) -> Device {
    let attributes = [("ttn-model", "thermometer"), ("floor", "3")];
    // The digits of the application, so that no two applications have the same pair of EUIs.
    let app_eui = format!("{:0>16}", app_id.as_str().trim_start_matches("app-"));
    Device {
        app_id,
        dev_id: dev_id(number),
        description: format!("The thermometer number {number}"),
        latitude: 52.375,
        longitude: 4.875,
        altitude: 3,
        attributes: attributes.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        lorawan: Lorawan {
            app_eui: app_eui.parse().unwrap(),
            dev_eui: format!("{:016x}", number + 1).parse().unwrap(),
            dev_addr: "26010203".parse().ok(),
            nwk_s_key: "11".repeat(16).parse().ok(),
            app_s_key: "22".repeat(16).parse().ok(),
            app_key: "33".repeat(16).parse().ok(),
            activation_constraints: "local".to_owned(),
            ..Lorawan::default()
        },
    }
}
