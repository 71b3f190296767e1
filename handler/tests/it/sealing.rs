//! The keys of devices and applications are sealed in the store, and open only with the right key file.

use std::sync::Arc;

use handler::{
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::{Device, Devices, Lorawan},
    sealer::Sealer,
};
use serde_json::{Value, json};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::OsRandom,
    usage::Usage,
};
use store::{Batch, Commit, Embedded, Key, Store, StoreClock, Tag};
use testing::ManualClock;
use types::DevicePath;

use crate::{
    harness::sealer,
    records::{device, id},
};

const SECRETS: [&str; 4] = [
    "C0FFEE0123456789ABCDEF0BADC0DE42",
    "11223344556677889900AABBCCDDEEFF",
    "FFEEDDCCBBAA00998877665544332211",
    "account.planting-key",
];

fn with_keys() -> Device {
    let [app_key, nwk_s_key, app_s_key, _] = SECRETS;
    let device = device("app-one");
    let lorawan = Lorawan {
        app_key: Some(app_key.parse().unwrap()),
        nwk_s_key: Some(nwk_s_key.parse().unwrap()),
        app_s_key: Some(app_s_key.parse().unwrap()),
        ..device.lorawan.clone()
    };
    Device { lorawan, ..device }
}

fn with_key() -> Application {
    Application::new(id("app-one")).with_join_key(Some(SECRETS[3].parse().unwrap()))
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("app-one").unwrap(), path).unwrap()
}

// Conformance: Keys are sealed in the store
#[tokio::test]
async fn seals_every_key_in_the_store() {
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
    let sealer = sealer(store.as_ref()).await;
    let applications = Applications::new(store.clone(), sealer.clone());
    let devices = Devices::new(store.clone(), sealer, ManualClock::new());
    applications.register(&id("app-one")).await.unwrap();
    applications.set(with_key(), JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
    devices.set(with_keys()).await.unwrap();
    let entries = store.list(&key(""), None, 10).await.unwrap();
    assert_eq!(entries.len(), 4);
    for entry in entries {
        let text = String::from_utf8_lossy(&entry.value).to_uppercase();
        for secret in SECRETS {
            assert!(!text.contains(&secret.to_uppercase()), "{text}");
            let Ok(bytes) = hex::decode(secret) else { continue };
            assert!(!entry.value.windows(bytes.len()).any(|part| part == bytes), "{text}");
        }
    }
    let (app_id, dev_id) = (id("app-one"), "dev".parse().unwrap());
    let path = DevicePath { app_id: &app_id, dev_id: &dev_id };
    assert_eq!(applications.get(&id("app-one")).await.unwrap(), with_key());
    assert_eq!(devices.get(path).await.unwrap(), with_keys());
    assert_eq!(devices.list(&id("app-one"), 0, 10, &Usage::default()).await.unwrap().devices, [with_keys()]);
    // An update keeps the keys that it leaves out. What an uplink reads has no keys.
    devices.set(device("app-one")).await.unwrap();
    assert_eq!(devices.get(path).await.unwrap(), with_keys());
    let (summary, read) = devices.get_with_summary(path).await.unwrap();
    assert_eq!((summary.register_on_join_access_key, read), (None, device("app-one")));
}

// Conformance: Keys are sealed in the store
#[tokio::test]
async fn reads_old_records_with_plain_keys_and_seals_them_on_the_next_write() {
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
    let sealer = sealer(store.as_ref()).await;
    let applications = Applications::new(store.clone(), sealer.clone());
    let devices = Devices::new(store.clone(), sealer, ManualClock::new());
    applications.register(&id("app-one")).await.unwrap();
    let old = |record: Value| record.to_string().into_bytes();
    let batch = Batch::new().put(key("handler/application"), old(json!(with_key().summary()))).put(
        key("handler/device/dev"),
        old(json!({
            "app_id": "app-one", "dev_id": "dev", "description": "", "latitude": 0.0, "longitude": 0.0, "altitude": 0,
            "attributes": {},
            "lorawan": {
                "app_eui": "", "dev_eui": with_keys().lorawan.dev_eui, "dev_addr": null,
                "app_key": SECRETS[0], "nwk_s_key": SECRETS[1], "app_s_key": SECRETS[2],
                "f_cnt_up": 0, "f_cnt_down": 0, "disable_f_cnt_check": false, "uses32_bit_f_cnt": false,
                "activation_constraints": "", "last_seen": 0,
            },
        })),
    );
    assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    let (app_id, dev_id) = (id("app-one"), "dev".parse().unwrap());
    let path = DevicePath { app_id: &app_id, dev_id: &dev_id };
    assert_eq!(applications.get(&id("app-one")).await.unwrap(), with_key());
    assert_eq!(devices.get(path).await.unwrap(), with_keys());

    devices.set(device("app-one")).await.unwrap();
    applications.set(with_key(), JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
    for entry in store.list(&key(""), None, 10).await.unwrap() {
        let text = String::from_utf8_lossy(&entry.value);
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
    assert_eq!(devices.get(path).await.unwrap(), with_keys());
}

#[tokio::test]
async fn refuses_another_key_file_at_the_start() {
    let store = Embedded::in_memory(StoreClock::new(|| 0)).unwrap();
    let open = async |secret: [u8; 32]| {
        let keys = SealingKeys::new(KeyOwner::Handler, &secret).unwrap();
        Sealer::for_store(keys, &store, Arc::new(OsRandom)).await.map(drop)
    };
    open([7; 32]).await.unwrap();
    open([7; 32]).await.expect("the key file is the same");
    let error = open([8; 32]).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot open the secrets in the store: it was sealed with a different key file"),
        "{error}"
    );
}
