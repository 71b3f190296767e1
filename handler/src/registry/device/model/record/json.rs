//! Records of devices from before they were Protobuf messages: JSON, with the keys sealed, or plain in the oldest ones.

use serde::Deserialize;
use server::seal::Sealed;
use types::{AppKey, AppSKey, NwkSKey};

use super::{Device, aad};
use crate::{Error, registry::sealer::Sealer};

#[derive(Deserialize)]
struct DeviceKeys {
    app_key: Option<AppKey>,
    nwk_s_key: Option<NwkSKey>,
    app_s_key: Option<AppSKey>,
}

#[derive(Deserialize)]
struct JsonRecord {
    #[serde(flatten)]
    device: Device,
    keys: Option<Sealed>,
}

pub(super) fn is_json(record: &[u8]) -> bool {
    record.first() == Some(&b'{')
}

pub(super) fn read(sealer: &Sealer, record: &[u8]) -> Result<Device, Error> {
    let JsonRecord { mut device, keys } = serde_json::from_slice(record)?;
    if let Some(keys) = keys {
        let DeviceKeys { app_key, nwk_s_key, app_s_key } = sealer.open("keys of a device", &aad(&device), &keys)?;
        let lorawan = &mut device.lorawan;
        (lorawan.app_key, lorawan.nwk_s_key, lorawan.app_s_key) = (app_key, nwk_s_key, app_s_key);
    }
    Ok(device)
}

pub(super) fn read_without_keys(record: &[u8]) -> Result<Device, Error> {
    Ok(serde_json::from_slice(record)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use server::{
        seal::{KeyOwner, SealingKeys},
        system::OsRandom,
    };
    use store::{Embedded, StoreClock};

    use super::*;

    #[tokio::test]
    async fn reads_sealed_keys() {
        let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
        let store = Embedded::in_memory(StoreClock::new(|| 0)).unwrap();
        let sealer = Sealer::for_store(keys, &store, Arc::new(OsRandom)).await.unwrap();
        let key = "C0FFEE0123456789ABCDEF0BADC0DE42";
        let sealed = sealer.seal("device app-one:dev-one", &json!({"app_key": key, "nwk_s_key": null})).unwrap();
        let record = json!({
            "app_id": "app-one", "dev_id": "dev-one", "description": "", "latitude": 1.5, "longitude": 0.0,
            "altitude": 0, "attributes": {"floor": "3"},
            "lorawan": {
                "app_eui": "", "dev_eui": "0004A30B001C0531", "dev_addr": null, "nwk_s_key": null, "app_s_key": null,
                "app_key": null, "f_cnt_up": 1, "f_cnt_down": 0, "disable_f_cnt_check": false,
                "uses32_bit_f_cnt": false, "activation_constraints": "", "last_seen": 0,
            },
            "keys": sealed,
        });
        let record = record.to_string().into_bytes();
        let without_keys = read_without_keys(&record).unwrap();
        assert_eq!((without_keys.latitude, without_keys.lorawan.f_cnt_up), (1.5, 1));
        assert_eq!(without_keys.lorawan.app_key, None);
        let device = read(&sealer, &record).unwrap();
        assert_eq!(device.lorawan.app_key, Some(key.parse().unwrap()));
        let moved = String::from_utf8(record).unwrap().replace("dev-one", "dev-two");
        assert!(read(&sealer, moved.as_bytes()).is_err(), "the keys are another device's");
    }
}
