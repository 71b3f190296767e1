//! Keys of devices and applications in the store: closed, and opened with the right key file only.

use std::sync::Arc;

use handler::{
    application::{Application, Applications, JoinKey},
    device::{Device, Devices, Lorawan},
    sealer::Vault,
};
use serde_json::{Value, json};
use server::{
    seal::{Keys, Owner},
    system::OsRandom,
};
use store::{Batch, Clock, Commit, Embedded, Key, Store, Tag};

use crate::{
    records::{device, id},
    stage::vault,
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
    let register_on_join_access_key = Some(SECRETS[3].parse().unwrap());
    Application { register_on_join_access_key, ..Application::new(id("app-one")) }
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("app-one").unwrap(), path).unwrap()
}

#[tokio::test]
async fn the_store_holds_no_key_and_gives_each_back() {
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Clock::new(|| 0)).unwrap());
    let vault = vault(store.as_ref()).await;
    let applications = Applications::new(store.clone(), vault.clone());
    let devices = Devices::new(store.clone(), vault);
    applications.register(&id("app-one")).await.unwrap();
    applications.set(with_key(), JoinKey::Replaced).await.unwrap();
    devices.set(with_keys()).await.unwrap();
    let entries = store.list(&key(""), None, 10).await.unwrap();
    assert_eq!(entries.len(), 4);
    for entry in entries {
        let text = String::from_utf8_lossy(&entry.value).to_uppercase();
        for secret in SECRETS {
            assert!(!text.contains(&secret.to_uppercase()), "{text}");
        }
    }
    let dev_id = "dev".parse().unwrap();
    assert_eq!(applications.get(&id("app-one")).await.unwrap(), with_key());
    assert_eq!(devices.get(&id("app-one"), &dev_id).await.unwrap(), with_keys());
    assert_eq!(devices.list(&id("app-one"), 0, 10).await.unwrap().devices, [with_keys()]);
    // What a change leaves out stays; what an uplink reads has no keys.
    devices.set(device("app-one")).await.unwrap();
    assert_eq!(devices.get(&id("app-one"), &dev_id).await.unwrap(), with_keys());
    let (outline, read) = devices.get_with_outline(&id("app-one"), &dev_id).await.unwrap();
    assert_eq!((outline.register_on_join_access_key, read), (None, device("app-one")));
}

#[tokio::test]
async fn records_from_before_keys_were_closed_are_read_and_then_closed() {
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Clock::new(|| 0)).unwrap());
    let vault = vault(store.as_ref()).await;
    let applications = Applications::new(store.clone(), vault.clone());
    let devices = Devices::new(store.clone(), vault);
    applications.register(&id("app-one")).await.unwrap();
    let old = |record: Value| record.to_string().into_bytes();
    let batch = Batch::new()
        .put(key("handler/application"), old(json!(with_key().outline())))
        .put(key("handler/device/dev"), old(json!(with_keys())));
    assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    let dev_id = "dev".parse().unwrap();
    assert_eq!(applications.get(&id("app-one")).await.unwrap(), with_key());
    assert_eq!(devices.get(&id("app-one"), &dev_id).await.unwrap(), with_keys());

    devices.set(device("app-one")).await.unwrap();
    applications.set(with_key(), JoinKey::Replaced).await.unwrap();
    for entry in store.list(&key(""), None, 10).await.unwrap() {
        let text = String::from_utf8_lossy(&entry.value);
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
    assert_eq!(devices.get(&id("app-one"), &dev_id).await.unwrap(), with_keys());
}

#[tokio::test]
async fn another_key_file_is_refused_at_the_start() {
    let store = Embedded::in_memory(Clock::new(|| 0)).unwrap();
    let open = async |secret: [u8; 32]| {
        let keys = Keys::new(Owner::Handler, &secret).unwrap();
        Vault::open(keys, &store, Arc::new(OsRandom)).await.map(drop)
    };
    open([7; 32]).await.unwrap();
    open([7; 32]).await.expect("it is the same");
    let error = open([8; 32]).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot open the secrets in the store: the key file is not the one"), "{error}");
}
