//! Where the handler keeps its records in the store.
//!
//! All records of an application share its tag, so one commit can change several of them and one prefix finds them all.

use store::{Key, Tag};
use types::{AppEui, AppId, DevEui, DevId};

use crate::Error;

/// The prefix of every record of an application.
pub(crate) fn all(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "")
}

pub(crate) fn summary(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "application")
}

pub(crate) fn functions(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "functions")
}

/// The prefix of an application's devices.
pub(crate) fn devices(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "device/")
}

pub(crate) fn device(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    key(app_id, &format!("device/{dev_id}"))
}

/// The id of the device that has this pair of EUIs; none for a device without a DevEUI.
pub(crate) fn eui(app_id: &AppId, app_eui: AppEui, dev_eui: DevEui) -> Result<Option<Key>, Error> {
    if dev_eui.is_zero() {
        return Ok(None);
    }
    key(app_id, &format!("eui/{app_eui}-{dev_eui}")).map(Some)
}

pub(crate) fn nonces(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    key(app_id, &format!("nonces/{dev_id}"))
}

pub(crate) fn downlinks(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    key(app_id, &format!("downlinks/{dev_id}"))
}

fn key(app_id: &AppId, path: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("handler/{path}"))?)
}
